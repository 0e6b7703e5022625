package crash

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/terminal"
)

// pusher is a client that pushes one commit after the other: each to a branch that goes on, and to one of its own.
type pusher struct {
	name    string
	project string
	clone   terminal.Terminal
	// commits are those that were pushed, in order, be it in vain.
	commits []string
	// accepted are the indices of those that git said were pushed.
	accepted map[int]bool
}

func newPusher(name, project string) *pusher {
	GinkgoHelper()
	return &pusher{name: name, project: project, clone: owner().Clone(machine.url(project)), accepted: map[int]bool{}}
}

// line is the branch that goes on, single that of one commit.
func (p *pusher) line() string             { return "refs/heads/" + p.name }
func (p *pusher) single(number int) string { return fmt.Sprintf("refs/heads/%s-%d", p.name, number) }

// push pushes one more commit.
func (p *pusher) push() (screen string, err error) {
	GinkgoHelper()
	number := len(p.commits)
	p.commits = append(p.commits, p.clone.Commit(fmt.Sprintf("file-%d.txt", number%7), fmt.Sprintln(p.name, number)))
	screen, err = p.clone.Try("git", "push", "origin", "HEAD:"+p.line(), "HEAD:"+p.single(number))
	if err == nil {
		p.accepted[number] = true
	}
	return screen, err
}

// expectKept expects that the repository has every push that was seen accepted, and nothing that was not pushed.
func (p *pusher) expectKept(refs map[string]string) {
	GinkgoHelper()
	last := -1
	if numbers := slices.Sorted(maps.Keys(p.accepted)); len(numbers) > 0 {
		last = numbers[len(numbers)-1]
	}
	for number := range p.accepted {
		Expect(refs).To(HaveKeyWithValue(p.single(number), p.commits[number]), "the client saw that it was accepted")
	}
	if last >= 0 {
		Expect(slices.Index(p.commits, refs[p.line()])).To(BeNumerically(">=", last), "the branch has not gone back")
	}
	for ref, commit := range refs {
		if strings.HasPrefix(ref, p.line()+"-") {
			Expect(p.commits).To(ContainElement(commit))
		}
	}
}

// crowd are pushers that push at the same time, until they are told to stop or fail.
type crowd struct {
	stop context.CancelFunc
	cut  chan bool
	size int
}

// push lets all of them push.
func push(pushers []*pusher) *crowd {
	ctx, cancel := context.WithCancel(context.Background())
	c := &crowd{stop: cancel, cut: make(chan bool, len(pushers)), size: len(pushers)}
	for _, p := range pushers {
		go func() {
			defer GinkgoRecover()
			var err error
			defer func() { c.cut <- err != nil }()
			for ctx.Err() == nil && err == nil {
				_, err = p.push()
			}
		}()
	}
	return c
}

// join returns when each has ended, with how many pushes failed.
func (c *crowd) join() (cut int) {
	c.stop()
	for range c.size {
		if <-c.cut {
			cut++
		}
	}
	return cut
}
