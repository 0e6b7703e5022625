package labels

import (
	"context"
	"errors"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/label"
)

// attributes are the parameters of a new label.
type attributes struct {
	Name        string `param:"name" required:"" example:"bug" doc:"Title of the label, without commas."`
	Color       string `param:"color" required:"" example:"#d9534f" doc:"#RGB or #RRGGBB, or the name of a color of CSS."`
	Description string `param:"description" doc:"Purpose of the label, in Markdown."`
}

type createRequest struct {
	attributes
	Priority endpoint.Optional[int32] `param:"priority" doc:"Priority in the project, 0 the highest."`
}

func (f *Family) create(ctx context.Context, s auth.Project, r *createRequest) (Label, error) {
	return f.add(ctx, s.Subject, r.attributes, pointer(r.Priority))
}

// add creates a label of a project or group.
func (f *Family) add(ctx context.Context, s auth.Subject, is attributes, priority *int32) (Label, error) {
	scope := s.Scope
	title, wrong := label.Title(is.Name)
	if holder, err := label.Holder(ctx, f.Catalog, scope, title); err != nil {
		return Label{}, err
	} else if holder != nil {
		return Label{}, exists()
	}
	spec := v1alpha1.LabelSpec{Title: title, Description: is.Description, Priority: priority}
	spec.ProjectRef, spec.GroupRef = scope.Refs()
	var a endpoint.Attributes
	refuse(&a, "title", wrong...)
	spec.Color = hex(&a, is.Color)
	check(&a, spec.Description, spec.Priority)
	if err := a.Err(); err != nil {
		return Label{}, err
	}
	l := &v1alpha1.Label{ObjectMeta: metav1.ObjectMeta{Namespace: scope.Namespace()}, Spec: spec}
	if err := f.declare(ctx, l, scope); errors.Is(err, store.ErrExists) {
		return Label{}, exists()
	} else if err != nil {
		return Label{}, err
	}
	return f.show(ctx, s, newEntry(scope, label.Inherited{Label: l, Of: scope}))
}

func exists() error { return endpoint.Conflict("Label already exists") }

// declare creates a label. Its name is derived from its target and title.
func (f *Family) declare(ctx context.Context, l *v1alpha1.Label, in catalog.Scope) error {
	same := func(holder *v1alpha1.Label) bool { return holder.Spec.Title == l.Spec.Title }
	return f.labels.CreateUnique(ctx, l, same, label.Key(in, l.Spec.Title))
}

// appearance has the parameters that change a label itself.
type appearance struct {
	NewName     endpoint.Optional[string] `param:"new_name" atLeastOne:"change" example:"defect" doc:"New title."`
	Color       endpoint.Optional[string] `param:"color" atLeastOne:"change" doc:"#RGB or #RRGGBB, or the name of a color of CSS."`
	Description endpoint.Optional[string] `param:"description" atLeastOne:"change" doc:"Purpose of the label, in Markdown."`
}

// changes are the parameters that change a label through a project.
type changes struct {
	appearance
	Priority endpoint.Optional[int32] `param:"priority" atLeastOne:"change" doc:"Priority in the project, 0 the highest; null removes it."`
}

// itself reports whether the label itself changes, and not only its priority in the project.
func (c changes) itself() bool { return c.NewName.Set || c.Color.Set || c.Description.Set }

// apply sets the fields that the request contains. A group's label has no priority of its own.
func (c changes) apply(l *v1alpha1.LabelSpec) {
	l.Title, l.Color = c.NewName.Or(l.Title), c.Color.Or(l.Color)
	if c.Description.Set {
		l.Description = c.Description.Value // null clears it
	}
	if c.Priority.Set && l.ProjectRef != nil {
		l.Priority = pointer(c.Priority)
	}
}

type updateRequest struct {
	labelRequest
	changes
}

// named is a request for one label in the older form.
type named struct {
	LabelID endpoint.Optional[int64]  `param:"label_id" exactlyOne:"label" doc:"Id of the label."`
	Name    endpoint.Optional[string] `param:"name" exactlyOne:"label" example:"bug" doc:"Title of the label."`
}

func (n named) key() string {
	if n.LabelID.Set {
		return strconv.FormatInt(n.LabelID.Value, 10)
	}
	return n.Name.Value
}

type updateNamedRequest struct {
	named
	changes
}

func (f *Family) updateNamed(ctx context.Context, s auth.Project, r *updateNamedRequest) (Label, error) {
	return f.change(ctx, s.Subject, r.key(), r.changes)
}

func (f *Family) update(ctx context.Context, s auth.Project, r *updateRequest) (Label, error) {
	return f.change(ctx, s.Subject, r.LabelID, r.changes)
}

func (f *Family) change(ctx context.Context, s auth.Subject, key string, c changes) (Label, error) {
	e, err := f.findToChange(ctx, s.Scope, key)
	if err != nil {
		return Label{}, err
	}
	itself := c.itself() || e.own()
	if c.itself() {
		if _, err := f.labels.Get(ctx, s, e); err != nil {
			return Label{}, err
		}
	}
	if c, err = f.checked(ctx, e, c); err != nil {
		return Label{}, err
	}
	p, l, title := s.Scope.Project, e.Label, c.NewName.Or(e.Spec.Title)
	if itself {
		if err := f.labels.Check(ctx, s, e); err != nil {
			return Label{}, err
		}
	}
	if !e.own() && title != e.Spec.Title {
		p, err = f.reprioritize(ctx, e.Of, p, func(all []v1alpha1.LabelPriority) []v1alpha1.LabelPriority {
			return renamed(all, e.Spec.Title, title)
		})
		if err != nil {
			return Label{}, err
		}
	}
	if c.Priority.Set && !e.own() {
		if p, err = f.projects.Update(ctx, s, store.Only{}, prioritize(title, pointer(c.Priority))); err != nil {
			return Label{}, err
		}
	}
	if itself {
		l, err = f.labels.Update(ctx, s, e, func(l *v1alpha1.Label) error {
			c.apply(&l.Spec)
			return nil
		})
		if err != nil {
			return Label{}, err
		}
	}
	return f.show(ctx, s, newEntry(catalog.Scope{Project: p, Groups: s.Scope.Groups}, label.Inherited{Label: l, Of: e.Of, Above: e.Above}))
}

// checked validates the changes and returns them in their declared form.
func (f *Family) checked(ctx context.Context, e entry, c changes) (changes, error) {
	var a endpoint.Attributes
	if c.NewName.Set {
		title, wrong := label.Title(c.NewName.Value)
		holder, err := label.Holder(ctx, f.Catalog, e.Of, title)
		if err != nil {
			return c, err
		}
		if title != e.Spec.Title && holder != nil {
			wrong = append(wrong, "has already been taken")
		}
		refuse(&a, "title", wrong...)
		c.NewName.Value = title
	}
	if c.Color.Set {
		c.Color.Value = hex(&a, c.Color.Value)
	}
	check(&a, c.Description.Value, pointer(c.Priority))
	return c, a.Err()
}

func (f *Family) removeNamed(ctx context.Context, s auth.Subject, r *named) (endpoint.None, error) {
	return f.removeKey(ctx, s, r.key())
}

func (f *Family) remove(ctx context.Context, s auth.Subject, r *labelRequest) (endpoint.None, error) {
	return f.removeKey(ctx, s, r.LabelID)
}

func (f *Family) removeKey(ctx context.Context, s auth.Subject, key string) (endpoint.None, error) {
	e, err := f.findToChange(ctx, s.Scope, key)
	if err != nil {
		return endpoint.None{}, err
	}
	if err := f.labels.Delete(ctx, s, e); err != nil {
		return endpoint.None{}, err
	}
	if !e.own() {
		_, err = f.reprioritize(ctx, e.Of, s.Scope.Project, func(all []v1alpha1.LabelPriority) []v1alpha1.LabelPriority {
			return withPriority(all, e.Spec.Title, nil)
		})
	}
	err = errors.Join(err, f.Activity.Subscriptions.Remove(ctx, subject(e.Label)))
	for _, rows := range f.labeled() {
		err = errors.Join(err, rows.Forget(ctx, row(e.Label)))
	}
	return endpoint.None{}, err
}

// changeable returns an error if the label belongs to a group above in which the caller cannot change labels.
func (f *Family) changeable(ctx context.Context, of auth.Subject, e entry) (*v1alpha1.Label, error) {
	if e.own() {
		return e.Label, nil
	}
	return e.Label, f.mayChangeGroup(ctx, of, e.Of)
}

func (f *Family) mayChangeGroup(ctx context.Context, s auth.Subject, of catalog.Scope) error {
	access, err := f.Guard.Access(ctx, s.Caller, of)
	if err == nil && !s.Has(access, auth.WriteGroupLabels) {
		return endpoint.Forbidden("").Describe("The label belongs to a group, and you do not have the role Reporter in it.")
	}
	return err
}

func pointer(o endpoint.Optional[int32]) *int32 {
	if !o.Set || o.Null {
		return nil
	}
	return ptr.To(o.Value)
}

func refuse(a *endpoint.Attributes, name string, wrong ...string) {
	for _, w := range wrong {
		a.Refuse(name, w)
	}
}

// hex returns a color in hexadecimal form, because the REST API never shows a name.
func hex(a *endpoint.Attributes, color string) string {
	hex, ok := label.Hex(color)
	if !ok {
		a.Refuse("color", "must be a valid color code")
		a.Describe("color must be #RGB, #RRGGBB or the name of a CSS color, such as red.")
	}
	return hex
}

func check(a *endpoint.Attributes, description string, priority *int32) {
	a.Text("description", description, label.MaxDescription)
	if priority != nil && *priority < 0 {
		a.Refuse("priority", "must be greater than or equal to 0")
	}
}
