package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forgeplane"
	"github.com/forgeplane/forgeplane/test/history"
)

const (
	// slowClones is the number of clones that one client begins at once, slowCommits is the number of their commits, and slowRounds is the number
	// of clones of another client that are measured at the same time.
	slowClones  = 64
	slowCommits = 20_000
	slowRounds  = 7
	// slowRate is the rate of each clone in bytes per second: just enough not to be cut off.
	slowRate = 72 << 10
	// settled is the minimum number of clones that must have a slot before the measurement. Each of them has by then received more than the first
	// messages of git, so that they all wait only for their client.
	settled      = 16
	settledBytes = 128 << 10
	slowTimeout  = 2 * time.Minute

	slowUser = "slow"
)

// slowClient is a client that begins many clones and reads little of each.
type slowClient struct {
	url, token, commit string
	http               *http.Client
	// settled counts the clones that have received settledBytes.
	settled atomic.Int64
}

// newSlowClient declares a user with a token that can read everything.
func (s *servers) newSlowClient(ctx context.Context, url, commit string) (*slowClient, error) {
	token := &v1alpha1.AccessToken{
		ObjectMeta: metav1.ObjectMeta{Name: slowUser},
		Spec: v1alpha1.AccessTokenSpec{
			UserRef: v1alpha1.Reference{Name: slowUser}, Scopes: []v1alpha1.TokenScope{v1alpha1.ScopeAPI},
			SecretRef: &v1alpha1.SecretKeyReference{Name: "token-" + slowUser},
		},
	}
	err := s.Create(ctx, &v1alpha1.User{
		ObjectMeta: metav1.ObjectMeta{Name: slowUser}, Spec: v1alpha1.UserSpec{Username: slowUser, Admin: true},
	}, token)
	if err != nil {
		return nil, err
	}
	var secret corev1.Secret
	if err := s.Client().Get(ctx, client.ObjectKey{Namespace: forgeplane.Namespace, Name: token.Spec.SecretRef.Name}, &secret); err != nil {
		return nil, fmt.Errorf("reading the token of a client: %w", err)
	}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
			err = tcp.SetReadBuffer(16 << 10) // so that data that the client does not read stays at the server
		}
		return conn, err
	}
	return &slowClient{
		url: url, token: string(secret.Data["token"]), commit: commit,
		http: &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true, DisableCompression: true}},
	}, nil
}

// start begins the clones, and returns when enough of them are served. stop ends them.
func (c *slowClient) start(ctx context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	stop = func() { cancel(); all.Wait() }
	c.settled.Store(0)
	for range slowClones {
		all.Go(func() {
			for ctx.Err() == nil {
				c.clone(ctx)
				pause(ctx, 100*time.Millisecond)
			}
		})
	}
	deadline, done := context.WithTimeoutCause(ctx, slowTimeout, fmt.Errorf("%d slow clones did not begin within %s", settled, slowTimeout))
	defer done()
	for c.settled.Load() < settled {
		if pause(deadline, 10*time.Millisecond); deadline.Err() != nil {
			stop()
			return nil, context.Cause(deadline)
		}
	}
	return stop, nil
}

// pause waits for a while, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// clone requests all objects, and reads them slowly. The server is free to refuse it or to cut it off.
func (c *slowClient) clone(ctx context.Context) {
	var body bytes.Buffer
	for _, line := range []string{"command=fetch\n", "", "no-progress\n", "ofs-delta\n", "want " + c.commit + "\n", "done\n"} {
		if line == "" {
			body.WriteString("0001")
			continue
		}
		fmt.Fprintf(&body, "%04x%s", len(line)+4, line)
	}
	body.WriteString("0000")
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/git-upload-pack", &body)
	if err != nil {
		return
	}
	r.SetBasicAuth(slowUser, c.token)
	r.Header.Set("Content-Type", "application/x-git-upload-pack-request")
	r.Header.Set("Git-Protocol", "version=2")
	answer, err := c.http.Do(r)
	if err != nil {
		return
	}
	defer func() { _ = answer.Body.Close() }()
	taken, err := io.CopyN(io.Discard, answer.Body, settledBytes)
	if err != nil || taken < settledBytes {
		return
	}
	c.settled.Add(1)
	const perSecond = 10
	for err == nil && ctx.Err() == nil {
		_, err = io.CopyN(io.Discard, answer.Body, slowRate/perSecond)
		pause(ctx, time.Second/perSecond)
	}
}

// measureSlow measures a clone with and without many slow clones of another client, both of the same repository and of another one.
func (s *servers) measureSlow(ctx context.Context) error {
	s.bench.say("making a repository of %d commits for slow clients", slowCommits)
	directory, err := newDirectory(s.bench.directory, "slow")
	if err != nil {
		return err
	}
	if err := s.client.History(ctx, directory, history.Options{Commits: slowCommits}); err != nil {
		return err
	}
	large, err := s.serve(ctx, "slow", directory)
	if err != nil {
		return err
	}
	other, err := s.serve(ctx, "beside-slow", s.checkout)
	if err != nil {
		return err
	}
	commit, err := s.client.Run(ctx, directory, nil, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	slow, err := s.newSlowClient(ctx, large.ours, commit)
	if err != nil {
		return err
	}
	for _, row := range []struct {
		id  string
		one *site
	}{{rowCloneBeside, other}, {rowCloneBesideSame, large}} {
		if !s.bench.wants(row.id) {
			continue
		}
		s.bench.describe(row.id, row.one.size())
		if err := s.compareBeside(ctx, row.id, row.one, slow); err != nil {
			return err
		}
	}
	return nil
}

// compareBeside measures clones of one repository in turn, with and without the slow clones.
func (s *servers) compareBeside(ctx context.Context, id string, one *site, slow *slowClient) error {
	clone := func(int) (float64, error) {
		took, err := s.client.Clone(ctx, one.ours)
		return milliseconds(took), err
	}
	beside := func(round int) (took float64, err error) {
		stop, err := slow.start(ctx)
		if err != nil {
			return 0, err
		}
		defer stop()
		if took, err = clone(round); err != nil {
			err = errors.Join(errors.New("another client cannot clone beside slow ones"), err)
		}
		return took, err
	}
	if _, err := clone(0); err != nil {
		return err
	}
	o, r, err := alternate(exactly(slowRounds), beside, clone)
	if err != nil {
		return err
	}
	s.bench.record(id, o, r)
	return nil
}
