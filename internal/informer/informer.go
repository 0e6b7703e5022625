// Package informer creates informers that list objects in pages, and reports whether objects of given kinds have changed.
//
// By default, client-go streams objects one by one, as events of a watch. For ten thousand custom resources, this takes two and a half times
// as much CPU time as pages of a list, on both sides. The figures are in docs/benchmarks.md.
package informer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/feature"
)

// maxKinds is the maximum number of kinds in a Revision.
const maxKinds = 8

// Revision has the revisions of the informers of some kinds, in the order of the kinds. Equal revisions mean equal content.
type Revision = [maxKinds]string

// Factory makes the informers of one process.
type Factory struct {
	mu sync.RWMutex
	// byKind has the changes of the kinds of which there is one informer.
	byKind map[string]*changes
}

// CacheOptions returns the options for a manager of Forgeplane in the platform's namespace. Servers may not read the Secrets of tenants;
// with tenants set, the cache has those that are labelled for Forgeplane. Of ConfigMaps, it has only the one with the features.
// It has the RoleBindings of the platform only.
func (f *Factory) CacheOptions(platform string, tenants bool) ctrlcache.Options {
	secrets := map[string]ctrlcache.Config{platform: {}}
	if tenants {
		secrets[ctrlcache.AllNamespaces] = ctrlcache.Config{LabelSelector: followed(), Transform: bounded}
	}
	return ctrlcache.Options{
		DefaultTransform: newSharing().transform,
		NewInformer:      f.New,
		ByObject: map[client.Object]ctrlcache.ByObject{
			&corev1.Secret{}: {Namespaces: secrets},
			&corev1.ConfigMap{}: {
				Namespaces: map[string]ctrlcache.Config{platform: {}}, Field: fields.OneTermEqualSelector(metav1.ObjectNameField, feature.ConfigMap),
			},
			&rbacv1.RoleBinding{}: {Namespaces: map[string]ctrlcache.Config{platform: {}}},
		},
	}
}

// followed selects the Secrets of tenants that Forgeplane follows.
func followed() labels.Selector {
	r, err := labels.NewRequirement(v1alpha1.LabelSecret, selection.In, []string{
		v1alpha1.SecretOfTriggerToken, v1alpha1.SecretOfBotToken, v1alpha1.SecretOfRemoteMirror, v1alpha1.SecretOfImport,
		v1alpha1.SecretOfVariable,
	})
	if err != nil {
		panic(err) // it is made of constants
	}
	return labels.NewSelector().Add(*r)
}

// kept are the annotations of a tenant's Secret that matter.
var kept = []string{v1alpha1.AnnotationRotated, v1alpha1.AnnotationGenerated, v1alpha1.AnnotationHost}

// bounded keeps only values of a tenant's Secret that can be tokens, so that a tenant cannot fill the memory of the platform with a label.
// A value that is too long for a token is still so afterwards. Of the Secret of a mirror, an import or a variable it keeps no value: that is
// read when it is needed.
func bounded(o any) (any, error) {
	s, ok := o.(*corev1.Secret)
	if !ok {
		return o, nil
	}
	s.ManagedFields = nil
	for key := range s.Annotations {
		if !slices.Contains(kept, key) {
			delete(s.Annotations, key)
		}
	}
	if kind := s.Labels[v1alpha1.LabelSecret]; kind != v1alpha1.SecretOfTriggerToken && kind != v1alpha1.SecretOfBotToken {
		s.Data = nil
	}
	for key, value := range s.Data {
		s.Data[key] = slices.Clone(value[:min(len(value), credential.MaxValue+1)])
	}
	return s, nil
}

// New makes an informer. It is for cache.Options.NewInformer of controller-runtime.
func (f *Factory) New(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	c := &changes{known: map[types.UID]uint64{}}
	made := newLean(cache.NewSharedIndexInformer(pages{cache.ToListerWatcherWithContext(lw), &ahead{}, c}, example, resync, indexers))
	c.store, c.index = made.GetStore(), made.SharedIndexInformer
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byKind == nil {
		f.byKind = map[string]*changes{}
	}
	kind := fmt.Sprintf("%T", example)
	if _, another := f.byKind[kind]; another {
		f.byKind[kind] = nil
	} else {
		f.byKind[kind] = c
	}
	return made
}

// Reached returns the revision that the informer of a kind has reached. The kind is the Go type, such as "*v1.Secret". It reports false if
// no informer, or more than one, holds the kind.
func (f *Factory) Reached(kind string) (int64, bool) {
	f.mu.RLock()
	c := f.byKind[kind]
	f.mu.RUnlock()
	if c == nil {
		return 0, false
	}
	return c.reached()
}

// ByIndex returns the objects of a kind, named as for Reached, that have a value in an index of a field, uncopied. It spares what a List of
// controller-runtime costs beside, which is most of it where few objects have the value. It reports false where that List must be asked:
// when no informer holds the kind, or more than one does, or when it has not read all of it.
func (f *Factory) ByIndex(kind, field, value string) ([]any, bool) {
	all := f.indexer(kind)
	if all == nil {
		return nil, false
	}
	found, err := all.ByIndex(fieldIndex+field, value)
	return found, err == nil
}

// ByName returns the object of a kind with a name, as ByIndex does, or nil if it does not exist. The namespace is empty for cluster-scoped kinds.
func (f *Factory) ByName(kind string, name types.NamespacedName) (found any, ok bool) {
	all := f.indexer(kind)
	if all == nil {
		return nil, false
	}
	found, _, err := all.GetByKey(cache.NamespacedNameAsObjectName(name).String())
	return found, err == nil
}

// indexer returns the objects of a kind, or nil if they are for the cache to read.
func (f *Factory) indexer(kind string) cache.Indexer {
	f.mu.RLock()
	c := f.byKind[kind]
	f.mu.RUnlock()
	if c == nil || !c.complete() {
		return nil
	}
	return c.index.GetIndexer()
}

// Revision returns the revision of the current content of the informers of some kinds, which are named as in Reached. It changes together
// with the content: a caller who sees the same revision twice has read nothing newer in between. Fields that v1alpha1.Observing drops from
// an object do not count as content. It reports false if the revision is not known, for example because no informer, or more than one, holds
// a kind.
func (f *Factory) Revision(kinds []string) (r Revision, ok bool) {
	if len(kinds) > maxKinds {
		return r, false
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	for i, kind := range kinds {
		c := f.byKind[kind]
		if c == nil {
			return r, false
		}
		if r[i], ok = c.revision(); !ok {
			return r, false
		}
	}
	return r, true
}

// pages lists in pages, and notes what changes.
type pages struct {
	from    cache.ListerWatcherWithContext
	ahead   *ahead
	changes *changes
}

var _ cache.ListerWatcherWithContext = pages{}

// IsWatchListSemanticsUnSupported tells client-go to list.
func (pages) IsWatchListSemanticsUnSupported() bool { return true }

// ListWithContext lists a page. client-go asks for as many as there are, and first for any version of them ("0"), which
// kube-apiserver gives all at once: a version as new as can be is given in pages, and from its cache as well.
func (p pages) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if o.ResourceVersion == "0" {
		o.ResourceVersion = ""
	}
	list, err := p.from.ListWithContext(p.ahead.in(ctx), o)
	if err != nil {
		return nil, err
	}
	// All pages are in memory at once before the informer strips what they hold.
	err = meta.EachListItem(list, func(o runtime.Object) error {
		if object, err := meta.Accessor(o); err == nil {
			strip(object)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, p.changes.listed(list, o.Continue == "")
}

// List implements cache.ListerWatcher.
func (p pages) List(o metav1.ListOptions) (runtime.Object, error) {
	return p.ListWithContext(context.Background(), o)
}

// WatchWithContext notes what changes before the informer sees it.
func (p pages) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := p.from.WatchWithContext(ctx, o)
	if err != nil {
		return nil, err
	}
	return noting(w, p.changes.saw), nil
}

// Watch implements cache.ListerWatcher.
func (p pages) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return p.WatchWithContext(context.Background(), o)
}
