package jobtokenscopes

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/refusal"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/declare"
	"github.com/forgeplane/forgeplane/internal/naturalkey"
)

// change writes what mutate does to the job token scope of the request's project, which is made when there is none.
func (f *Family) change(ctx context.Context, subject auth.Project, mutate func(s *v1alpha1.JobTokenScope) error) error {
	scope := subject.Scope
	p := scope.Project
	s, err := f.catalog.JobTokenScopeOf(ctx, scope)
	if err != nil {
		return err
	}
	if s == nil {
		if err := f.writer.Allow(ctx, p, nil); err != nil {
			return refusal.Of(err, "")
		}
		first := fresh(p)
		if err := mutate(first); err != nil {
			return err
		}
		if err := f.writer.Create(ctx, first); !errors.Is(err, declare.ErrExists) {
			return refusal.Of(err, "")
		}
		// Somebody was faster, and the cache may still have to learn of it.
		s = fresh(p)
		if err := f.writer.Ensure(ctx, s); err != nil {
			return refusal.Of(err, "")
		}
		if holder, err := f.catalog.JobTokenScopeOf(ctx, scope); err != nil {
			return err
		} else if holder == nil || holder.UID != s.UID {
			return endpoint.Conflict("") // another project's scope has the name
		}
	}
	s = s.DeepCopy()
	if err := f.writer.Allow(ctx, p, s); err != nil {
		return refusal.Of(err, "")
	}
	return refusal.Of(f.writer.Update(ctx, s, func() error { return mutate(s) }), "")
}

// fresh is the job token scope of a project for which nothing is declared.
func fresh(p *v1alpha1.Project) *v1alpha1.JobTokenScope {
	return &v1alpha1.JobTokenScope{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: naturalkey.Name(p.Name)},
		Spec:       v1alpha1.JobTokenScopeSpec{ProjectRef: catalog.ReferNamed(p)},
	}
}
