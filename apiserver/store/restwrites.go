package store

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/declare"
)

// refusedError says that spec.restWrites does not let REST callers write an object.
type refusedError struct {
	// by names the setting that refuses every change. It is empty if manager is set.
	by string
	// manager is the field manager that declares the object.
	manager string
}

func (e *refusedError) Error() string {
	if e.manager == "" {
		return e.by + " does not accept changes over REST: they are declared elsewhere"
	}
	return fmt.Sprintf("this is managed by %s, so a change over REST would be undone: change it there", e.manager)
}

// policy decides by spec.restWrites which objects REST callers can write. It looks up by itself where an object belongs, so that no family
// can get around it.
type policy struct {
	catalog *catalog.Catalog
	writer  *declare.Writer
	// root is the restWrites of root groups that do not declare it.
	root v1alpha1.RESTWrites
}

// allow returns a refusedError if REST callers must not change or remove an object.
func (p policy) allow(ctx context.Context, obj client.Object) error {
	return p.allowThrough(ctx, obj)
}

// allowThrough is allow for a request about the projects or groups of further scopes, which can refuse as well. They differ from the place of
// the object if a request about a project changes a label of its group, or moves the project.
func (p policy) allowThrough(ctx context.Context, obj client.Object, further ...catalog.Scope) error {
	in, err := p.place(ctx, obj)
	if err == nil {
		err = p.allowIn(ctx, obj, append([]catalog.Scope{in}, further...)...)
	}
	// A setting of a group always counts below the group. For the group itself, allowChange decides, because not all of its spec does.
	if _, setting := obj.(v1alpha1.Targeted); err == nil && setting {
		err = p.allowBelow(ctx, obj, in)
	}
	return err
}

// allowIn is allow for an object whose place is known.
func (p policy) allowIn(ctx context.Context, obj client.Object, places ...catalog.Scope) error {
	accepted, by := p.strictest(places...)
	return p.decide(ctx, obj, accepted, by)
}

// decide returns a refusedError if restWrites forbids REST callers to change or remove an object. by names the object that declares restWrites.
func (p policy) decide(ctx context.Context, obj client.Object, accepted v1alpha1.RESTWrites, by string) error {
	switch accepted {
	case v1alpha1.RESTWritesAllow:
		return nil
	case v1alpha1.RESTWritesRefuseDeclared:
		manager, err := p.writer.DeclaredBy(ctx, obj)
		if err == nil && manager != "" {
			err = &refusedError{manager: manager}
		}
		return err
	default:
		return &refusedError{by: by}
	}
}

// allowNew returns a refusedError if REST callers must not create an object.
func (p policy) allowNew(ctx context.Context, obj client.Object) error {
	in, err := p.place(ctx, obj)
	if err == nil {
		err = p.accept(in)
	}
	if err == nil {
		err = p.acceptBelow(ctx, in)
	}
	return err
}

// accept is allowNew for an object whose place is known.
func (p policy) accept(in catalog.Scope) error {
	if accepted, by := p.strictest(in); accepted == v1alpha1.RESTWritesRefuse {
		return &refusedError{by: by}
	}
	return nil
}

// place returns the scope that an object is, or is declared for; an empty one if it belongs to no project and no group. The error is
// declare.ErrGone if that is gone.
func (p policy) place(ctx context.Context, obj client.Object) (in catalog.Scope, err error) {
	switch o := obj.(type) {
	case *v1alpha1.Project:
		in, err = p.catalog.ProjectScope(ctx, o)
	case *v1alpha1.Group:
		in.Groups, err = p.catalog.Ancestors(ctx, o)
	case v1alpha1.Targeted:
		if project, group := o.TargetRefs(); project != nil || group != nil {
			in, err = p.catalog.ScopeOf(ctx, o)
		}
	}
	if catalog.Misplaced(err) {
		err = fmt.Errorf("%w: %w", declare.ErrGone, err)
	}
	return in, err
}

// strictest returns the strictest restWrites of projects and their groups, and who says so, the nearest first.
func (p policy) strictest(places ...catalog.Scope) (accepted v1alpha1.RESTWrites, by string) {
	accepted = v1alpha1.RESTWritesAllow
	consider := func(one v1alpha1.RESTWrites, of string) {
		if strictness(one) > strictness(accepted) {
			accepted, by = one, of
		}
	}
	for _, in := range places {
		if in.Project != nil {
			consider(in.Project.Spec.RESTWrites, "the project")
		}
		for i, g := range in.Groups {
			consider(g.Spec.RESTWrites, "the group "+catalog.FullPath(in.Groups[i:]))
			if i == len(in.Groups)-1 && g.Spec.RESTWrites == "" {
				consider(p.root, "this installation")
			}
		}
	}
	return accepted, by
}

func strictness(w v1alpha1.RESTWrites) int {
	switch w {
	case "", v1alpha1.RESTWritesAllow:
		return 0
	case v1alpha1.RESTWritesRefuseDeclared:
		return 1
	default:
		return 2
	}
}
