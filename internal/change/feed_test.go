package change_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/change"
)

func TestFeed_passesEventsToEachFollowerInOrder(t *testing.T) {
	g, feed := NewWithT(t), change.NewFeed(logr.Discard())
	quick, busy := make(chan string, 2), make(chan string) // nothing reads from busy at first
	for name, to := range map[string]chan string{"quick": quick, "busy": busy} {
		feed.Follow(name, func(ctx context.Context, e change.Event) error {
			select {
			case to <- e.Project.Name:
			case <-ctx.Done():
			}
			return errors.New("the next event comes nevertheless")
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); feed.Run(ctx) }()
	for _, name := range []string{"web", "app"} {
		feed.Publish(change.Event{Project: types.NamespacedName{Name: name}})
	}
	for _, to := range []chan string{quick, busy} {
		for _, name := range []string{"web", "app"} {
			g.Eventually(to).Should(Receive(Equal(name)))
		}
	}
	for range 2000 {
		feed.Publish(change.Event{}) // it does not block
	}
	stop()
	g.Eventually(ended).Should(BeClosed())
}
