package crash

import (
	"context"
	"errors"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
)

// user is a user of a project at a server.
type user interface {
	// use uses the project once. It returns no error if the server refuses because the repository is being moved.
	use() error
}

// crowd are users who use projects at the same time until they are stopped or fail.
type crowd struct {
	stop  context.CancelFunc
	ended chan failure
	size  int
}

// failure is the end of a user. Its error is nil if the user was stopped.
type failure struct {
	of  user
	err error
}

// work makes all users work.
func work[U user](users []U) *crowd {
	ctx, cancel := context.WithCancel(context.Background())
	c := &crowd{stop: cancel, ended: make(chan failure, len(users)), size: len(users)}
	for _, one := range users {
		go func() {
			defer GinkgoRecover()
			err := errors.New("it panicked")
			defer func() { c.ended <- failure{one, err} }()
			for err = nil; ctx.Err() == nil && err == nil; {
				err = one.use()
			}
		}()
	}
	return c
}

// join returns when all users have ended, with those that have failed.
func (c *crowd) join() (cut []failure) {
	c.stop()
	for range c.size {
		if f := <-c.ended; f.err != nil {
			cut = append(cut, f)
		}
	}
	return cut
}

func (f failure) String() string { return fmt.Sprintf("%v: %v", f.of, f.err) }
