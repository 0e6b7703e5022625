package testbed

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt" // the format of /metrics
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
)

// quietTimeout limits the time in which Forgeplane must finish its work.
const quietTimeout = 20 * time.Minute

// Metrics are the metrics of a process at one moment.
type Metrics map[string]*dto.MetricFamily

// Metrics reads the metrics of Forgeplane.
func (t *Testbed) Metrics(ctx context.Context) (Metrics, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+t.running.metrics+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of Forgeplane: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	return parseMetrics(response.Body)
}

// ClusterMetrics reads the metrics of kube-apiserver.
func (t *Testbed) ClusterMetrics(ctx context.Context) (Metrics, error) {
	clientset, err := kubernetes.NewForConfig(t.plane.Administrator())
	if err != nil {
		return nil, err
	}
	text, err := clientset.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of kube-apiserver: %w", err)
	}
	return parseMetrics(bytes.NewReader(text))
}

func parseMetrics(text io.Reader) (Metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	return families, nil
}

// Labels are the labels of one series of a metric.
type Labels map[string]string

// Sum adds the chosen series of a counter or gauge, or all of them if choose is nil.
func (m Metrics) Sum(name string, choose func(Labels) bool) float64 {
	var sum float64
	for _, one := range m.series(name, choose) {
		sum += one.GetCounter().GetValue() + one.GetGauge().GetValue()
	}
	return sum
}

// Mean returns the mean of the observations in the chosen series of a histogram, or 0 if there are none.
func (m Metrics) Mean(name string, choose func(Labels) bool) float64 {
	var sum, count float64
	for _, one := range m.series(name, choose) {
		sum += one.GetHistogram().GetSampleSum()
		count += float64(one.GetHistogram().GetSampleCount())
	}
	if count == 0 {
		return 0
	}
	return sum / count
}

func (m Metrics) series(name string, choose func(Labels) bool) []*dto.Metric {
	var chosen []*dto.Metric
	for _, one := range m[name].GetMetric() {
		labels := Labels{}
		for _, label := range one.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		if choose == nil || choose(labels) {
			chosen = append(chosen, one)
		}
	}
	return chosen
}

// Of returns a choice of series by one label.
func Of(label, value string) func(Labels) bool {
	return func(l Labels) bool { return l[label] == value }
}

// busy are the metrics that show that a controller has work to do.
var busy = []string{"workqueue_depth", "workqueue_unfinished_work_seconds", "controller_runtime_active_workers"}

// AwaitQuiet waits until Forgeplane's controllers have reconciled a number of objects of a kind since the process started, and have no more work.
func (t *Testbed) AwaitQuiet(ctx context.Context, controller string, reconciles int) error {
	quiet := false
	return poll(ctx, quietTimeout, "Forgeplane to have nothing to do", func(ctx context.Context) (bool, error) {
		m, err := t.Metrics(ctx)
		if err != nil {
			quiet = false
			return false, nil //nolint:nilerr // it may not listen yet, and otherwise the timeout ends this
		}
		was := quiet
		quiet = m.Sum("controller_runtime_reconcile_total", Of("controller", controller)) >= float64(reconciles) &&
			!slices.ContainsFunc(busy, func(name string) bool { return m.Sum(name, nil) > 0 })
		// Between a queue and a worker, an object is in neither figure, so one look is not enough.
		return was && quiet, nil
	})
}

// Writes returns the number of requests that have changed something in the cluster since kube-apiserver started, without the requests of the
// control plane itself.
func (t *Testbed) Writes(ctx context.Context) (int, error) {
	m, err := t.ClusterMetrics(ctx)
	if err != nil {
		return 0, err
	}
	return int(m.Sum("apiserver_request_total", written)), nil
}

func written(l Labels) bool {
	own := []string{
		"coordination.k8s.io", "flowcontrol.apiserver.k8s.io", "apiregistration.k8s.io", // leases and its own configuration
		"authentication.k8s.io", "authorization.k8s.io", // questions in the form of writes
	}
	verbs := []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}
	return slices.Contains(verbs, l["verb"]) && !slices.Contains(own, l["group"]) &&
		l["resource"] != "serviceaccounts" // the tokens of its controllers
}
