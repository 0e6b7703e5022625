package virtual_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/apiserver/aggregated/virtual/virtualtest"
)

const (
	whole, broken = "whole", "broken"
	acme          = "acme"
)

// storage has the methods that the generic API server calls.
type storage interface {
	rest.Getter
	rest.Lister
	rest.Watcher
}

func toys(m *virtualtest.Memory) storage {
	return virtualtest.Group(m).Info().VersionedResourcesStorageMap["v1alpha1"]["toys"].(storage)
}

func shop() *virtualtest.Memory {
	m := virtualtest.NewMemory()
	m.Put(acme, "ball", virtualtest.ToyStatus{State: whole, Price: 5})
	m.Put(acme, "car", virtualtest.ToyStatus{State: broken, Price: 7})
	m.Put(acme, "doll", virtualtest.ToyStatus{State: whole, Price: 9})
	m.Put("zoo", "lion", virtualtest.ToyStatus{State: whole, Price: 3})
	return m
}

func in(ctx context.Context, namespace string) context.Context {
	return request.WithNamespace(ctx, namespace)
}

func state(s string) fields.Selector { return fields.OneTermEqualSelector("status.state", s) }

func names(list *virtualtest.ToyList) (all []string) {
	for _, t := range list.Items {
		all = append(all, t.Name)
	}
	return all
}

func TestGet_findsObjectInItsNamespace(t *testing.T) {
	g := NewWithT(t)
	s := toys(shop())
	g.Expect(s.Get(in(t.Context(), acme), "ball", nil)).To(HaveField("Status.Price", int64(5)))
	_, err := s.Get(in(t.Context(), "zoo"), "ball", nil)
	g.Expect(err).To(Satisfy(apierrors.IsNotFound))
}

func TestList_pagesAndSelects(t *testing.T) {
	g := NewWithT(t)
	m := shop()
	s := toys(m)
	list := func(namespace string, o metainternal.ListOptions) *virtualtest.ToyList {
		list, err := s.List(in(t.Context(), namespace), &o)
		g.Expect(err).NotTo(HaveOccurred())
		return list.(*virtualtest.ToyList)
	}
	g.Expect(names(list("", metainternal.ListOptions{}))).To(Equal([]string{"ball", "car", "doll", "lion"}))
	g.Expect(names(list(acme, metainternal.ListOptions{FieldSelector: state(whole)}))).To(Equal([]string{"ball", "doll"}))
	g.Expect(names(list("", metainternal.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "lion")}))).To(Equal([]string{"lion"}))

	first := list("", metainternal.ListOptions{Limit: 3})
	g.Expect(names(first)).To(Equal([]string{"ball", "car", "doll"}))
	m.Put(acme, "ball", virtualtest.ToyStatus{State: broken})
	second := list("", metainternal.ListOptions{Limit: 3, Continue: first.Continue})
	g.Expect(names(second)).To(Equal([]string{"lion"}))
	g.Expect(second.Continue).To(BeEmpty())
	// A watch from here sees the change.
	g.Expect(second.ResourceVersion).To(Equal(first.ResourceVersion))
}

func TestList_refusesWhatItCannotServe(t *testing.T) {
	g := NewWithT(t)
	s := toys(shop())
	refuse := func(o metainternal.ListOptions) error {
		_, err := s.List(in(t.Context(), acme), &o)
		return err
	}
	g.Expect(refuse(metainternal.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"a": "b"})})).To(Satisfy(apierrors.IsBadRequest))
	g.Expect(refuse(metainternal.ListOptions{Continue: "x"})).To(Satisfy(apierrors.IsBadRequest))
	exact := metainternal.ListOptions{ResourceVersion: "2", ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	g.Expect(refuse(exact)).To(Satisfy(apierrors.IsResourceExpired))
}

func TestConvertToTable_keepsPlace(t *testing.T) {
	g := NewWithT(t)
	s := toys(shop())
	list, err := s.List(in(t.Context(), ""), &metainternal.ListOptions{Limit: 1})
	g.Expect(err).NotTo(HaveOccurred())
	table, err := s.ConvertToTable(t.Context(), list, &metav1.TableOptions{NoHeaders: true})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(table.ListMeta).To(Equal(list.(*virtualtest.ToyList).ListMeta))
	g.Expect(table.ColumnDefinitions).To(BeEmpty())
	g.Expect(table.Rows).To(HaveExactElements(HaveField("Cells", []any{"ball", whole, int64(5)})))
	obj, err := s.Get(in(t.Context(), acme), "car", nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.ConvertToTable(t.Context(), obj, nil)).To(HaveField("ResourceVersion", "3"))
}

// watching returns a function that returns the events of a watch since its last call.
func watching(t *testing.T, s storage, o metainternal.ListOptions) (next func() []string) {
	t.Helper()
	w, err := s.Watch(in(t.Context(), acme), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return func() (all []string) {
		<-time.After(1500 * time.Millisecond)
		for {
			synctest.Wait()
			select {
			case e, open := <-w.ResultChan():
				if !open {
					return append(all, "closed")
				}
				all = append(all, show(e))
			default:
				return all
			}
		}
	}
}

func show(e watch.Event) string {
	switch obj := e.Object.(type) {
	case *metav1.Status:
		return string(e.Type) + " " + strconv.Itoa(int(obj.Code))
	case *virtualtest.Toy:
		if e.Type == watch.Bookmark {
			return string(e.Type) + " " + obj.ResourceVersion + obj.Annotations[metav1.InitialEventsAnnotationKey]
		}
		return string(e.Type) + " " + obj.Name
	default:
		return string(e.Type)
	}
}

func TestWatch_sendsChanges(t *testing.T) {
	for name, tt := range map[string]struct {
		options metainternal.ListOptions
		// before are the events until the changes, and after the events of the changes.
		before, after []string
	}{
		"from a list": {
			metainternal.ListOptions{ResourceVersion: "5"}, nil,
			[]string{"MODIFIED ball", "MODIFIED car", "ADDED eel", "DELETED doll"},
		},
		"from an earlier list": {
			metainternal.ListOptions{ResourceVersion: "3"}, []string{"ADDED doll"},
			[]string{"MODIFIED ball", "MODIFIED car", "ADDED eel", "DELETED doll"},
		},
		"from nothing": {
			metainternal.ListOptions{}, []string{"ADDED ball", "ADDED car", "ADDED doll"},
			[]string{"MODIFIED ball", "MODIFIED car", "ADDED eel", "DELETED doll"},
		},
		"from now": {
			metainternal.ListOptions{SendInitialEvents: ptr.To(false)}, nil,
			[]string{"MODIFIED ball", "MODIFIED car", "ADDED eel", "DELETED doll"},
		},
		"with initial events": {
			metainternal.ListOptions{SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true},
			[]string{"ADDED ball", "ADDED car", "ADDED doll", "BOOKMARK 5true"},
			[]string{"MODIFIED ball", "MODIFIED car", "ADDED eel", "DELETED doll"},
		},
		"of objects that match": {
			metainternal.ListOptions{ResourceVersion: "5", FieldSelector: state(whole)}, nil,
			[]string{"DELETED ball", "ADDED car", "DELETED doll"},
		},
		"of objects that matched before": {
			metainternal.ListOptions{ResourceVersion: "2", FieldSelector: state(whole)}, []string{"DELETED car", "ADDED doll"},
			[]string{"DELETED ball", "ADDED car", "DELETED doll"},
		},
		"without a match": {
			metainternal.ListOptions{ResourceVersion: "5", FieldSelector: state("lost"), AllowWatchBookmarks: true}, nil, []string{"BOOKMARK 9"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				m := shop()
				next := watching(t, toys(m), tt.options)
				g.Expect(next()).To(Equal(tt.before))
				m.Put(acme, "ball", virtualtest.ToyStatus{State: broken})
				m.Put(acme, "car", virtualtest.ToyStatus{State: whole})
				m.Put(acme, "eel", virtualtest.ToyStatus{State: broken})
				m.Delete(acme, "doll")
				g.Expect(next()).To(Equal(tt.after))
				g.Expect(next()).To(BeEmpty())
			})
		})
	}
}

func TestWatch_seesObjectsThatCeasedToMatchInAnyBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		m := shop()
		m.AtOnce = 1
		m.Put(acme, "doll", virtualtest.ToyStatus{State: whole, Price: 8})
		m.Put(acme, "ball", virtualtest.ToyStatus{State: broken})
		next := watching(t, toys(m), metainternal.ListOptions{ResourceVersion: "5", FieldSelector: state(whole)})
		g.Expect(append(next(), next()...)).To(Equal([]string{"MODIFIED doll", "DELETED ball"}))
		m.Put(acme, "ball", virtualtest.ToyStatus{State: broken, Price: 1})
		g.Expect(next()).To(BeEmpty())
	})
}

func TestWatch_readsAllBatchesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		m := shop()
		m.AtOnce = 1
		next := watching(t, toys(m), metainternal.ListOptions{ResourceVersion: "5"})
		g.Expect(next()).To(BeEmpty())
		for _, name := range []string{"ball", "car", "doll", "eel"} {
			m.Put(acme, name, virtualtest.ToyStatus{State: broken})
		}
		g.Expect(next()).To(Equal([]string{"MODIFIED ball", "MODIFIED car", "MODIFIED doll", "ADDED eel"}))
	})
}

func TestWatch_endsIfItMissedChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		m := shop()
		s := toys(m)
		next := watching(t, s, metainternal.ListOptions{ResourceVersion: "5"})
		m.Put(acme, "ball", virtualtest.ToyStatus{})
		m.Forget()
		g.Expect(next()).To(Equal([]string{"ERROR 410", "closed"}))
		for _, version := range []string{"5", "99"} {
			_, err := s.Watch(in(t.Context(), acme), &metainternal.ListOptions{ResourceVersion: version})
			g.Expect(err).To(Satisfy(apierrors.IsResourceExpired), version)
		}
	})
}

func TestWatch_endsWithItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		ctx, cancel := context.WithCancel(in(t.Context(), acme))
		w, err := toys(shop()).Watch(ctx, &metainternal.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(show(<-w.ResultChan())).To(Equal("ADDED ball"))
		cancel()
		// synctest fails if the goroutine of the watch goes on.
	})
}
