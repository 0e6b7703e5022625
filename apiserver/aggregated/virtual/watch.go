package virtual

import (
	"context"
	"errors"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// interval is the interval at which a watch asks its source for changes. Other processes change the objects too.
	interval = time.Second
	// pageSize is the number of objects that a watch reads at once.
	pageSize = 500
)

// watcher is a watch of one client.
type watcher struct {
	storage   *storage
	query     Query
	bookmarks bool
	// revision is the revision up to which the client knows all changes.
	revision int64
	// matched are the objects that the selector selects; nil if it selects all.
	matched sets.Set[types.UID]
	// unsure says that the client may know objects that do not match now: it began at a revision before matched.
	unsure bool
	// more says that the source can have more changes by now.
	more bool
}

// Watch implements rest.Watcher.
func (s *storage) Watch(ctx context.Context, o *metainternal.ListOptions) (watch.Interface, error) {
	q, err := queryOf(ctx, o)
	if err != nil {
		return nil, err
	}
	w := &watcher{storage: s, query: q, bookmarks: o.AllowWatchBookmarks}
	events, err := w.begin(ctx, o)
	if err != nil {
		return nil, err
	}
	out := make(chan watch.Event)
	proxy := watch.NewProxyWatcher(out)
	go w.run(ctx, proxy.StopChan(), out, events)
	return proxy, nil
}

// begin returns the events up to now. It fails if the client must list the objects again.
func (w *watcher) begin(ctx context.Context, o *metainternal.ListOptions) (events []watch.Event, err error) {
	if o.ResourceVersion != "" {
		if w.revision, err = strconv.ParseInt(o.ResourceVersion, 10, 64); err != nil {
			return nil, apierrors.NewBadRequest("resourceVersion is invalid")
		}
	}
	since, streams := w.revision != 0, o.SendInitialEvents != nil && *o.SendInitialEvents
	if !since || streams || !w.query.Selector.Empty() {
		objects, revision, err := w.list(ctx)
		if err != nil {
			return nil, err
		}
		if streams || !since && o.SendInitialEvents == nil {
			for _, obj := range objects {
				events = append(events, watch.Event{Type: watch.Added, Object: obj})
			}
		}
		if streams || !since {
			w.revision = revision
		}
		if streams && w.bookmarks {
			events = append(events, w.bookmark(metav1.InitialEventsAnnotationKey))
		}
	}
	w.unsure = since && !streams
	more, err := w.next(ctx)
	return append(events, more...), err
}

// list returns all objects that the selector selects, and a revision that they include.
func (w *watcher) list(ctx context.Context) (objects []client.Object, revision int64, err error) {
	if !w.query.Selector.Empty() {
		w.matched = sets.Set[types.UID]{}
	}
	q := w.query
	q.Limit = pageSize
	for {
		page, err := w.storage.Source.List(ctx, q)
		if err != nil {
			return nil, 0, err
		}
		if revision == 0 {
			revision = page.Revision
		}
		for _, obj := range page.Objects {
			objects = append(objects, obj)
			if w.matched != nil {
				w.matched.Insert(obj.GetUID())
			}
		}
		if q.After = page.Next; page.Next == "" {
			return objects, revision, nil
		}
	}
}

// run sends events until ctx ends or the client stops the watch.
func (w *watcher) run(ctx context.Context, stop <-chan struct{}, out chan<- watch.Event, events []watch.Event) {
	defer close(out)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		for _, e := range events {
			select {
			case out <- e:
			case <-stop:
				return
			case <-ctx.Done():
				return
			}
			if e.Type == watch.Error {
				return
			}
		}
		if !w.more {
			select {
			case <-ticker.C:
			case <-stop:
				return
			case <-ctx.Done():
				return
			}
		}
		var err error
		if events, err = w.next(ctx); err != nil {
			events = []watch.Event{failure(err)}
		}
	}
}

// next returns the events since the last call.
func (w *watcher) next(ctx context.Context) (events []watch.Event, err error) {
	changes, revision, more, err := w.storage.Source.Changes(ctx, w.query.Namespace, w.revision)
	if errors.Is(err, ErrExpired) {
		err = apierrors.NewResourceExpired(err.Error())
	}
	if err != nil {
		return nil, err
	}
	for _, e := range changes {
		if e, is := w.selected(e); is {
			events = append(events, e)
		}
	}
	// Without more, the changes include all that the list has seen.
	w.more, w.unsure = more, w.unsure && more
	moved := revision != w.revision
	if w.revision = revision; moved && len(events) == 0 && w.bookmarks {
		events = append(events, w.bookmark())
	}
	return events, nil
}

// selected returns a change as the selector shows it: objects are deleted when they cease to match.
func (w *watcher) selected(e watch.Event) (watch.Event, bool) {
	if w.matched == nil {
		return e, true
	}
	obj := e.Object.(client.Object)
	known := w.matched.Has(obj.GetUID())
	if e.Type != watch.Deleted && w.query.Selector.Matches(w.storage.fields(obj)) {
		w.matched.Insert(obj.GetUID())
		if !known {
			e.Type = watch.Added
		}
		return e, true
	}
	w.matched.Delete(obj.GetUID())
	e.Type = watch.Deleted
	return e, known || w.unsure
}

// bookmark returns an event that says which revision the client knows.
func (w *watcher) bookmark(annotations ...string) watch.Event {
	obj := w.storage.Resource.New()
	obj.SetResourceVersion(strconv.FormatInt(w.revision, 10))
	for _, a := range annotations {
		obj.SetAnnotations(map[string]string{a: "true"})
	}
	return watch.Event{Type: watch.Bookmark, Object: obj}
}

// failure returns the event that ends a watch with an error.
func failure(err error) watch.Event {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	return watch.Event{Type: watch.Error, Object: &status}
}
