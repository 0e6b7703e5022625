package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

const createRounds = 101

// measureCreate compares the creation of a protection over REST with that of the same object over the API of Kubernetes.
// Nothing else is to do when either begins.
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
	timed := func(create func(n int) error) func(int) (float64, error) {
		return func(n int) (float64, error) {
			if err := r.AwaitQuiet(ctx, "protectedbranch", 0); err != nil {
				return 0, err
			}
			begun := time.Now()
			err := create(n)
			return milliseconds(time.Since(begun)), err
		}
	}
	ours := timed(func(n int) error { return r.post(ctx, fmt.Sprintf("over-rest-%d", n)) })
	bare := timed(func(n int) error { return r.Client().Create(ctx, rule(fmt.Sprintf("over-kubernetes-%d", n))) })
	if _, _, err := alternate(exactly(2), func(n int) (float64, error) { return ours(createRounds + n) },
		func(n int) (float64, error) { return bare(createRounds + n) }); err != nil {
		return err
	}
	o, k, err := alternate(exactly(createRounds), ours, bare)
	r.bench.record(rowRESTCreate, o, k)
	return err
}

func (r *rest) post(ctx context.Context, branch string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		fmt.Sprintf("%s/api/v4/projects/%d/protected_branches", r.URL(), r.project), strings.NewReader("name="+branch))
	if err != nil {
		return err
	}
	request.Header.Set("PRIVATE-TOKEN", r.token)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err == nil && answer.StatusCode != http.StatusCreated {
		err = fmt.Errorf("creating a protection was answered with %s: %s", answer.Status, text)
	}
	return err
}
