// Package features is the family of the features that administrators turn on and off.
package features

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/feature"
)

// Family serves features.
type Family struct {
	family.Kit
	values *store.Store[store.Only, *corev1.ConfigMap]
}

// New returns the family.
func New(k family.Kit) *Family {
	return &Family{Kit: k, values: store.Features(k.Writer, k.Features)}
}

// Table lists the endpoints that clients call. The interface documents describe only the features.
func (f *Family) Table() endpoint.Table {
	table := endpoint.Table{
		endpoint.Get("/features", f.list).
			Doc("List the features with their states."),
		endpoint.Get("/features/definitions", f.definitions).
			Doc("List the features with their defaults."),
		endpoint.Post("/features/{name}", f.set).
			Doc("Update a feature: turn it on or off for all users."),
		endpoint.Delete("/features/{name}", f.unset).
			Doc("Delete the setting of a feature. The setting of the command line or the default applies again."),
	}
	for _, e := range table {
		e.Needs(auth.AdminInstance)
	}
	return table
}

// Feature is the state of a feature.
type Feature struct {
	Name       string     `json:"name"`
	State      string     `json:"state" doc:"on or off."`
	Gates      []Gate     `json:"gates" doc:"One, which says the same."`
	Definition Definition `json:"definition"`
}

// Gate says whether a feature is on. A feature is on for all callers or for none.
type Gate struct {
	Key   string `json:"key" doc:"boolean."`
	Value bool   `json:"value"`
}

// Definition is a feature with its default.
type Definition struct {
	Name            string  `json:"name"`
	IntroducedByURL *string `json:"introduced_by_url" doc:"Always null."`
	RolloutIssueURL *string `json:"rollout_issue_url" doc:"Always null."`
	Milestone       *string `json:"milestone" doc:"Always null."`
	LogStateChanges *bool   `json:"log_state_changes" doc:"Always null."`
	Type            string  `json:"type" doc:"ops: it can be turned on and off for good."`
	Group           *string `json:"group" doc:"Always null."`
	DefaultEnabled  bool    `json:"default_enabled"`
}

func define(d feature.Definition) Definition {
	return Definition{Name: d.Name, Type: "ops", DefaultEnabled: d.On}
}

func (f *Family) show(ctx context.Context, d feature.Definition) (Feature, error) {
	on, err := f.Features.Enabled(ctx, d.Name)
	state := "off"
	if on {
		state = "on"
	}
	return Feature{Name: d.Name, State: state, Gates: []Gate{{Key: "boolean", Value: on}}, Definition: define(d)}, err
}

func (f *Family) list(ctx context.Context, _ auth.Instance, _ *endpoint.None) ([]Feature, error) {
	var all []Feature
	for _, d := range feature.Definitions() {
		shown, err := f.show(ctx, d)
		if err != nil {
			return nil, err
		}
		all = append(all, shown)
	}
	return all, nil
}

func (f *Family) definitions(context.Context, auth.Instance, *endpoint.None) ([]Definition, error) {
	var all []Definition
	for _, d := range feature.Definitions() {
		all = append(all, define(d))
	}
	return all, nil
}

type setRequest struct {
	Name  string `param:"name" doc:"Name of the feature."`
	Value bool   `param:"value" required:"" doc:"Whether the feature is on."`

	Key          string `param:"key" doc:"Refused: a feature is on for all requests or none."`
	FeatureGroup string `param:"feature_group" doc:"Refused: a feature is on for all callers or for none."`
	User         string `param:"user" doc:"Refused, likewise."`
	Group        string `param:"group" doc:"Refused, likewise."`
	Namespace    string `param:"namespace" doc:"Refused, likewise."`
	Project      string `param:"project" doc:"Refused, likewise."`
	Repository   string `param:"repository" doc:"Refused, likewise."`
}

func (f *Family) set(ctx context.Context, s auth.Instance, r *setRequest) (Feature, error) {
	d, known := feature.Find(r.Name)
	switch {
	case !known:
		return Feature{}, endpoint.BadRequest("The feature does not exist: name one of " + feature.Names())
	case r.Key+r.FeatureGroup+r.User+r.Group+r.Namespace+r.Project+r.Repository != "":
		return Feature{}, endpoint.BadRequest("A feature is on or off for everyone: it cannot be on for only some requests, users, groups or projects")
	}
	err := f.change(ctx, s, func(values map[string]string) { values[r.Name] = feature.Value(r.Value) })
	if err != nil {
		return Feature{}, err
	}
	return f.show(ctx, d)
}

type unsetRequest struct {
	Name string `param:"name" doc:"Name of the feature."`
}

func (f *Family) unset(ctx context.Context, s auth.Instance, r *unsetRequest) (endpoint.None, error) {
	return endpoint.None{}, f.change(ctx, s, func(values map[string]string) { delete(values, r.Name) })
}

// change writes the features that are turned on and off.
func (f *Family) change(ctx context.Context, s auth.Instance, change func(values map[string]string)) error {
	return f.values.UpdateOrCreate(ctx, s.Subject, store.Only{}, f.Features.Values, func(m *corev1.ConfigMap) error {
		if m.Data == nil {
			m.Data = map[string]string{}
		}
		change(m.Data)
		return nil
	})
}
