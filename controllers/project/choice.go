package project

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/internal/retained"
)

// leftoverDelay is the delay before looking again at what a deleted project has left, while that is on its way.
const leftoverDelay = time.Second

// choose returns the retained repository that a project takes over, or nil if it gets a new one. If Forgeplane cannot decide that, the
// error says how the user can. fullPath is the project's; empty if it is not known yet.
func (c *Controller) choose(ctx context.Context, p *v1alpha1.Project, fullPath string) (*v1alpha1.RetainedRepository, error) {
	if err := c.awaitRecord(ctx, p); err != nil {
		return nil, err
	}
	all, err := retained.For(ctx, c.frame.Catalog, p, fullPath)
	if err != nil {
		return nil, err
	}
	candidates := concerned(all, p, fullPath)
	if len(candidates) == 0 && (p.Spec.AdoptRepository == "" || p.Spec.AdoptRepository == v1alpha1.AdoptNone) {
		return nil, nil
	}
	if err := c.awaitEnd(ctx, candidates); err != nil {
		return nil, err
	}
	namespace, err := c.namespaceUID(ctx, p.Namespace)
	if err != nil {
		return nil, err
	}
	return choice{p, fullPath, namespace}.of(candidates)
}

// awaitEnd waits until the projects that leave the repositories are gone, because they hold the id and the path until then.
func (c *Controller) awaitEnd(ctx context.Context, candidates []*v1alpha1.RetainedRepository) error {
	for _, r := range candidates {
		was := r.Spec.Project
		p, err := c.frame.Catalog.Project(ctx, was.Namespace, v1alpha1.Reference{Name: was.Name})
		if errors.Is(err, catalog.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if string(p.UID) == was.UID {
			return frame.Progressing(leftoverDelay, v1alpha1.ReasonProgressing, "the deleted project %s/%s leaves a repository and still exists: waiting until it is removed", was.Namespace, was.Name)
		}
	}
	return nil
}

// concerned returns the retained repositories that a project may take over or has begun to: repositories of projects with its name or full
// path, those that it names, and those that name it.
func concerned(all []*v1alpha1.RetainedRepository, p *v1alpha1.Project, fullPath string) (some []*v1alpha1.RetainedRepository) {
	for _, r := range all {
		if r.Status.AdoptedBy != nil && !adoptedBy(r, p) {
			continue
		}
		own := r.Spec.Project.Namespace == p.Namespace
		if adoptedBy(r, p) || meant(r, p) || own && (sameName(r, p) || samePath(r, fullPath) || byName(r, p)) {
			some = append(some, r)
		}
	}
	slices.SortFunc(some, func(a, b *v1alpha1.RetainedRepository) int { return strings.Compare(a.Name, b.Name) })
	return some
}

func sameName(r *v1alpha1.RetainedRepository, p *v1alpha1.Project) bool {
	return r.Spec.Project.Name == p.Name
}

func samePath(r *v1alpha1.RetainedRepository, fullPath string) bool {
	return fullPath != "" && strings.EqualFold(r.Spec.Project.FullPath, fullPath)
}

// byName reports whether the project declares that it takes over the repository.
func byName(r *v1alpha1.RetainedRepository, p *v1alpha1.Project) bool {
	return p.Spec.AdoptRepository == r.Name || p.Spec.AdoptRepository == r.Spec.Project.Name
}

// meant reports whether an administrator has given the repository to the project.
func meant(r *v1alpha1.RetainedRepository, p *v1alpha1.Project) bool {
	return r.Spec.AdoptBy != nil && r.Spec.AdoptBy.Namespace == p.Namespace && r.Spec.AdoptBy.Name == p.Name
}

// choice is the choice of a repository for one project.
type choice struct {
	project  *v1alpha1.Project
	fullPath string
	// namespace is the UID of the project's namespace.
	namespace types.UID
}

// of chooses from the candidates, in this order: a repository that is already claimed, one that an administrator gives, one that the
// project names, and one that a project with the same declaration has left.
func (c choice) of(candidates []*v1alpha1.RetainedRepository) (*v1alpha1.RetainedRepository, error) {
	p := c.project
	var left []*v1alpha1.RetainedRepository
	for _, r := range candidates {
		switch {
		case adoptedBy(r, p):
			return r, nil
		case r.DeletionTimestamp.IsZero():
			left = append(left, r)
		case p.RESTID() == r.Spec.Project.ID:
			return nil, frame.Waiting(v1alpha1.ReasonRepositoryRetained, "RetainedRepository %s is being purged", r.Name)
		}
	}
	given := filter(left, func(r *v1alpha1.RetainedRepository) bool { return meant(r, p) })
	if len(given) > 0 {
		return c.one(given, "several retained repositories name this project in adoptBy")
	}
	left = filter(left, func(r *v1alpha1.RetainedRepository) bool { return r.Spec.Project.Namespace == p.Namespace })
	if p.Spec.AdoptRepository == v1alpha1.AdoptNone {
		return nil, c.refuseID(left)
	}
	own := filter(left, func(r *v1alpha1.RetainedRepository) bool { return r.Spec.Project.NamespaceUID == string(c.namespace) })
	if p.Spec.AdoptRepository != "" {
		if r, err := c.chosen(own); r != nil || err != nil {
			return r, err
		}
	}
	return c.same(own, left)
}

// chosen returns the repository that the project names, if it exists: by its own name, or by the name of its former project.
func (c choice) chosen(own []*v1alpha1.RetainedRepository) (*v1alpha1.RetainedRepository, error) {
	for _, r := range own {
		if r.Name == c.project.Spec.AdoptRepository {
			return c.one([]*v1alpha1.RetainedRepository{r}, "")
		}
	}
	some := filter(own, func(r *v1alpha1.RetainedRepository) bool { return byName(r, c.project) })
	if len(some) == 0 {
		return nil, nil
	}
	return c.one(some, fmt.Sprintf("several projects named %s have left a repository", c.project.Spec.AdoptRepository))
}

// one returns the only repository, if it fits.
func (c choice) one(some []*v1alpha1.RetainedRepository, several string) (*v1alpha1.RetainedRepository, error) {
	if len(some) > 1 {
		return nil, undecided("%s: %s", several, decide(some))
	}
	if wrong := unfit(some[0], c.project); wrong != "" {
		return nil, undecided("RetainedRepository %s cannot be adopted: %s", some[0].Name, wrong)
	}
	return some[0], nil
}

// same returns the repository that a project with the same declaration has left. If there are several with its name, it is the one whose id
// the project pins. A namespace that was created again may belong to another tenant.
func (c choice) same(own, left []*v1alpha1.RetainedRepository) (*v1alpha1.RetainedRepository, error) {
	p := c.project
	mine := filter(own, func(r *v1alpha1.RetainedRepository) bool { return sameName(r, p) })
	if pinned := filter(mine, func(r *v1alpha1.RetainedRepository) bool { return r.Spec.Project.ID == p.Spec.ID }); len(pinned) == 1 {
		mine = pinned
	}
	asked := filter(own, func(r *v1alpha1.RetainedRepository) bool { return sameName(r, p) || samePath(r, c.fullPath) })
	others := filter(left, func(r *v1alpha1.RetainedRepository) bool { return sameName(r, p) || samePath(r, c.fullPath) })
	switch {
	case len(mine) == 1:
		if wrong := c.differs(mine[0]); wrong != "" {
			return nil, undecided("a deleted project of this name has left a repository, but %s: %s", wrong, decide(asked))
		}
		return mine[0], nil
	case len(mine) > 1:
		return nil, undecided("several projects of this name have left a repository: %s", decide(asked))
	case p.Spec.AdoptRepository != "":
		return nil, frame.Waiting(v1alpha1.ReasonReferenceNotFound, "adoptRepository: no deleted project of this namespace has left a repository %s that "+
			"can still be adopted: set another name, or None to start with a new repository", p.Spec.AdoptRepository)
	case len(others) == 0:
		return nil, nil
	case len(asked) == 1:
		return nil, undecided("the deleted project %s has left a repository under this full path: %s", asked[0].Spec.Project.Name, decide(asked))
	case len(asked) > 1:
		return nil, undecided("several deleted projects have left a repository under this full path: %s", decide(asked))
	}
	return nil, undecided("a project of an earlier namespace %s has left RetainedRepository %s: an administrator can give it to this project "+
		"in its adoptBy, or purge it by deleting it; to start with a new repository, set adoptRepository: None", p.Namespace, others[0].Name)
}

// differs says in what the declaration differs from that of the former project.
func (c choice) differs(r *v1alpha1.RetainedRepository) string {
	p, was := c.project, r.Spec.Project
	switch {
	case p.RESTID() != 0 && p.RESTID() != was.ID:
		return fmt.Sprintf("its id was %d, which this project does not have", was.ID)
	case c.fullPath != "" && was.FullPath != "" && !samePath(r, c.fullPath):
		return "its full path was " + was.FullPath
	case !strings.EqualFold(p.Spec.Path, was.Path):
		return "its path was " + was.Path
	case p.Spec.ImportURL != "" && p.Spec.ImportURL != was.ImportURL:
		return "its importURL was different"
	}
	return unfit(r, p)
}

// unfit says why a project cannot have a repository even if it is requested.
func unfit(r *v1alpha1.RetainedRepository, p *v1alpha1.Project) string {
	switch was := r.Spec.Project; {
	case p.Spec.Storage != "" && p.Spec.Storage != r.Spec.Storage:
		return fmt.Sprintf("it is on storage %s: omit spec.storage", r.Spec.Storage)
	case was.ObjectFormat != "" && p.Spec.ObjectFormat != was.ObjectFormat:
		return fmt.Sprintf("its objectFormat is %s: set the same one", was.ObjectFormat)
	}
	return ""
}

// refuseID prevents a project with a new repository from using the path of a retained one.
func (c choice) refuseID(left []*v1alpha1.RetainedRepository) error {
	for _, r := range left {
		if repository.PathOfRetained(r) == repository.Path(c.project) {
			return undecided("id %d belongs to RetainedRepository %s: a project that starts with a new repository must have another id", c.project.RESTID(), r.Name)
		}
	}
	return nil
}

// mostNamed is the maximum number of retained repositories in a message, so that conditions remain readable.
const mostNamed = 5

// decide explains how the user can choose. The most recent repository comes first, because most users want it.
func decide(some []*v1alpha1.RetainedRepository) string {
	some = slices.SortedFunc(slices.Values(some), func(a, b *v1alpha1.RetainedRepository) int {
		return cmp.Or(b.Spec.RetainedAt.Compare(a.Spec.RetainedAt.Time), cmp.Compare(b.Spec.Project.ID, a.Spec.Project.ID), strings.Compare(a.Name, b.Name))
	})
	more := ""
	if n := len(some) - mostNamed; n > 0 {
		some, more = some[:mostNamed], fmt.Sprintf(" or one of %d more that administrators see", n)
	}
	names := make([]string, len(some))
	for i, r := range some {
		names[i] = r.Name
	}
	return fmt.Sprintf("set adoptRepository to %s%s to adopt it, or to None to start with a new repository", strings.Join(names, " or "), more)
}

func undecided(format string, args ...any) error {
	return frame.Stalled(v1alpha1.ReasonRepositoryRetained, format, args...)
}

func filter(some []*v1alpha1.RetainedRepository, keep func(*v1alpha1.RetainedRepository) bool) (kept []*v1alpha1.RetainedRepository) {
	for _, r := range some {
		if keep(r) {
			kept = append(kept, r)
		}
	}
	return kept
}
