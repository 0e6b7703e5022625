package git

import (
	"context"
	"sync"
	"syscall"

	"github.com/forgeplane/forgeplane/internal/fair"
)

const (
	// niceness is that of commands that others need not wait for.
	niceness = 10
	// niceStep is how much nicer a process is for each other one that its caller has, up to mostNice. A step of 5 gives a process a third of
	// the time of one before it, where there are not processors for both.
	niceStep, mostNice = 5, 19
)

// crowds counts the processes of callers, but for those that end at once or that others use as well.
type crowds struct {
	mu sync.Mutex
	of map[fair.Key]int
}

// join counts one more process of the caller of ctx until leave is called, and returns how many there were before.
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

// benice gives the processes of a group their niceness: slots count requests, and this shares the processors. The first process of a
// caller goes before the second one of another.
func (c command) benice(group int) {
	nice := min(niceStep*c.others, mostNice)
	if c.nice {
		nice = min(niceness+nice, mostNice)
	}
	if nice > 0 {
		_ = syscall.Setpriority(syscall.PRIO_PGRP, group, nice) // it may have ended
	}
}
