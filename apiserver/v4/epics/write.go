package epics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/epic"
	"github.com/forgeplane/forgeplane/internal/label"
)

// attributes are the parameters that the creation and the update of an epic have in common.
type attributes struct {
	Description      endpoint.Optional[string]    `param:"description" doc:"Description in Markdown; null removes it."`
	Confidential     endpoint.Optional[bool]      `param:"confidential" doc:"Whether only Reporters and the author see the epic."`
	Labels           endpoint.Optional[[]string]  `param:"labels" comma:"" doc:"Titles of labels of the group, which replace all others."`
	StartDateFixed   endpoint.Optional[time.Time] `param:"start_date_fixed" doc:"First day; null removes it."`
	StartDateIsFixed endpoint.Optional[bool]      `param:"start_date_is_fixed" doc:"false removes the first day."`
	DueDateFixed     endpoint.Optional[time.Time] `param:"due_date_fixed" doc:"Last day; null removes it."`
	DueDateIsFixed   endpoint.Optional[bool]      `param:"due_date_is_fixed" doc:"false removes the last day."`
}

// apply sets the fields of an epic that the request contains.
func (r attributes) apply(e *epic.Epic, known labels) {
	if r.Description.Set {
		e.Description = r.Description.Value
	}
	e.Confidential = r.Confidential.Or(e.Confidential)
	if r.Labels.Set {
		e.Labels = known.titled(r.Labels.Value)
	}
	e.Start, e.Due = entity.StoreDay(r.StartDateFixed, e.Start), entity.StoreDay(r.DueDateFixed, e.Due)
	if !r.StartDateIsFixed.Or(true) {
		e.Start = ""
	}
	if !r.DueDateIsFixed.Or(true) {
		e.Due = ""
	}
}

type createRequest struct {
	Title string `param:"title" required:"" example:"Faster search" doc:"Title of the epic."`
	attributes
}

func (f *Family) create(ctx context.Context, s auth.Group, r *createRequest) (Epic, error) {
	author, err := s.Caller.Person()
	if err != nil {
		return Epic{}, err
	}
	known, err := f.labels(ctx, s.Scope)
	if err != nil {
		return Epic{}, err
	}
	e := epic.Epic{In: item.Place(s.Scope), Title: strings.TrimSpace(r.Title), Author: item.User(author)}
	r.apply(&e, known)
	if err := check(e); err != nil {
		return Epic{}, err
	}
	if err := f.Activity.Epics.Create(ctx, &e); err != nil {
		return Epic{}, err
	}
	did(ctx, "create", s.Scope, e)
	return f.show(ctx, s.Scope, e)
}

type updateRequest struct {
	Title endpoint.Optional[string] `param:"title" example:"Faster search" doc:"Title of the epic."`
	attributes
	AddLabels    []string `param:"add_labels" comma:"" doc:"Titles of labels of the group to add."`
	RemoveLabels []string `param:"remove_labels" comma:"" doc:"Titles of labels to remove."`
	StateEvent   string   `param:"state_event" values:"close,reopen" doc:"Whether to close the epic or to reopen it."`
}

func (f *Family) update(ctx context.Context, s auth.GroupRecord[item.Epic], r *updateRequest) (Epic, error) {
	known, err := f.labels(ctx, s.Scope)
	if err != nil {
		return Epic{}, err
	}
	var by database.User
	if r.StateEvent != "" {
		u, err := s.Caller.Person()
		if err != nil {
			return Epic{}, err
		}
		by = item.User(u)
	}
	e, err := f.Activity.Epics.Update(ctx, s.Record.ID, func(ctx context.Context, e *epic.Epic) error {
		if r.Title.Set {
			e.Title = strings.TrimSpace(r.Title.Value)
		}
		r.apply(e, known)
		e.Labels = known.without(known.with(e.Labels, r.AddLabels), r.RemoveLabels)
		if err := check(*e); err != nil {
			return err
		}
		return f.turn(ctx, e, r.StateEvent, by)
	})
	if errors.Is(err, epic.ErrNotFound) {
		err = item.Epic{}.Missing()
	}
	if err != nil {
		return Epic{}, err
	}
	did(ctx, "update", s.Scope, e)
	return f.show(ctx, s.Scope, e)
}

func (f *Family) remove(ctx context.Context, s auth.GroupRecord[item.Epic], _ *struct{}) (endpoint.None, error) {
	e := s.Record.Epic
	err := item.Remove(ctx, f.Activity, e.Item(), func(ctx context.Context) error {
		if err := f.Activity.Epics.Delete(ctx, e.ID); err != nil {
			return err
		}
		return f.Activity.Issues.ForgetEpic(ctx, e.ID)
	})
	switch {
	case errors.Is(err, epic.ErrNotFound):
		return endpoint.None{}, s.Record.Missing()
	case err == nil:
		did(ctx, "delete", s.Scope, e)
	}
	return endpoint.None{}, err
}

// did records a write for the audit.
func did(ctx context.Context, verb string, in catalog.Scope, e epic.Epic) {
	audit.From(ctx).Did(verb, audit.Epic, fmt.Sprintf("%s&%d", in.Path(), e.IID), e.ID)
}

// check validates an epic.
func check(e epic.Epic) error {
	var a endpoint.Attributes
	if e.Title == "" {
		a.Refuse("title", "can't be blank")
	}
	a.Text("title", e.Title, item.MaxTitle)
	a.Text("description", e.Description, item.MaxDescription)
	if e.Start != "" && e.Due != "" && e.Due < e.Start {
		a.Refuse("due_date", "must be greater than start date")
	}
	return a.Err()
}

// labels are the labels that are in force in a group, by their titles.
type labels map[string]epic.Label

func (f *Family) labels(ctx context.Context, in catalog.Scope) (labels, error) {
	all, err := label.All(ctx, f.Catalog, in)
	known := labels{}
	for _, l := range all {
		if _, nearer := known[l.Spec.Title]; !nearer {
			known[l.Spec.Title] = epic.Label{ID: l.RESTID(), UID: l.UID}
		}
	}
	return known, err
}

// titled returns the labels with some titles. Titles that no label has are ignored.
func (l labels) titled(titles []string) []epic.Label { return l.with(nil, titles) }

// with returns the given labels and those with the given titles, without duplicates.
func (l labels) with(some []epic.Label, titles []string) []epic.Label {
	for _, title := range titles {
		if found, known := l[strings.TrimSpace(title)]; known && !slices.Contains(some, found) {
			some = append(some, found)
		}
	}
	return some
}

// without returns the given labels except those with the given titles.
func (l labels) without(some []epic.Label, titles []string) []epic.Label {
	removed := l.titled(titles)
	return slices.DeleteFunc(some, func(has epic.Label) bool { return slices.Contains(removed, has) })
}
