package endpoint_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/endpoint/endpointtest"
)

// queue holds jobs that others add. As a guard it can refuse a caller whom it admitted before.
type queue struct {
	open
	mutex   sync.Mutex
	changed chan struct{}
	jobs    []string
	looks   int
	revoked bool
	// looked is called after each look that finds nothing.
	looked func()
}

// Admit implements endpoint.Guard.
func (q *queue) Admit(r *http.Request, e *endpoint.Endpoint, sent endpoint.Sent) (context.Context, any, error) {
	if q.revoked {
		return nil, nil, endpoint.Unauthorized("")
	}
	return q.open.Admit(r, e, sent)
}

func (q *queue) change() <-chan struct{} {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.changed
}

func (q *queue) put(jobs ...string) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.jobs = append(q.jobs, jobs...)
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *queue) take(context.Context) (string, bool, error) {
	q.mutex.Lock()
	q.looks++
	if len(q.jobs) > 0 {
		defer q.mutex.Unlock()
		job := q.jobs[0]
		q.jobs = q.jobs[1:]
		return job, true, nil
	}
	q.mutex.Unlock()
	q.looked()
	return "", false, nil
}

const pollLimit = 50 * time.Second

// table has one endpoint, which sends the error of its handler to ended.
func (q *queue) table(ended chan error) endpoint.Table {
	return endpoint.Table{endpoint.Post("/jobs/request", func(ctx context.Context, _ endpoint.None, _ *endpoint.None) (endpoint.Reply[string], error) {
		job, found, err := endpoint.Poll(ctx, q.change, q.take)
		ended <- err
		if !found {
			return endpoint.Reply[string]{Status: http.StatusNoContent}, err
		}
		return endpoint.Reply[string]{Body: job}, nil
	}).Polls(pollLimit).Answers(endpoint.Answer{Status: http.StatusNoContent, Doc: "There is none.", Empty: true})}
}

// TestPoll_waits runs with a fake clock.
func TestPoll_waits(t *testing.T) {
	for name, tt := range map[string]struct {
		jobs   []string
		looked func(q *queue, leave context.CancelFunc, stop chan struct{}) // called in the first look that finds nothing
		status int
		body   string
		looks  int
		took   time.Duration
		failed bool
	}{
		"not if there is a job": {jobs: []string{"a", "b"}, status: 201, body: `"a"`, looks: 1},
		"until a job arrives": {looked: func(q *queue, _ context.CancelFunc, _ chan struct{}) {
			time.AfterFunc(20*time.Second, func() { q.put("a") })
		}, status: 201, body: `"a"`, looks: 2, took: 20 * time.Second},
		"and misses no job": {looked: func(q *queue, _ context.CancelFunc, _ chan struct{}) { q.put("a") }, status: 201, body: `"a"`, looks: 2},
		"until the time is over": {looked: func(q *queue, _ context.CancelFunc, _ chan struct{}) {
			time.AfterFunc(20*time.Second, func() { q.put() }) // another caller takes this job
		}, status: 204, looks: 2, took: pollLimit},
		"until the client leaves": {looked: func(_ *queue, leave context.CancelFunc, _ chan struct{}) {
			time.AfterFunc(20*time.Second, leave)
		}, status: 500, body: `{"message":"500 Internal Server Error"}`, looks: 1, took: 20 * time.Second, failed: true},
		"until the server stops": {looked: func(_ *queue, _ context.CancelFunc, stop chan struct{}) {
			time.AfterFunc(20*time.Second, func() { close(stop) })
		}, status: 204, looks: 1, took: 20 * time.Second},
		"and gives no job to a caller whose access was revoked": {looked: func(q *queue, _ context.CancelFunc, _ chan struct{}) {
			time.AfterFunc(20*time.Second, func() { q.revoked = true; q.put("a") })
		}, status: 401, body: `{"message":"401 Unauthorized"}`, looks: 1, took: 20 * time.Second, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				stop, ended := make(chan struct{}), make(chan error, 1)
				q := &queue{changed: make(chan struct{}), jobs: tt.jobs}
				var once sync.Once
				q.looked = func() { once.Do(func() { tt.looked(q, leave, stop) }) }
				h := endpoint.NewHandler(endpoint.Options{Guard: q, Log: logr.Discard(), Stopping: stop, Memory: &scarce{}}, q.table(ended))
				begun, w := time.Now(), httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/jobs/request", http.NoBody))
				if w.Code != tt.status || endpointtest.Undescribed(w.Body.String()) != tt.body || time.Since(begun) != tt.took {
					t.Errorf("got %d %s after %s", w.Code, w.Body, time.Since(begun))
				}
				if err := <-ended; (err != nil) != tt.failed || q.looks != tt.looks {
					t.Errorf("Poll ended with %v after %d looks", err, q.looks)
				}
			})
		})
	}
}

func TestOpenAPI_describesPolls(t *testing.T) {
	var document any
	if err := json.Unmarshal(newHandler((&queue{}).table(nil)).OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	for place, want := range map[string]string{
		"paths /jobs/request post x-long-poll":   `{"seconds":50}`,
		"paths /jobs/request post responses 204": `{"description":"There is none."}`,
	} {
		if got := find(document, place); !equalJSON(t, got, want) {
			shown, _ := json.Marshal(got)
			t.Errorf("%s:\ngot  %s\nwant %s", place, shown, want)
		}
	}
}
