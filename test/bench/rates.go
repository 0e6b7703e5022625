package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientrest "k8s.io/client-go/rest"

	"github.com/forgeplane/forgeplane/test/bench/reference"
	"github.com/forgeplane/forgeplane/test/bench/traffic"
)

const (
	restConnections = 16
	// calmConnections is the number of connections for measuring the time of half of the requests.
	calmConnections = 8
	rateRounds      = 7
	// rateTime is the duration of one sample, and warmTime is the duration of the requests before the first one.
	rateTime = 2 * time.Second
	warmTime = time.Second
)

// question is a request whose answers are counted.
type question struct {
	row, path string
	// slow is the row for the time that one of a hundred requests exceeds, or empty if there is none.
	slow string
	// half is the row for the time within which half of the requests finish, or empty if there is none.
	half string
	door string
}

func (r *rest) questions() []question {
	project := fmt.Sprintf("/projects/%d", r.project)
	return atBothDoors([]question{
		{row: rowRESTRule, path: project + "/protected_branches/release%2F07%2F%2A", slow: rowRESTRuleSlow},
		{row: rowRESTProject, path: project},
		{row: rowRESTUser, path: "/user"},
		{row: rowRESTRules, path: project + "/protected_branches?per_page=20"},
		{row: rowRESTProjects, path: "/projects?per_page=20"},
	})
}

// atBothDoors adds the same questions through kube-apiserver.
func atBothDoors(all []question) []question {
	for _, q := range all[:len(all):len(all)] {
		all = append(all, question{row: throughKubernetes(q.row), path: q.path, door: kubernetesDoor})
	}
	return all
}

// kubernetesDoor is the path of the REST API in kube-apiserver, and referenceDoor is the path of the reference.
const (
	kubernetesDoor = "/apis/rest.forgeplane.dev/v4"
	referenceGroup = "reference.example.com"
	referenceDoor  = "/apis/" + referenceGroup + "/v1"
)

func (r *rest) measureRates(ctx context.Context, all []question) error {
	for _, q := range all {
		if !r.bench.wants(q.row, q.slow, q.half) {
			continue
		}
		measure := r.measureRate
		if q.door != "" {
			measure = r.measureAggregated
		}
		if err := measure(ctx, q); err != nil {
			return fmt.Errorf("%s: %w", q.row, err)
		}
	}
	return nil
}

// measureRate compares the answers of Forgeplane's own listener with those of a bare handler.
func (r *rest) measureRate(ctx context.Context, q question) error {
	request, err := r.request(ctx, r.URL()+"/api/v4"+q.path)
	if err != nil {
		return err
	}
	text, err := r.answer(http.DefaultClient, request, q)
	if err != nil {
		return err
	}
	return r.bench.withBareHandler(ctx, reference.StartBytes, text, func(address string) error {
		same, err := r.request(ctx, "http://"+address+"/api/v4"+q.path)
		if err != nil {
			return err
		}
		return r.compare(ctx, q, traffic.Plain(request), traffic.Plain(same))
	})
}

// measureAggregated compares answers that come through kube-apiserver with those of a bare handler behind it.
func (r *rest) measureAggregated(ctx context.Context, q question) error {
	if err := r.AwaitAvailable(ctx, "v4.rest.forgeplane.dev"); err != nil {
		return err
	}
	config, err := r.Identity(identity)
	if err != nil {
		return err
	}
	c, err := clientrest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+kubernetesDoor+q.path, http.NoBody)
	if err != nil {
		return err
	}
	text, err := r.answer(c, request, q)
	if err != nil {
		return err
	}
	return r.bench.withBareHandler(ctx, reference.StartBytesTLS, text, func(address string) (err error) {
		withdraw, err := r.aggregate(ctx, address)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, withdraw()) }()
		same, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+referenceDoor+"/bytes", http.NoBody)
		if err != nil {
			return err
		}
		return r.compare(ctx, q, traffic.Through(c, request), traffic.Through(c, same))
	})
}

// answer returns the answer to a request.
func (r *rest) answer(c *http.Client, request *http.Request, q question) ([]byte, error) {
	text, err := answerTo(c, request, http.StatusOK)
	if err != nil {
		return nil, err
	}
	r.bench.describe(q.row, fmt.Sprintf("%d bytes", len(text)))
	return text, nil
}

// withBareHandler calls use with the address of a bare handler, which answers every request with the same text and is stopped afterwards.
func (b *bench) withBareHandler(
	ctx context.Context, start func(ctx context.Context, file string) (*reference.Bytes, error), text []byte, use func(address string) error,
) (err error) {
	file, err := b.writeAnswer(text)
	if err != nil {
		return err
	}
	bare, err := start(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.Stop()) }()
	return use(bare.Address)
}

// writeAnswer writes an answer to a file, from which a server of the reference can read it.
func (b *bench) writeAnswer(text []byte) (file string, err error) {
	file = filepath.Join(b.directory, "answer.json")
	return file, os.WriteFile(file, text, 0o600)
}

// compare counts answers in turn, after some answers that do not count.
func (r *rest) compare(ctx context.Context, q question, ours, same traffic.Dial) error {
	times := func(dial traffic.Dial, connections int, lasts time.Duration, share float64, slow *[]float64) func(int) (float64, error) {
		return func(int) (float64, error) {
			result, err := traffic.Run(ctx, dial, connections, lasts)
			if err == nil {
				*slow = append(*slow, milliseconds(result.Quantile(share)))
			}
			return result.Rate, err
		}
	}
	measure := func(rounds, connections int, lasts time.Duration, share float64) (rates, slow [2][]float64, err error) {
		rates[0], rates[1], err = alternate(exactly(rounds),
			times(ours, connections, lasts, share, &slow[0]), times(same, connections, lasts, share, &slow[1]))
		return rates, slow, err
	}
	if _, _, err := measure(1, restConnections, warmTime, 1); err != nil {
		return err
	}
	rates, slow, err := measure(rateRounds, restConnections, rateTime, 0.99)
	if err != nil {
		return err
	}
	r.bench.record(q.row, rates[0], rates[1])
	r.bench.record(q.slow, slow[0], slow[1])
	if !r.bench.wants(q.half) {
		return nil
	}
	_, half, err := measure(rateRounds, calmConnections, rateTime, 0.5)
	r.bench.record(q.half, half[0], half[1])
	return err
}

// compareWrites counts writes that Forgeplane takes, and those that a handler takes and ignores.
func (r *rest) compareWrites(ctx context.Context, row string, writers func(server string) traffic.Dial) error {
	return r.bench.withBareHandler(ctx, reference.StartBytes, nil, func(address string) error {
		return r.compare(ctx, question{row: row}, writers(r.URL()), writers("http://"+address))
	})
}

// aggregate makes kube-apiserver forward requests to a server until withdraw is called.
func (r *rest) aggregate(ctx context.Context, address string) (withdraw func() error, err error) {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return nil, err
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "reference"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}
	api := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1." + referenceGroup},
		"spec": map[string]any{
			"group": referenceGroup, "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"insecureSkipTLSVerify": true,
			"service":               map[string]any{"namespace": "default", "name": "reference", "port": port},
		},
	}}
	withdraw = func() error { return errors.Join(r.Client().Delete(ctx, api), r.Client().Delete(ctx, service)) }
	if err := errors.Join(r.Client().Create(ctx, service), r.Client().Create(ctx, api)); err != nil {
		return nil, errors.Join(err, withdraw())
	}
	if err := r.AwaitAvailable(ctx, api.GetName()); err != nil {
		return nil, errors.Join(err, withdraw())
	}
	return withdraw, nil
}
