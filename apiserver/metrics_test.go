package apiserver

import (
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

func TestRequestMetrics_countAnswersByRoute(t *testing.T) {
	g := NewWithT(t)
	m := newRequestMetrics()
	for e := range newWorld(t, v1alpha1.VisibilityPrivate).handler.Endpoints() {
		if e.Method() == http.MethodGet && e.Path() == "/projects/{id}" {
			m.observe(e, http.StatusOK, 3*time.Millisecond)
			m.observe(e, http.StatusOK, 30*time.Millisecond)
		}
	}
	g.Expect(testutil.CollectAndCount(m.seconds)).To(Equal(1))
	text, err := testutil.CollectAndFormat(m.seconds, expfmt.TypeTextPlain, "forgeplane_rest_request_duration_seconds")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Split(string(text), "\n")).To(ContainElements(
		`forgeplane_rest_request_duration_seconds_bucket{method="GET",route="/projects/{id}",status="200",le="0.005"} 1`,
		`forgeplane_rest_request_duration_seconds_count{method="GET",route="/projects/{id}",status="200"} 2`))
}
