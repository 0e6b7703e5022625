package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/bench/figures"
	"github.com/forgeplane/forgeplane/test/bench/testbed"
)

const (
	rules = 500

	pushedBranch = "feature"
	// observeTimeout limits the time until the status of a project shows a push.
	observeTimeout = time.Minute
)

// toTheMillisecond measures until a difference in milliseconds is known to about one millisecond.
var toTheMillisecond = rounds{least: 41, most: 301, enough: func(ours, reference []float64) bool {
	return figures.Differences(ours, reference).StandardError() <= 1
}}

// pusher pushes one commit after another.
type pusher struct {
	*servers
	directory string
	commits   []string
}

// newPusher creates a repository to push from.
func (s *servers) newPusher(ctx context.Context, name, from string) (*pusher, error) {
	directory, err := newDirectory(s.bench.directory, name)
	if err != nil {
		return nil, err
	}
	p := &pusher{servers: s, directory: directory}
	_, err = s.client.Run(ctx, directory, nil, "clone", "--quiet", "--bare", from, ".")
	return p, err
}

// push pushes the commit with a number and returns the time in milliseconds. The numbers must be consecutive.
func (p *pusher) push(ctx context.Context, url string, number int) (float64, error) {
	if number == len(p.commits) {
		commit, err := p.client.Commit(ctx, p.directory, pushedBranch, number)
		if err != nil {
			return 0, err
		}
		p.commits = append(p.commits, commit)
	}
	took, err := p.client.Push(ctx, p.directory, url, p.commits[number], pushedBranch)
	return milliseconds(took), err
}

// pushObserved pushes to Forgeplane, and then waits until all work that follows from the push is done, so that it does not disturb the next push,
// which may go to the other server.
func (p *pusher) pushObserved(ctx context.Context, one *site, number int) (float64, error) {
	took, err := p.push(ctx, one.ours, number)
	if err != nil {
		return 0, err
	}
	return took, p.awaitObserved(ctx, one)
}

// awaitObserved waits until the status of a project shows a push, and all work that follows from it is done.
func (s *servers) awaitObserved(ctx context.Context, one *site) error {
	waiting, cancel := context.WithTimeoutCause(ctx, observeTimeout, fmt.Errorf("a push was not observed within %s", observeTimeout))
	defer cancel()
	before := one.project.Status.RefsChecksum
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for one.project.Status.RefsChecksum == before {
		select {
		case <-ticker.C:
		case <-waiting.Done():
			return context.Cause(waiting)
		}
		if err := s.Client().Get(waiting, client.ObjectKeyFromObject(one.project), one.project); err != nil {
			return err
		}
	}
	return s.AwaitQuiet(ctx, "protectedbranch", 0)
}

// measurePush compares pushes of the same commits to an unprotected branch.
func (s *servers) measurePush(ctx context.Context, one *site) error {
	const warmUp = 2
	p, err := s.newPusher(ctx, "push", one.ours)
	if err != nil {
		return err
	}
	from := func(first int) (ours, reference func(round int) (float64, error)) {
		return func(round int) (float64, error) { return p.pushObserved(ctx, one, first+round) },
			func(round int) (float64, error) { return p.push(ctx, one.reference, first+round) }
	}
	ours, reference := from(0)
	if _, _, err := alternate(exactly(warmUp), ours, reference); err != nil {
		return err
	}
	ours, reference = from(warmUp)
	o, r, err := alternate(until(pushRounds), ours, reference)
	if err != nil {
		return err
	}
	s.bench.record(rowPush, o, r)
	return nil
}

// measureRules compares pushes to two projects of the same content, to a branch that one rule of each project protects.
func (s *servers) measureRules(ctx context.Context) error {
	s.bench.say("making a project with 1 rule and one with %d", rules)
	few, err := s.protected(ctx, "few-rules", 1)
	if err != nil {
		return err
	}
	many, err := s.protected(ctx, "many-rules", rules)
	if err != nil {
		return err
	}
	const warmUp = 2
	p, err := s.newPusher(ctx, "push-rules", few.ours)
	if err != nil {
		return err
	}
	to := func(one *site, first int) func(round int) (float64, error) {
		return func(round int) (float64, error) { return p.pushObserved(ctx, one, first+round) }
	}
	if _, _, err := alternate(exactly(warmUp), to(many, 0), to(few, 0)); err != nil {
		return err
	}
	o, r, err := alternate(toTheMillisecond, to(many, warmUp), to(few, warmUp))
	if err != nil {
		return err
	}
	s.bench.record(rowPushRules, o, r)
	return nil
}

// protected returns a project with the content of this repository and a given number of rules, the first of which protects the branch of the
// pushes.
func (s *servers) protected(ctx context.Context, name string, number int) (*site, error) {
	one, err := s.serve(ctx, name, s.checkout)
	if err != nil {
		return nil, err
	}
	// This is the rule that the project has created for its default branch.
	err = s.Client().DeleteAllOf(ctx, &v1alpha1.ProtectedBranch{}, client.InNamespace(gitNamespace),
		client.HasLabels{v1alpha1.LabelDefaultProtection})
	if err != nil {
		return nil, err
	}
	all := make([]testbed.Object, number)
	for n := range all {
		all[n] = rule(name, n)
	}
	if err := s.Create(ctx, all...); err != nil {
		return nil, err
	}
	return one, s.AwaitQuiet(ctx, "protectedbranch", 0)
}

// rule returns one of many rules. Half of them are wildcards, and each names a role, a user and a group.
func rule(project string, number int) *v1alpha1.ProtectedBranch {
	branch := pushedBranch
	if number > 0 {
		branch = fmt.Sprintf("release/%d", number)
		if number%2 == 0 {
			branch += "-*"
		}
	}
	return &v1alpha1.ProtectedBranch{
		ObjectMeta: metav1.ObjectMeta{Namespace: gitNamespace, Name: fmt.Sprintf("%s-%d", project, number)},
		Spec: v1alpha1.ProtectedBranchSpec{
			ProjectRef: &v1alpha1.Reference{Name: project}, Branch: branch,
			Push: []v1alpha1.AccessLevel{
				{Role: v1alpha1.AccessMaintainer},
				{UserRef: &v1alpha1.Reference{Path: testbed.Administrator}},
				{GroupRef: &v1alpha1.Reference{Path: gitNamespace}},
			},
		},
	}
}
