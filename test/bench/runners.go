package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/forgeplane/forgeplane/test/bench/traffic"
)

// runner is a client that asks for jobs in the way of gitlab-runner.
type runner struct {
	of    *pipelines
	token string
	// lastUpdate is the last version of the queue that the server has sent. While it is current, the server lets the runner wait.
	lastUpdate string
}

// job is a job that a runner has been given. text is the answer that has given it.
type job struct {
	ID    int64
	Token string
	text  []byte
}

// dialFromSeveral returns a function that opens connections from several addresses of this machine, because the server limits the connections of each.
func dialFromSeveral() func(ctx context.Context, network, address string) (net.Conn, error) {
	const addresses = 4
	var dialed atomic.Uint32
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		from := net.IPv4(127, 0, 0, byte(2+dialed.Add(1)%addresses))
		return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}).DialContext(ctx, network, address)
	}
}

// register creates runners of a project.
func (p *pipelines) register(ctx context.Context, project int64, number int) ([]*runner, error) {
	all := make([]*runner, number)
	creates, ctx := errgroup.WithContext(ctx)
	creates.SetLimit(creators)
	for n := range all {
		creates.Go(func() error {
			body := map[string]any{"runner_type": "project_type", "project_id": project}
			answer, text, err := p.sendJSON(ctx, http.MethodPost, "/user/runners", body, "PRIVATE-TOKEN", p.token)
			if err == nil && answer.StatusCode != http.StatusCreated {
				err = fmt.Errorf("a runner was answered with %s: %s", answer.Status, text)
			}
			if err != nil {
				return err
			}
			all[n] = &runner{of: p}
			var made struct{ Token string }
			err = json.Unmarshal(text, &made)
			all[n].token = made.Token
			return err
		})
	}
	return all, creates.Wait()
}

// sendJSON sends a request with JSON, and returns the answer and its content. header has names, each followed by its value.
func (p *pipelines) sendJSON(ctx context.Context, method, path string, body any, header ...string) (*http.Response, []byte, error) {
	content, err := json.Marshal(body)
	if err != nil {
		return nil, nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, p.URL()+"/api/v4"+path, bytes.NewReader(content))
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	for n := 0; n < len(header); n += 2 {
		request.Header.Set(header[n], header[n+1])
	}
	return do(p.runners, request)
}

// ask asks for a job. It returns nil if the server has none, after it has let the runner wait.
func (r *runner) ask(ctx context.Context) (*job, error) {
	answer, text, err := r.of.sendJSON(ctx, http.MethodPost, "/jobs/request", map[string]any{
		"token": r.token, "last_update": r.lastUpdate,
		"info": map[string]any{"name": "gitlab-runner", "version": "18.0.0", "platform": "linux", "architecture": "amd64", "executor": "shell"},
	})
	if err != nil {
		return nil, err
	}
	if update := answer.Header.Get("X-Gitlab-Last-Update"); update != "" {
		r.lastUpdate = update
	}
	switch answer.StatusCode {
	case http.StatusCreated:
		given := &job{text: text}
		return given, json.Unmarshal(text, given)
	case http.StatusNoContent:
		return nil, nil
	default:
		return nil, fmt.Errorf("a runner was answered with %s: %s", answer.Status, text)
	}
}

// wait asks until ctx ends. There must be no jobs.
func (r *runner) wait(ctx context.Context) error {
	for ctx.Err() == nil {
		given, err := r.ask(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the wait is over
		case err != nil:
			return err
		case given != nil:
			return fmt.Errorf("a runner was given the job %d, which it should not get", given.ID)
		}
	}
	return nil
}

// handOut lets runners request jobs until they have a number of different jobs. It returns the jobs, and the time from the first request to the last job.
// The error says that a job was given twice, or that the time is over.
func (p *pipelines) handOut(ctx context.Context, all []*runner, number int) (taken []job, took time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, handOutTimeout, fmt.Errorf("not all jobs were given to runners within %s", handOutTimeout))
	defer cancel()
	asking, stop := context.WithCancel(ctx)
	defer stop()
	begun := time.Now()
	var mu sync.Mutex
	take := func(given job) error {
		mu.Lock()
		defer mu.Unlock()
		if p.given[given.ID] {
			return fmt.Errorf("the job %d was given to two runners", given.ID)
		}
		p.given[given.ID] = true
		took = time.Since(begun)
		if taken = append(taken, given); len(taken) == number {
			stop()
		}
		return nil
	}
	runners, asking := errgroup.WithContext(asking)
	for _, r := range all {
		runners.Go(func() error {
			for {
				given, err := r.ask(asking)
				switch {
				case err == nil && given != nil:
					if err := take(*given); err != nil {
						return err
					}
				case asking.Err() != nil:
					return nil //nolint:nilerr // all jobs are given
				case err != nil:
					return err
				}
			}
		})
	}
	if err = runners.Wait(); err == nil && len(taken) < number {
		err = context.Cause(ctx)
	}
	return taken, took, err
}

// measureTrace measures how fast the runners of some jobs add to their logs, and how fast a handler takes the same requests and ignores them.
func (p *pipelines) measureTrace(ctx context.Context, taken []job) error {
	return p.compareWrites(ctx, rowTrace, func(server string) traffic.Dial { return p.logs(server, taken) })
}

// logs returns a function that opens connections to a server. Each connection appends to the log of a different job.
func (p *pipelines) logs(server string, of []job) traffic.Dial {
	idle := make(chan *jobLog, len(of))
	for _, j := range of {
		idle <- &jobLog{client: p.runners, url: fmt.Sprintf("%s/api/v4/jobs/%d/trace", server, j.ID), token: j.Token, idle: idle}
	}
	return func(ctx context.Context) (traffic.Connection, error) {
		select {
		case l := <-idle:
			return l, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// jobLog is a connection that adds to the log of a job.
type jobLog struct {
	client     *http.Client
	url, token string
	size       int
	// idle gets the log back when the connection is closed.
	idle chan<- *jobLog
}

// logPart is a part of a log.
var logPart = []byte(strings.Repeat("ok      example.com/one/of/many/packages        0.123s  cached\n", 16))

// Exchange implements traffic.Connection.
func (l *jobLog) Exchange(ctx context.Context) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, l.url, bytes.NewReader(logPart))
	if err != nil {
		return 0, err
	}
	request.Header.Set("JOB-TOKEN", l.token)
	request.Header.Set("Content-Type", "text/plain")
	request.Header.Set("Content-Range", fmt.Sprintf("%d-%d", l.size, l.size+len(logPart)-1))
	l.size += len(logPart)
	answer, _, err := do(l.client, request)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, nil
}

// Close implements traffic.Connection.
func (l *jobLog) Close() error {
	l.idle <- l
	return nil
}
