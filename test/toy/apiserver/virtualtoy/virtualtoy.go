// Package virtualtoy is an example of a virtual resource, which shows a table of the activity database.
package virtualtoy

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/apiserver/aggregated/virtual"
	"github.com/forgeplane/forgeplane/apiserver/aggregated/virtual/virtualtest"
	"github.com/forgeplane/forgeplane/test/toy/internal/toy"
)

// Group returns a group with the toys of a store as a virtual resource. The package virtualtest has its types.
func Group(s *toy.Store) virtual.Group { return virtualtest.Group(source{s}) }

type source struct{ store *toy.Store }

const prefix = "toy-"

func object(r *toy.Row) *virtualtest.Toy {
	t := &virtualtest.Toy{Status: virtualtest.ToyStatus{State: r.State}}
	t.Namespace, t.Name = r.Namespace, prefix+strconv.FormatInt(r.ID, 10)
	t.UID, t.ResourceVersion = types.UID(t.Name), strconv.FormatInt(r.Changed, 10)
	return t
}

// Get implements virtual.Source.
func (s source) Get(ctx context.Context, namespace, name string) (client.Object, error) {
	id, err := strconv.ParseInt(strings.TrimPrefix(name, prefix), 10, 64)
	if err != nil {
		return nil, virtual.ErrNotFound
	}
	all, _, err := s.store.List(ctx, "id = ? AND namespace = ?", id, namespace)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 || object(all[0]).Name != name {
		return nil, virtual.ErrNotFound
	}
	return object(all[0]), nil
}

// List implements virtual.Source. The place of a toy is its id.
func (s source) List(ctx context.Context, q virtual.Query) (virtual.Page, error) {
	after, _ := strconv.ParseInt(q.After, 10, 64) // 0 for the first page
	rows, revision, err := s.store.List(ctx, "id > ? AND ? IN (namespace, '')", after, q.Namespace)
	page := virtual.Page{Revision: revision}
	for _, r := range rows {
		t := object(r)
		if !q.Selector.Matches(virtual.WithMetadata(t, virtualtest.Fields(t))) {
			continue
		}
		if q.Limit > 0 && int64(len(page.Objects)) == q.Limit {
			page.Next = strconv.FormatInt(after, 10)
			break
		}
		page.Objects, after = append(page.Objects, t), r.ID
	}
	return page, err
}

// Changes implements virtual.Source. Toys are never deleted, so no changes are forgotten.
func (s source) Changes(ctx context.Context, namespace string, after int64) ([]watch.Event, int64, bool, error) {
	rows, revision, err := s.store.List(ctx, "changed > ? AND ? IN (namespace, '')", after, namespace)
	if err == nil && after > revision {
		err = virtual.ErrExpired
	}
	slices.SortFunc(rows, func(a, b *toy.Row) int { return cmp.Compare(a.Changed, b.Changed) })
	changes := make([]watch.Event, len(rows))
	for i, r := range rows {
		changes[i] = watch.Event{Type: watch.Modified, Object: object(r)}
		if r.Created > after {
			changes[i].Type = watch.Added
		}
	}
	return changes, revision, false, err
}
