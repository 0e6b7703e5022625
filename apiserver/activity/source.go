package activity

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/forgeplane/forgeplane/api/activity/v1alpha1"
	core "github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/aggregated/virtual"
	"github.com/forgeplane/forgeplane/internal/revision"
)

const (
	// batch is the number of items that are read at once, and maximum the number of objects of a page.
	batch         = 500
	maximum int64 = 1000
)

// projects are projects by UID.
type projects = map[types.UID]*core.Project

// shower makes the objects of a kind of items.
type shower interface {
	// blank returns an object without content.
	blank() client.Object
	// show returns the objects of items, without metadata, by the ids of the items. It leaves out items that no longer exist.
	show(ctx context.Context, in projects, ids ...int64) (map[int64]client.Object, error)
}

// source is the objects of a kind of items. It implements virtual.Source.
type source struct {
	Options
	kind string
	shower
}

// nameOf returns the name of the object of an item.
func nameOf(project string, iid int64) string { return fmt.Sprintf("%s-%d", project, iid) }

// parse returns the project and the iid that a name has. ok is false if no object has such a name.
func parse(name string) (project string, iid int64, ok bool) {
	at := strings.LastIndexByte(name, '-')
	if at < 1 {
		return "", 0, false
	}
	iid, err := strconv.ParseInt(name[at+1:], 10, 64)
	return name[:at], iid, err == nil && iid > 0 && nameOf(name[:at], iid) == name
}

// Get implements virtual.Source.
func (s source) Get(ctx context.Context, namespace, name string) (client.Object, error) {
	page, err := s.List(ctx, virtual.Query{Namespace: namespace, Selector: fields.OneTermEqualSelector(virtual.FieldName, name), Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(page.Objects) == 0 {
		return nil, virtual.ErrNotFound
	}
	return page.Objects[0], nil
}

// List implements virtual.Source. The place of an object is the UID of its project with its iid.
func (s source) List(ctx context.Context, q virtual.Query) (virtual.Page, error) {
	some := revision.Query{Kind: s.kind, Limit: batch}
	if q.Limit > 0 {
		q.Limit = min(q.Limit, maximum)
		some.Limit = int(min(q.Limit+1, batch))
	}
	if project, iid, is := strings.Cut(q.After, "/"); is {
		some.After.Project = types.UID(project)
		some.After.IID, _ = strconv.ParseInt(iid, 10, 64) // 0 is before the first one
	}
	if err := s.narrow(ctx, q, &some); err != nil {
		return virtual.Page{}, err
	}
	var page virtual.Page
	var last revision.Item
	for {
		items, now, err := s.Stores.Revisions.List(ctx, some)
		if err != nil {
			return virtual.Page{}, err
		}
		if page.Revision == 0 {
			page.Revision = now
		}
		found, err := s.objects(ctx, items)
		if err != nil {
			return virtual.Page{}, err
		}
		for _, f := range found {
			if !q.Selector.Matches(virtual.WithMetadata(f.object, selectable(f.object))) {
				continue
			}
			if q.Limit > 0 && int64(len(page.Objects)) == q.Limit {
				page.Next = fmt.Sprintf("%s/%d", last.Project, last.IID)
				return page, nil
			}
			page.Objects, last = append(page.Objects, f.object), f.item
		}
		if len(items) < some.Limit {
			return page, nil
		}
		some.After = items[len(items)-1]
	}
}

// narrow adds to some what a query requires, as far as the database can select by it.
func (s source) narrow(ctx context.Context, q virtual.Query, some *revision.Query) (err error) {
	namespace, project := q.Namespace, ""
	if n, is := q.Selector.RequiresExactMatch(virtual.FieldNamespace); is {
		if namespace != "" && n != namespace { // RBAC has decided about the namespace of the path
			some.Projects = []types.UID{}
			return nil
		}
		namespace = n
	}
	if p, is := q.Selector.RequiresExactMatch(fieldProject); is {
		project = p
	}
	if name, is := q.Selector.RequiresExactMatch(virtual.FieldName); is {
		p, iid, ok := parse(name)
		if !ok {
			some.Projects = []types.UID{}
			return nil
		}
		project, some.IID = p, iid
	}
	some.State, _ = q.Selector.RequiresExactMatch(fieldState)
	if namespace == "" {
		return nil
	}
	some.Projects, err = s.within(ctx, namespace, project)
	return err
}

// within returns the UIDs of the projects of a namespace that have a name, or any name if it is empty.
func (s source) within(ctx context.Context, namespace, name string) ([]types.UID, error) {
	// A project that is missing here would go unnoticed, unlike a missing project of an item.
	if _, err := s.Outdated(ctx); err != nil {
		return nil, err
	}
	all, err := s.Catalog.ProjectsInNamespace(ctx, namespace)
	in := []types.UID{}
	for uid, p := range all {
		if name == "" || p.Name == name {
			in = append(in, uid)
		}
	}
	return in, err
}

// found is an object with the last change of its item.
type found struct {
	object client.Object
	item   revision.Item
}

// objects returns the objects of items in their order. It leaves out items that no longer exist or whose projects do not. They have changed again.
func (s source) objects(ctx context.Context, items []revision.Item) ([]found, error) {
	in, err := s.projectsOf(ctx, items)
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, i := range items {
		if in[i.Project] != nil && !i.Deleted {
			ids = append(ids, i.ID)
		}
	}
	shown, err := s.show(ctx, in, ids...)
	if err != nil {
		return nil, err
	}
	var all []found
	for _, i := range items {
		if obj := shown[i.ID]; obj != nil && !i.Deleted {
			identify(obj, in[i.Project], i)
			all = append(all, found{obj, i})
		}
	}
	return all, nil
}

// identify sets the metadata of an object.
func identify(obj client.Object, p *core.Project, i revision.Item) {
	obj.SetNamespace(p.Namespace)
	obj.SetName(nameOf(p.Name, i.IID))
	obj.SetUID(types.UID(fmt.Sprintf("%s-%s-%d", i.Project, i.Kind, i.ID)))
	obj.SetResourceVersion(strconv.FormatInt(i.Changed, 10))
	obj.SetCreationTimestamp(*partsOf(obj).created)
}

// projectsOf returns the projects of items. It leaves out those that no longer exist.
func (s source) projectsOf(ctx context.Context, items []revision.Item) (projects, error) {
	uids := map[types.UID]bool{}
	for _, i := range items {
		uids[i.Project] = true
	}
	list := make([]types.UID, 0, len(uids))
	for uid := range uids {
		list = append(list, uid)
	}
	in, err := s.Catalog.ProjectsWithUIDs(ctx, list...)
	if err != nil || len(in) == len(uids) {
		return in, err
	}
	if again, err := s.Outdated(ctx); err != nil || !again {
		return in, err
	}
	return s.Catalog.ProjectsWithUIDs(ctx, list...)
}

// Changes implements virtual.Source. Deleted items have only their metadata, project and state. If the project is gone too, its
// namespace is unknown, so clients must list the objects again.
func (s source) Changes(ctx context.Context, namespace string, after int64) (events []watch.Event, now int64, more bool, err error) {
	items, now, err := s.Stores.Revisions.Since(ctx, s.kind, after, batch)
	if errors.Is(err, revision.ErrExpired) {
		return nil, 0, false, virtual.ErrExpired
	}
	if err != nil || len(items) == 0 {
		return nil, now, false, err
	}
	in, err := s.projectsOf(ctx, items)
	if err != nil {
		return nil, 0, false, err
	}
	here := items[:0:0]
	for _, i := range items {
		switch p := in[i.Project]; {
		case p == nil && i.Deleted:
			return nil, 0, false, virtual.ErrExpired
		case p != nil && (namespace == "" || p.Namespace == namespace):
			here = append(here, i)
		}
	}
	objects, err := s.objects(ctx, here)
	if err != nil {
		return nil, 0, false, err
	}
	by := map[int64]client.Object{}
	for _, f := range objects {
		by[f.item.ID] = f.object
	}
	for _, i := range here {
		switch obj := by[i.ID]; {
		case i.Deleted:
			events = append(events, watch.Event{Type: watch.Deleted, Object: s.deleted(in[i.Project], i)})
		case obj != nil && i.Created > after:
			events = append(events, watch.Event{Type: watch.Added, Object: obj})
		case obj != nil:
			events = append(events, watch.Event{Type: watch.Modified, Object: obj})
		}
	}
	return events, now, len(items) == batch, nil
}

// deleted returns the object of an item that was deleted.
func (s source) deleted(p *core.Project, i revision.Item) client.Object {
	obj := s.blank()
	of := partsOf(obj)
	*of.project, *of.number, *of.state = v1alpha1.ProjectReference{Name: p.Name}, i.IID, i.State
	identify(obj, p, i)
	return obj
}
