package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/bench/figures"
)

const (
	// pauseRounds is even, so that the project ends where it was.
	pauseRounds = 30
	// refusal is a part of the message with which a push is refused while the project is closed.
	refusal = "temporarily read-only"
)

// measurePause moves a project to and fro between two storages while a client pushes to it, and compares the longest push during each move with
// the longest push in the same time without a move.
func (s *servers) measurePause(ctx context.Context, one *site) error {
	s.bench.say("moving a project of %d commits to and fro under pushes", largeCommits)
	directory, err := os.MkdirTemp(s.bench.directory, "move-pause-")
	if err != nil {
		return err
	}
	other := &v1alpha1.RepositoryStorage{
		ObjectMeta: metav1.ObjectMeta{Name: "pause"}, Spec: v1alpha1.RepositoryStorageSpec{Path: directory, Weight: ptr.To[int32](0)},
	}
	if err := s.Create(ctx, other); err != nil {
		return err
	}
	p, err := s.newPusher(ctx, "push-pause", one.ours)
	if err != nil {
		return err
	}
	storages := []string{other.Name, one.project.Status.Storage}
	var took time.Duration
	moving := func(round int) (float64, error) {
		m := &v1alpha1.StorageMove{
			ObjectMeta: metav1.ObjectMeta{Namespace: gitNamespace, Name: fmt.Sprintf("pause-%d", round)},
			Spec:       v1alpha1.StorageMoveSpec{ProjectRef: v1alpha1.Reference{Name: one.project.Name}, Destination: storages[round%2]},
		}
		return p.longestDuring(ctx, one.ours, func(ctx context.Context) error {
			begun := time.Now()
			err := s.Create(ctx, m)
			took = time.Since(begun)
			return err
		})
	}
	still := func(int) (float64, error) {
		return p.longestDuring(ctx, one.ours, func(ctx context.Context) error {
			select {
			case <-time.After(took):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}
	o, r, err := alternate(exactly(pauseRounds), moving, still)
	if err != nil {
		return err
	}
	const share = 0.99
	s.bench.record(rowMovePause, []float64{figures.Summarize(o).Quantile(share)}, []float64{figures.Summarize(r).Quantile(share)})
	return nil
}

// longestDuring pushes one commit after another while do runs, and returns the longest time in milliseconds that a push has taken.
func (p *pusher) longestDuring(ctx context.Context, url string, do func(context.Context) error) (longest float64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var work errgroup.Group
	done := make(chan struct{})
	work.Go(func() error {
		defer close(done)
		return do(ctx)
	})
	for {
		took, err := p.pushPatiently(ctx, url)
		longest = max(longest, took)
		if err != nil {
			cancel()
			return 0, errors.Join(err, work.Wait())
		}
		select {
		case <-done:
			return longest, work.Wait()
		default:
		}
	}
}

// pushPatiently pushes a new commit, again and again while the project is closed, and returns the time of all attempts.
func (p *pusher) pushPatiently(ctx context.Context, url string) (total float64, err error) {
	number := len(p.commits)
	for {
		took, err := p.push(ctx, url, number)
		total += took
		if err == nil || !strings.Contains(err.Error(), refusal) {
			return total, err
		}
	}
}
