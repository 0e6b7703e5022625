package testbed

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func metrics(t *testing.T, text string) Metrics {
	t.Helper()
	m, err := parseMetrics(strings.NewReader(text))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return m
}

func TestWritten_excludesWritesOfTheControlPlane(t *testing.T) {
	g := NewWithT(t)
	m := metrics(t, `# TYPE apiserver_request_total counter
apiserver_request_total{verb="POST",group="forgeplane.dev",resource="protectedbranches",code="201"} 3
apiserver_request_total{verb="PATCH",group="forgeplane.dev",resource="protectedbranches",subresource="status",code="200"} 4
apiserver_request_total{verb="POST",group="events.k8s.io",resource="events",code="201"} 1
apiserver_request_total{verb="PUT",group="",resource="configmaps",code="200"} 1
apiserver_request_total{verb="LIST",group="forgeplane.dev",resource="protectedbranches",code="200"} 100
apiserver_request_total{verb="WATCH",group="forgeplane.dev",resource="protectedbranches",code="200"} 100
apiserver_request_total{verb="PUT",group="coordination.k8s.io",resource="leases",code="200"} 100
apiserver_request_total{verb="POST",group="authorization.k8s.io",resource="subjectaccessreviews",code="201"} 100
apiserver_request_total{verb="POST",group="",resource="serviceaccounts",subresource="token",code="201"} 100
`)
	g.Expect(m.Sum("apiserver_request_total", written)).To(Equal(9.0))
}

func TestMean_usesOnlyTheChosenSeries(t *testing.T) {
	g := NewWithT(t)
	m := metrics(t, `# TYPE controller_runtime_reconcile_time_seconds histogram
controller_runtime_reconcile_time_seconds_bucket{controller="protectedbranch",le="+Inf"} 4
controller_runtime_reconcile_time_seconds_sum{controller="protectedbranch"} 2
controller_runtime_reconcile_time_seconds_count{controller="protectedbranch"} 4
controller_runtime_reconcile_time_seconds_bucket{controller="user",le="+Inf"} 1
controller_runtime_reconcile_time_seconds_sum{controller="user"} 100
controller_runtime_reconcile_time_seconds_count{controller="user"} 1
`)
	g.Expect(m.Mean("controller_runtime_reconcile_time_seconds", Of("controller", "protectedbranch"))).To(Equal(0.5))
	g.Expect(m.Mean("absent", nil)).To(BeZero())
	g.Expect(m.Sum("absent", nil)).To(BeZero())
}
