package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/forgeplane/forgeplane/test/patience"
)

func TestFrugalStart_lastsUntilTheQueuesAreEmpty(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("GOGC", "")
	usual, limit := debug.SetGCPercent(90), debug.SetMemoryLimit(-1)
	t.Cleanup(func() {
		debug.SetGCPercent(usual)
		debug.SetMemoryLimit(limit)
	})
	percent := func() int {
		sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(sample)
		return int(sample[0].Value.Uint64())
	}
	registry := prometheus.NewRegistry()
	depth := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "workqueue_depth"}, []string{"controller"})
	registry.MustRegister(depth)
	depth.WithLabelValues("project").Set(3)
	depth.WithLabelValues("group").Set(0)

	f := newFrugalStart(registry)
	g.Expect(debug.SetMemoryLimit(-1)).To(BeEquivalentTo(startSize))

	ended := make(chan error, 1)
	go func() { ended <- f.Start(t.Context()) }()
	runtime.GC()
	g.Eventually(percent).WithTimeout(patience.Wait).Should(Equal(startPercent))
	g.Expect(debug.SetMemoryLimit(-1)).To(Equal(limit))
	g.Consistently(percent).WithTimeout(4 * depthInterval).Should(Equal(startPercent))
	depth.WithLabelValues("project").Set(0)
	g.Eventually(ended).WithTimeout(patience.Wait).Should(Receive(BeNil()))
	g.Expect(percent()).To(Equal(90))
}

func TestFrugalStart_keepsGOGCOfTheOperator(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("GOGC", "90")
	usual := debug.SetGCPercent(90)
	t.Cleanup(func() { debug.SetGCPercent(usual) })
	g.Expect(newFrugalStart(prometheus.NewRegistry()).Start(t.Context())).To(Succeed())
	g.Expect(debug.SetGCPercent(90)).To(Equal(90))
}
