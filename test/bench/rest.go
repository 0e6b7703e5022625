package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/bench/testbed"
	"github.com/forgeplane/forgeplane/test/bench/usage"
	"github.com/forgeplane/forgeplane/test/forgeplane"
)

const (
	restNamespace = "rest"
	// restProjects is the number of projects in one group. The first project has some rules from the beginning.
	restProjects = 2500
	listedRules  = 45
	rulesEach    = 20
	allRules     = listedRules + (restProjects-1)*rulesEach

	restUser = "mary"
	// identity is the Kubernetes identity of the user.
	identity = "mary@example.com"
)

// rest is a testbed with projects, and a user with a role in them.
type rest struct {
	*load
	bench *bench
	token string
	// project is the id of the project with the rules.
	project int64
}

func (b *bench) measureREST(ctx context.Context) error {
	return b.with(ctx, "rest", func(ctx context.Context, t *testbed.Testbed) error {
		r, err := b.newREST(t)
		if err != nil {
			return err
		}
		b.say("making %d projects", restProjects)
		if err := r.populate(ctx); err != nil {
			return err
		}
		if b.wants(rateRows...) {
			if err := r.measureRates(ctx, r.questions()); err != nil {
				return err
			}
		}
		if b.wants(rowRESTCreate) {
			if err := r.measureCreate(ctx); err != nil {
				return err
			}
		}
		if b.wants(rowRESTMemory, rowRESTMemoryPeak) {
			return r.measureMemory(ctx)
		}
		return nil
	})
}

// newREST returns a testbed without projects and users.
func (b *bench) newREST(t *testbed.Testbed) (*rest, error) {
	l, err := newCreators(t)
	return &rest{load: l, bench: b}, err
}

// introduce creates the group, and a user who is Maintainer in it and whom RBAC admits.
func (r *rest) introduce(ctx context.Context) error {
	meta := metav1.ObjectMeta{Name: restUser}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"rest.forgeplane.dev", referenceGroup}, Resources: []string{"*"}, Verbs: []string{"*"},
	}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: identity}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: restUser},
	}
	for _, object := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: restNamespace}}, role, binding} {
		if err := r.Client().Create(ctx, object); err != nil {
			return fmt.Errorf("making what the benchmarks of REST need: %w", err)
		}
	}
	user := v1alpha1.Reference{Name: restUser}
	err := r.Create(ctx, newGroup(restNamespace),
		&v1alpha1.User{ObjectMeta: meta, Spec: v1alpha1.UserSpec{
			Username: restUser, Name: "Mary Maintainer", Email: identity, Kubernetes: &v1alpha1.KubernetesIdentity{Username: identity},
		}},
		&v1alpha1.AccessToken{ObjectMeta: meta, Spec: v1alpha1.AccessTokenSpec{
			UserRef: user, Scopes: []v1alpha1.TokenScope{v1alpha1.ScopeAPI}, SecretRef: &v1alpha1.SecretKeyReference{Name: restUser},
		}},
		&v1alpha1.Membership{ObjectMeta: metav1.ObjectMeta{Namespace: restNamespace, Name: restUser}, Spec: v1alpha1.MembershipSpec{
			UserRef: user, GroupRef: &v1alpha1.Reference{Name: restNamespace}, Role: v1alpha1.RoleMaintainer,
		}})
	if err != nil {
		return err
	}
	var secret corev1.Secret
	if err := r.Client().Get(ctx, client.ObjectKey{Namespace: forgeplane.Namespace, Name: restUser}, &secret); err != nil {
		return fmt.Errorf("reading the token: %w", err)
	}
	r.token = string(secret.Data["token"])
	return nil
}

// populate creates the group, its projects and rules.
func (r *rest) populate(ctx context.Context) error {
	if err := r.introduce(ctx); err != nil {
		return err
	}
	projects := make([]*v1alpha1.Project, restProjects)
	for n := range projects {
		projects[n] = newProject(restNamespace, projectName(n), "")
		projects[n].Spec.Description = "One of many projects, with a description of a usual length."
	}
	if err := each(ctx, r.load, projects, create); err != nil {
		return err
	}
	if err := each(ctx, r.load, rulesOf(0, listedRules), create); err != nil {
		return err
	}
	if err := r.AwaitQuiet(ctx, "project", restProjects); err != nil {
		return err
	}
	var first v1alpha1.Project
	if err := r.Client().Get(ctx, client.ObjectKeyFromObject(projects[0]), &first); err != nil {
		return err
	}
	if r.project = first.Spec.ID; r.project == 0 {
		return errors.New("the first project has no id")
	}
	return nil
}

func create[T client.Object](ctx context.Context, c client.Client, object T) error {
	return c.Create(ctx, object)
}

// rulesOf returns protections of a project, none of which is for its default branch.
func rulesOf(project, number int) []*v1alpha1.ProtectedBranch {
	all := make([]*v1alpha1.ProtectedBranch, number)
	for n := range all {
		all[n] = &v1alpha1.ProtectedBranch{
			ObjectMeta: metav1.ObjectMeta{Namespace: restNamespace, Name: fmt.Sprintf("rule-%d-%d", project, n), Labels: made},
			Spec: v1alpha1.ProtectedBranchSpec{
				ProjectRef: &v1alpha1.Reference{Name: projectName(project)}, Branch: fmt.Sprintf("release/%02d/*", n),
				Push: []v1alpha1.AccessLevel{{Role: v1alpha1.AccessDeveloper}, {UserRef: &v1alpha1.Reference{Name: restUser}}},
			},
		}
	}
	return all
}

// measureMemory creates the rules of every project, restarts Forgeplane when all of them are ready, and measures its memory.
func (r *rest) measureMemory(ctx context.Context) error {
	if err := r.StopForgeplane(); err != nil {
		return err
	}
	begun := time.Now()
	for n := 1; n < restProjects; n++ {
		if err := each(ctx, r.load, rulesOf(n, rulesEach), create); err != nil {
			return err
		}
	}
	r.bench.say("%d rules were written after %.0f s", allRules-listedRules, time.Since(begun).Seconds())
	if err := r.restartQuiet(ctx); err != nil {
		return err
	}
	r.bench.say("all rules are reconciled")
	if err := r.StopForgeplane(); err != nil {
		return err
	}
	if err := r.restartQuiet(ctx); err != nil {
		return err
	}
	// Forgeplane returns the memory of the start a moment later.
	timer := time.NewTimer(idleTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	memory, err := usage.MemoryOf(r.PID())
	if err != nil {
		return err
	}
	alone, err := r.informersAlone(ctx)
	r.bench.record(rowRESTMemory, []float64{megabytes(memory.Resident)}, []float64{megabytes(alone.memory.Resident)})
	r.bench.record(rowRESTMemoryPeak, []float64{megabytes(memory.Peak)}, []float64{megabytes(alone.memory.Peak)})
	return err
}

func (r *rest) restartQuiet(ctx context.Context) error {
	if err := r.StartForgeplane(ctx); err != nil {
		return err
	}
	if err := r.AwaitServing(ctx); err != nil {
		return err
	}
	return r.AwaitQuiet(ctx, "protectedbranch", allRules)
}
