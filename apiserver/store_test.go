package apiserver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
)

// kubeAPI stands for kube-apiserver: it accepts the writes of REST callers, refuses objects that the definitions of the kinds refuse, and
// puts the others in the cache that the catalog reads, which is the real one.
type kubeAPI struct {
	client.Client // provides the methods that no writer uses

	t       *testing.T
	world   *catalogtest.World
	schemas *familytest.Schemas
	// start has the initial objects, and touched the objects that were written since, by kind and name.
	start, touched map[string]client.Object
	// writes counts the writes since the last reset.
	writes int
}

// definitions are the schemas of the kinds, as kube-apiserver uses them.
var definitions = sync.OnceValues(func() (*familytest.Schemas, error) { return familytest.LoadSchemas("../config/crd") })

func newStore(t *testing.T, objects []client.Object) *kubeAPI {
	t.Helper()
	s := &kubeAPI{t: t, world: catalogtest.New(t), touched: map[string]client.Object{}}
	var err error
	if s.schemas, err = definitions(); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if err := s.schemas.Admit(t.Context(), o, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.world.Put(objects...) // sets the fields that kube-apiserver would set
	s.start = s.everything()
	for key, o := range s.start {
		s.start[key] = o.DeepCopyObject().(client.Object)
	}
	return s
}

// reset restores the initial state.
func (s *kubeAPI) reset() {
	for key, o := range s.touched {
		s.world.Remove(o)
		if was, ok := s.start[key]; ok {
			s.world.Put(was.DeepCopyObject().(client.Object))
		}
	}
	clear(s.touched)
	s.writes = 0
}

// everything returns all objects, as they are in the cache, by kind and name.
func (s *kubeAPI) everything() map[string]client.Object {
	s.t.Helper()
	all := map[string]client.Object{}
	lists := []client.ObjectList{&corev1.SecretList{}, &corev1.ConfigMapList{}}
	for _, kind := range v1alpha1.Kinds() {
		lists = append(lists, kind.NewList())
	}
	for _, l := range lists {
		err := s.world.Reader().List(s.t.Context(), l, client.UnsafeDisableDeepCopy)
		if err == nil {
			err = meta.EachListItem(l, func(item runtime.Object) error {
				o := item.(client.Object)
				all[describe(o)] = o
				return nil
			})
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return all
}

// changes returns the objects that differ from the initial state.
func (s *kubeAPI) changes() []string {
	s.t.Helper()
	var found []string
	is := s.everything()
	for key, o := range s.start {
		if there, ok := is[key]; !ok || !equality.Semantic.DeepEqual(there, o) {
			found = append(found, key)
		}
		delete(is, key)
	}
	return slices.AppendSeq(found, maps.Keys(is))
}

// describe returns the kind and name of an object.
func describe(o client.Object) string { return fmt.Sprintf("%T %s", o, client.ObjectKeyFromObject(o)) }

func (s *kubeAPI) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return s.world.Reader().Get(ctx, key, o, opts...)
}

func (s *kubeAPI) List(ctx context.Context, l client.ObjectList, opts ...client.ListOption) error {
	return s.world.Reader().List(ctx, l, opts...)
}

func (s *kubeAPI) Create(ctx context.Context, o client.Object, _ ...client.CreateOption) error {
	err := s.Get(ctx, client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object))
	if err == nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{}, o.GetName())
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	return s.keep(ctx, o, nil)
}

// Patch takes the given object as the result of the patch, which is correct for a single writer.
func (s *kubeAPI) Patch(ctx context.Context, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
	was := o.DeepCopyObject().(client.Object)
	if err := s.Get(ctx, client.ObjectKeyFromObject(o), was); err != nil {
		return err
	}
	return s.keep(ctx, o, was)
}

func (s *kubeAPI) keep(ctx context.Context, is, was client.Object) error {
	if err := s.schemas.Admit(ctx, is, was); err != nil {
		return err
	}
	s.writes++
	is.SetResourceVersion(strconv.Itoa(s.writes))
	kept := is.DeepCopyObject().(client.Object)
	s.touched[describe(kept)] = kept
	s.world.Put(kept)
	is.SetUID(kept.GetUID())
	is.SetCreationTimestamp(kept.GetCreationTimestamp())
	return nil
}

func (s *kubeAPI) Delete(ctx context.Context, o client.Object, _ ...client.DeleteOption) error {
	if err := s.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	s.writes++
	s.touched[describe(o)] = o
	s.world.Remove(o)
	return nil
}

func (s *kubeAPI) Status() client.SubResourceWriter { return statuses{store: s} }

// statuses writes statuses.
type statuses struct {
	client.SubResourceWriter // provides the methods that no writer uses

	store *kubeAPI
}

func (s statuses) Patch(ctx context.Context, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.store.Patch(ctx, o, p)
}

// counter allocates ids that are larger than all declared ids.
type counter struct{ last int64 }

func (c *counter) Allocate(ctx context.Context, _ v1alpha1.Identified) (int64, error) {
	return c.Next(ctx, "")
}

func (c *counter) Holder(context.Context, v1alpha1.Identified, int64) (client.Object, error) {
	return nil, nil
}

func (c *counter) Former(context.Context, v1alpha1.Identified, int64) (string, error) { return "", nil }

func (c *counter) Next(context.Context, string) (int64, error) {
	c.last++
	return c.last, nil
}
