package process

import (
	"context"
	"sync"
	"syscall"

	"github.com/forgeplane/forgeplane/internal/fair"
)

const (
	// priority is the niceness of background commands.
	priority = 10
	// niceStep is added to the niceness for each other process of the caller, up to mostNice. With a step of 5, a process gets a third of
	// the time of the previous one if they compete for a processor.
	niceStep, mostNice = 5, 19
)

// crowds counts the processes of callers, except short ones and those that callers share.
type crowds struct {
	mu sync.Mutex
	of map[fair.Key]int
}

// join counts one more process of the caller of ctx until leave is called, and returns the number before that.
func (c *crowds) join(ctx context.Context) (others int, leave func()) {
	k := fair.From(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	others = c.of[k]
	c.of[k]++
	return others, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.of[k]--; c.of[k] == 0 {
			delete(c.of, k)
		}
	}
}

// benice sets the niceness of the processes of a group. Slots limit requests; this shares the processors. The first process of a caller has
// a higher priority than the second one of another.
func (c Command) benice(group int) {
	nice := min(niceStep*c.others, mostNice)
	if c.Nice {
		nice = min(priority+nice, mostNice)
	}
	if nice > 0 {
		_ = syscall.Setpriority(syscall.PRIO_PGRP, group, nice) // it may have ended
	}
}
