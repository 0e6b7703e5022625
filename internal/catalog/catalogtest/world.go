// Package catalogtest keeps declared objects in memory, for tests of code that reads them through a catalog. The cache and its indexes are
// the real ones, but there is no API server behind them. So lookups cost the same as in production, and changes are visible at once.
package catalogtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/index"
)

// World has the declared objects. Only one goroutine can use it.
type World struct {
	t     testing.TB
	cache cache.Cache
	clock time.Time
	mu    sync.Mutex
	// changes counts the changes of each kind, except those that v1alpha1.Observing drops, and all changes under "".
	changes map[string]int64
	// delayed has the resource versions of kinds whose cache is behind.
	delayed map[string]int64
}

// New returns a world with the objects. Each is younger than the one before.
func New(t testing.TB, objects ...client.Object) *World {
	t.Helper()
	w := &World{t: t, changes: map[string]int64{}, clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, v1alpha1.AddToScheme} {
		w.must(add(scheme))
	}
	kinds, err := mapper(scheme)
	w.must(err)
	w.cache, err = cache.New(&rest.Config{Host: "http://nobody.invalid"}, cache.Options{
		Scheme: scheme, Mapper: kinds, HTTPClient: http.DefaultClient, NewInformer: newStill,
	})
	w.must(err)
	w.must(index.Add(t.Context(), w.cache))
	w.must(index.AddForManagers(t.Context(), w.cache))
	w.must(AddSelectable(t.Context(), w.cache))

	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = w.cache.Start(ctx)
	}()
	t.Cleanup(func() { stop(); <-stopped })
	if !w.cache.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache did not start")
	}
	w.Put(objects...)
	return w
}

// AddSelectable adds indexes for the selectable fields that a server uses.
func AddSelectable(ctx context.Context, to client.FieldIndexer) error {
	return errors.Join(
		to.IndexField(ctx, &v1alpha1.Project{}, "spec.groupRef.name", func(o client.Object) []string {
			return []string{o.(*v1alpha1.Project).Spec.GroupRef.Name}
		}),
		to.IndexField(ctx, &v1alpha1.Group{}, "spec.parentRef.name", func(o client.Object) []string {
			return []string{ptr.Deref(o.(*v1alpha1.Group).Spec.ParentRef, v1alpha1.Reference{}).Name}
		}))
}

// Reader returns the cache.
func (w *World) Reader() client.Reader { return w.cache }

// Catalog returns a catalog of the current objects. It remembers answers, as in production.
func (w *World) Catalog(rules ...catalog.RootGroupRule) *catalog.Catalog {
	c := catalog.New(w.cache, rules...)
	c.Remember(w)
	return c
}

// Revision returns the numbers of changes of the kinds.
func (w *World) Revision(kinds []string) (r catalog.Revision, ok bool) {
	for i, kind := range kinds {
		r[i] = strconv.FormatInt(w.count(kind), 10)
	}
	return r, true
}

// Reached returns the resource version that was last passed to Delay for a kind, or the highest one.
func (w *World) Reached(kind string) (int64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if version, delayed := w.delayed[kind]; delayed {
		return version, true
	}
	return math.MaxInt64, true
}

// Delay makes the cache say that it has reached only a resource version of the kind of an object.
func (w *World) Delay(kind client.Object, resourceVersion int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.delayed == nil {
		w.delayed = map[string]int64{}
	}
	w.delayed[fmt.Sprintf("%T", kind)] = resourceVersion
}

// Changes returns the number of all changes.
func (w *World) Changes() int64 { return w.count("") }

func (w *World) count(kind string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changes[kind]
}

func (w *World) changed(o client.Object, counts bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes[""]++
	if counts {
		w.changes[fmt.Sprintf("%T", o)]++
	}
}

// counts reports whether replacing one object with another changes more than what v1alpha1.Observing drops.
func counts(was any, is client.Object) bool {
	before, ok := was.(v1alpha1.Observing)
	if !ok {
		return true
	}
	of := func(o v1alpha1.Observing) v1alpha1.Observing {
		o = o.DeepCopyObject().(v1alpha1.Observing)
		o.DropObserved()
		o.SetResourceVersion("")
		return o
	}
	return !equality.Semantic.DeepEqual(of(before), of(is.(v1alpha1.Observing)))
}

// Put adds objects, or replaces those of the same name. An object without a UID, a creation time or a version gets one, and is then the
// youngest.
func (w *World) Put(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		w.clock = w.clock.Add(time.Second)
		if o.GetUID() == "" {
			o.SetUID(types.UID(w.clock.Format(time.RFC3339)))
		}
		if created := o.GetCreationTimestamp(); created.IsZero() {
			o.SetCreationTimestamp(metav1.Time{Time: w.clock})
		}
		if o.GetResourceVersion() == "" {
			o.SetResourceVersion(strconv.FormatInt(w.Changes(), 10))
		}
		was, _, err := w.indexer(o).Get(o)
		w.must(err)
		w.must(w.indexer(o).Add(o))
		w.changed(o, was == o || counts(was, o))
	}
}

// Remove removes an object.
func (w *World) Remove(o client.Object) {
	w.t.Helper()
	w.must(w.indexer(o).Delete(o))
	w.changed(o, true)
}

func (w *World) indexer(o client.Object) toolscache.Indexer {
	w.t.Helper()
	informer, err := w.cache.GetInformer(w.t.Context(), o)
	w.must(err)
	return informer.(still).GetIndexer()
}

func (w *World) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// still is an informer that neither lists nor watches: tests fill its indexer.
type still struct{ toolscache.SharedIndexInformer }

func newStill(_ toolscache.ListerWatcher, o runtime.Object, _ time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
	return still{toolscache.NewSharedIndexInformer(nil, o, 0, by)}
}

func (still) HasSynced() bool { return true }

func (still) Run(stop <-chan struct{}) { <-stop }

func (still) RunWithContext(ctx context.Context) { <-ctx.Done() }

// mapper returns a mapper that treats all kinds as namespaced. Objects of cluster-scoped kinds have no namespace, and are looked up without
// one.
func mapper(scheme *runtime.Scheme) (meta.RESTMapper, error) {
	m := meta.NewDefaultRESTMapper(nil)
	kinds := []client.Object{&corev1.Namespace{}, &corev1.Secret{}, &corev1.ConfigMap{}, &rbacv1.RoleBinding{}}
	for _, o := range v1alpha1.Kinds() {
		kinds = append(kinds, o)
	}
	for _, o := range kinds {
		gvk, err := apiutil.GVKForObject(o, scheme)
		if err != nil {
			return nil, err
		}
		m.Add(gvk, meta.RESTScopeNamespace)
	}
	return m, nil
}
