package change

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
)

// maxEvents is the maximum number of events that wait for a follower. Further ones are dropped.
const maxEvents = 1000

// Feed passes events to followers in the background. Followers can miss events, as Event says.
type Feed struct {
	log       logr.Logger
	followers []follower
}

type follower struct {
	name   string
	follow func(context.Context, Event) error
	events chan Event
}

// NewFeed returns a feed without followers, which logs their errors.
func NewFeed(log logr.Logger) *Feed { return &Feed{log: log} }

// Follow adds a follower, which handles one event at a time. Call it before Run.
func (f *Feed) Follow(name string, follow func(context.Context, Event) error) {
	f.followers = append(f.followers, follower{name, follow, make(chan Event, maxEvents)})
}

// Publish passes an event to the followers. It does not block.
func (f *Feed) Publish(e Event) {
	for _, to := range f.followers {
		select {
		case to.events <- e:
		default:
		}
	}
}

// Run runs the followers until ctx ends.
func (f *Feed) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, to := range f.followers {
		all.Go(func() {
			for {
				select {
				case e := <-to.events:
					if err := to.follow(ctx, e); err != nil && ctx.Err() == nil {
						f.log.Error(err, "Failed to follow a write of refs", "follower", to.name, "project", e.Project)
					}
				case <-ctx.Done():
					return
				}
			}
		})
	}
	all.Wait()
}
