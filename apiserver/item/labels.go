package item

import (
	"context"
	"errors"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/label"
)

// Labels finds the declared labels that items have.
type Labels struct {
	catalog *catalog.Catalog
	labels  *store.Store[store.Only, *v1alpha1.Label]
}

// NewLabels returns the labels of a catalog, which creates missing ones with a writer.
func NewLabels(c *catalog.Catalog, writer store.Backend) *Labels {
	none := func(context.Context, auth.Subject, store.Only) (*v1alpha1.Label, error) {
		return nil, catalog.ErrNotFound
	}
	return &Labels{c, store.New(writer, none)}
}

// Titled returns the nearest label for each title, from a project or group and the groups above it. Titles without a label are left out. With create
// set, a label is created for valid titles instead, unless restWrites or a quota refuses it.
func (l *Labels) Titled(ctx context.Context, in catalog.Scope, titles []string, create bool) ([]*v1alpha1.Label, error) {
	if len(titles) == 0 {
		return nil, nil
	}
	known, err := l.ByTitle(ctx, in)
	if err != nil {
		return nil, err
	}
	var found []*v1alpha1.Label
	done := sets.New[string]()
	for _, title := range titles {
		title, wrong := label.Title(title)
		if len(wrong) > 0 || done.Has(title) {
			continue
		}
		done.Insert(title)
		var d *v1alpha1.Label
		if all := known[title]; len(all) > 0 {
			d = all[0]
		} else if create {
			if d, err = l.create(ctx, in, title); err != nil {
				return nil, err
			}
		}
		if d != nil {
			found = append(found, d)
		}
	}
	return found, nil
}

// ByTitle returns the labels of a project or group and of the groups above it, by title. Labels with the same title are in order, nearest first.
func (l *Labels) ByTitle(ctx context.Context, in catalog.Scope) (map[string][]*v1alpha1.Label, error) {
	all, err := label.All(ctx, l.catalog, in)
	titled := map[string][]*v1alpha1.Label{}
	for _, d := range all { // the nearest first
		titled[d.Spec.Title] = append(titled[d.Spec.Title], d.Label)
	}
	return titled, err
}

// LabelFinder returns the UIDs of the labels with a title that the items of a list can have.
type LabelFinder func(ctx context.Context, title string) ([]types.UID, error)

// Within finds the labels of a project or group and of the groups above it.
func (l *Labels) Within(in catalog.Scope) LabelFinder {
	var titled map[string][]*v1alpha1.Label
	return func(ctx context.Context, title string) (_ []types.UID, err error) {
		if titled == nil {
			titled, err = l.ByTitle(ctx, in)
		}
		return uidsOf(titled[title]), err
	}
}

// Anywhere is a LabelFinder for the labels of all projects and groups.
func (l *Labels) Anywhere(ctx context.Context, title string) ([]types.UID, error) {
	all, err := label.Titled(ctx, l.catalog, title)
	return uidsOf(all), err
}

func uidsOf(labels []*v1alpha1.Label) []types.UID {
	uids := make([]types.UID, len(labels))
	for i, l := range labels {
		uids[i] = l.UID
	}
	return uids
}

// create creates a label in a project or group. If another request creates it at the same time, create returns the label of that request. The
// label is nil if restWrites or a quota refuses it.
func (l *Labels) create(ctx context.Context, in catalog.Scope, title string) (*v1alpha1.Label, error) {
	d := &v1alpha1.Label{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace()}, Spec: v1alpha1.LabelSpec{Title: title, Color: label.DefaultColor}}
	d.Spec.ProjectRef, d.Spec.GroupRef = in.Refs()
	same := func(holder *v1alpha1.Label) bool { return holder.Spec.Title == title }
	err := l.labels.CreateUnique(ctx, d, same, label.Key(in, title))
	var answer *endpoint.Error
	switch {
	case errors.Is(err, store.ErrExists):
		return label.Holder(ctx, l.catalog, in, title)
	case errors.As(err, &answer) && answer.Status == http.StatusForbidden:
		return nil, nil
	default:
		return d, err
	}
}
