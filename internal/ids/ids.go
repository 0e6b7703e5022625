// Package ids hands out the integer ids of the REST API.
//
// The next id of each kind is kept in a ConfigMap. A process reserves blocks from it with an optimistic lock, so ids
// are unique across replicas; blocks begin with one id and grow while demand lasts, so that a small installation
// counts 1, 2, 3 and a large one seldom writes. A block that is not used up is lost when the process ends.
package ids

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/frame"
)

// ConfigMap is the name of the ConfigMap that holds the counters, in the namespace of the platform.
const ConfigMap = "forgeplane-ids"

// MaxID is the highest id: beyond it JSON numbers lose digits in many clients.
const MaxID = 1<<53 - 1

// maxBlock bounds what is lost when a process ends.
const maxBlock = 256

// Range is the range of ids of an installation, so that several installations can exist side by side without sharing an id.
type Range struct {
	// First and Last id, both included.
	First, Last int64
}

// Allocator hands out ids. It is safe for use by several goroutines.
type Allocator struct {
	cache     client.Reader
	live      client.Reader
	writer    client.Client
	namespace string
	within    Range

	// used are the functions that Spare has got, by kind.
	used map[string]func(ctx context.Context, id int64) (bool, error)

	mu     sync.Mutex
	blocks map[string]block
}

// block is a reserved run of ids.
type block struct{ next, end, size int64 }

// +kubebuilder:rbac:groups="",namespace=forgeplane-system,resources=configmaps,verbs=create,roleName=forgeplane-manager
// +kubebuilder:rbac:groups="",namespace=forgeplane-system,resources=configmaps,resourceNames=forgeplane-ids,verbs=get;update,roleName=forgeplane-manager
// +kubebuilder:rbac:groups="",namespace=forgeplane-system,resources=configmaps,verbs=create,roleName=forgeplane-apiserver
// +kubebuilder:rbac:groups="",namespace=forgeplane-system,resources=configmaps,resourceNames=forgeplane-ids,verbs=get;update,roleName=forgeplane-apiserver

// New returns an allocator that keeps its counters in namespace. cache has the indexes of the catalog; live reads
// past it.
func New(cache, live client.Reader, writer client.Client, namespace string, within Range) *Allocator {
	if within.First == 0 {
		within.First = 1
	}
	if within.Last == 0 {
		within.Last = MaxID
	}
	return &Allocator{
		cache: cache, live: live, writer: writer, namespace: namespace, within: within,
		blocks: map[string]block{}, used: map[string]func(context.Context, int64) (bool, error){},
	}
}

// Spare makes Allocate skip the ids of a kind that were used according to a record that outlives the objects. Call it before the first Allocate.
func (a *Allocator) Spare(kind string, used func(ctx context.Context, id int64) (bool, error)) {
	a.used[kind] = used
}

var _ frame.Allocator = (*Allocator)(nil)

// Allocate returns an id that it never returned before and that no object of the kind of obj has. Unless Spare prevents that, an id that was
// pinned ahead of the counter can be allocated if its object was deleted before the counter reaches it, and so can one that was allocated
// after the backup from which the counter was restored.
func (a *Allocator) Allocate(ctx context.Context, obj v1alpha1.Identified) (int64, error) {
	kind, err := a.kind(obj)
	if err != nil {
		return 0, err
	}
	for {
		id, err := a.Next(ctx, kind)
		if err != nil {
			return 0, err
		}
		pinned, err := a.Having(ctx, obj, id)
		taken := len(pinned) > 0
		if used := a.used[kind]; err == nil && !taken && used != nil {
			taken, err = used(ctx, id)
		}
		if err != nil {
			return 0, err
		}
		if !taken {
			return id, nil
		}
	}
}

// Next returns the next id that is counted under a name.
func (a *Allocator) Next(ctx context.Context, kind string) (int64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.blocks[kind]
	if b.next == b.end {
		var err error
		if b, err = a.reserve(ctx, kind, min(max(2*b.size, 1), maxBlock)); err != nil {
			return 0, err
		}
	}
	id := b.next
	b.next++
	a.blocks[kind] = b
	return id, nil
}

// Holder returns the object of the kind of obj that holds this id, if it is not obj itself.
func (a *Allocator) Holder(ctx context.Context, obj v1alpha1.Identified, id int64) (client.Object, error) {
	having, err := a.Having(ctx, obj, id)
	if err != nil {
		return nil, err
	}
	holder := claim.HolderOfID(append(having, obj), id)
	if holder.GetUID() == obj.GetUID() {
		return nil, nil
	}
	return holder, nil
}

// Having returns the objects of the kind of obj that have an id.
func (a *Allocator) Having(ctx context.Context, obj client.Object, id int64) ([]v1alpha1.Identified, error) {
	gvk, err := apiutil.GVKForObject(obj, a.writer.Scheme())
	if err != nil {
		return nil, fmt.Errorf("finding the kind of %T: %w", obj, err)
	}
	empty, err := a.writer.Scheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return nil, fmt.Errorf("finding the list kind of %T: %w", obj, err)
	}
	found := empty.(client.ObjectList)
	err = a.cache.List(ctx, found, client.MatchingFields{catalog.IndexID: strconv.FormatInt(id, 10)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("looking up id %d: %w", id, err)
	}
	var objects []v1alpha1.Identified
	err = meta.EachListItem(found, func(o runtime.Object) error {
		objects = append(objects, o.(v1alpha1.Identified))
		return nil
	})
	return objects, err
}

func (a *Allocator) kind(obj client.Object) (string, error) {
	gvk, err := apiutil.GVKForObject(obj, a.writer.Scheme())
	if err != nil {
		return "", fmt.Errorf("finding the kind of %T: %w", obj, err)
	}
	return gvk.Kind, nil
}

// reserve takes a block of ids of one kind out of the ConfigMap.
func (a *Allocator) reserve(ctx context.Context, kind string, size int64) (block, error) {
	var b block
	err := retry.OnError(retry.DefaultBackoff, collides, func() error {
		counters := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: ConfigMap}}
		err := a.live.Get(ctx, client.ObjectKeyFromObject(&counters), &counters)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		next := a.within.First
		if text, ok := counters.Data[kind]; ok {
			if next, err = strconv.ParseInt(text, 10, 64); err != nil || next < a.within.First {
				return fmt.Errorf("the counter %s in ConfigMap %s/%s is %q, not a number from %d on",
					kind, a.namespace, ConfigMap, text, a.within.First)
			}
		}
		if next > a.within.Last {
			return fmt.Errorf("all ids of kind %s up to %d have been used", kind, a.within.Last)
		}
		b = block{next: next, end: min(next+size, a.within.Last+1), size: size}
		if counters.Data == nil {
			counters.Data = map[string]string{}
		}
		counters.Data[kind] = strconv.FormatInt(b.end, 10)
		// They are read past the cache, so no caller waits for a cache to show them: it would need to hold all ConfigMaps.
		if counters.ResourceVersion == "" {
			return a.writer.Create(ctx, &counters, client.DisableReadYourWritesConsistency)
		}
		return a.writer.Update(ctx, &counters, client.DisableReadYourWritesConsistency)
	})
	if err != nil {
		return block{}, fmt.Errorf("reserving ids: %w", err)
	}
	return b, nil
}

// collides reports whether another replica was faster.
func collides(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
