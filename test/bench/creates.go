package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

const createRounds = 101

// measureCreate compares the creation of a protection over REST with the creation of the same object over the Kubernetes API.
func (r *rest) measureCreate(ctx context.Context) error {
	rule := func(branch string) *v1alpha1.ProtectedBranch {
		return &v1alpha1.ProtectedBranch{
			ObjectMeta: metav1.ObjectMeta{Namespace: restNamespace, Name: "bare-" + branch},
			Spec: v1alpha1.ProtectedBranchSpec{
				ProjectRef: &v1alpha1.Reference{Name: projectName(1)}, Branch: branch,
				Push:  []v1alpha1.AccessLevel{{Role: v1alpha1.AccessMaintainer}},
				Merge: []v1alpha1.AccessLevel{{Role: v1alpha1.AccessMaintainer}},
			},
		}
	}
	return r.compareCreates(ctx, rowRESTCreate, "protectedbranch",
		func(n int) error {
			return r.post(ctx, fmt.Sprintf("/projects/%d/protected_branches", r.project), fmt.Sprintf("name=over-rest-%d", n))
		},
		func(n int) error { return r.Client().Create(ctx, rule(fmt.Sprintf("over-kubernetes-%d", n))) })
}

// compareCreates fills in a row with two ways to create the nth object, which a controller reconciles. No other work is left when either of them
// begins.
func (r *rest) compareCreates(ctx context.Context, row, controller string, overREST, overKubernetes func(n int) error) error {
	timed := func(create func(n int) error) func(int) (float64, error) {
		return func(n int) (float64, error) {
			if err := r.AwaitQuiet(ctx, controller, 0); err != nil {
				return 0, err
			}
			begun := time.Now()
			err := create(n)
			return milliseconds(time.Since(begun)), err
		}
	}
	ours, bare := timed(overREST), timed(overKubernetes)
	if _, _, err := alternate(exactly(2), func(n int) (float64, error) { return ours(createRounds + n) },
		func(n int) (float64, error) { return bare(createRounds + n) }); err != nil {
		return err
	}
	o, k, err := alternate(exactly(createRounds), ours, bare)
	r.bench.record(row, o, k)
	return err
}
