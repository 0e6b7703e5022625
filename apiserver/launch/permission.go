package launch

import (
	"context"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/protection"
)

// MayRun reports whether a caller can run jobs with the rights that a branch or tag gives: those who can push to a branch, or merge into it.
func (l *Launcher) MayRun(ctx context.Context, s auth.Subject, name string, tag bool) (bool, error) {
	full := ref.Branches + name
	if tag {
		full = ref.Tags + name
	}
	rules, err := l.Guard.Rules(ctx, auth.Project{Subject: s}, []string{name})
	if err != nil {
		return false, err
	}
	verdict, err := protection.MayMerge(ctx, rules, l.Guard.Actor(s), full)
	return verdict.Allowed, err
}

// Permitted reports whether the user of a request of the server itself can run pipelines of the branch or tag now.
func (l *Launcher) Permitted(ctx context.Context, r Request) (bool, error) {
	access, err := l.Guard.Access(ctx, r.By, r.In)
	if err != nil || !access.RunsPipelines() || r.In.Project.Spec.Archived {
		return false, err
	}
	return l.MayRun(ctx, auth.Subject{Caller: r.By, Scope: r.In, Access: access}, r.Ref, r.Tag)
}

// Resolve returns the commit of a branch or tag of a project. A branch takes precedence over a tag with the same name. The error is refs.ErrNotFound if
// there is neither.
func (l *Launcher) Resolve(ctx context.Context, p *v1alpha1.Project, name string) (sha string, tag bool, err error) {
	if object.CheckRefName(ref.Branches+name) != nil {
		return "", false, refs.ErrNotFound
	}
	repo, err := l.Repositories.Content(ctx, p)
	var objects []git.Object
	if err == nil {
		objects, err = repo.Objects(ctx, ref.Branches+name, ref.Tags+name)
	}
	switch {
	case err != nil:
		return "", false, err
	case objects[0].ID != "":
		return objects[0].ID, false, nil
	case objects[1].ID == "":
		return "", false, refs.ErrNotFound
	}
	sha, err = refs.Commit(ctx, repo, name) // the tag can be an object of its own
	return sha, true, err
}
