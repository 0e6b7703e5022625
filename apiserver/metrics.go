package apiserver

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus" // the library that controller-runtime's own metrics are made with

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// requestMetrics count the responses of the REST API, through all doors.
type requestMetrics struct{ seconds *prometheus.HistogramVec }

func newRequestMetrics() requestMetrics {
	return requestMetrics{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "forgeplane_rest_request_duration_seconds",
		Help:    "How long answers of the REST API took, by method, route and status.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"method", "route", "status"})}
}

// observe counts a response. The label is a route of the table, so the number of series is bounded.
func (m requestMetrics) observe(e *endpoint.Endpoint, status int, took time.Duration) {
	m.seconds.WithLabelValues(e.Method(), e.Path(), strconv.Itoa(status)).Observe(took.Seconds())
}
