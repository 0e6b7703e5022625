package main

import (
	"runtime/debug"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
)

func TestAStartIsFrugalUntilTheQueuesAreEmpty(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("GOGC", "")
	usual := debug.SetGCPercent(90)
	t.Cleanup(func() { debug.SetGCPercent(usual) })
	percent := func() int { // there is no other way to read it
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	registry := prometheus.NewRegistry()
	depth := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "workqueue_depth"}, []string{"controller"})
	registry.MustRegister(depth)
	depth.WithLabelValues("project").Set(3)
	depth.WithLabelValues("group").Set(0)

	f := newFrugalStart(registry)
	ended := make(chan error, 1)
	go func() { ended <- f.Start(t.Context()) }()
	g.Consistently(percent).WithTimeout(4 * depthInterval).Should(Equal(startPercent))
	depth.WithLabelValues("project").Set(0)
	g.Eventually(ended).WithTimeout(10 * time.Second).Should(Receive(BeNil()))
	g.Expect(percent()).To(Equal(90))
}

func TestAnOperatorsGOGCStands(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("GOGC", "90")
	usual := debug.SetGCPercent(90)
	t.Cleanup(func() { debug.SetGCPercent(usual) })
	g.Expect(newFrugalStart(prometheus.NewRegistry()).Start(t.Context())).To(Succeed())
	g.Expect(debug.SetGCPercent(90)).To(Equal(90))
}
