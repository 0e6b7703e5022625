package informer

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/declare"
)

// maxShared is the number of shared values at which all are discarded, because some are no longer in use.
const maxShared = 100_000

// sharing makes objects share the values that many of them have in common and that decoding JSON creates separately for each: their
// namespace, their labels and their owners. That is safe because nobody changes an object of a cache.
type sharing struct {
	mu     sync.Mutex
	texts  map[string]string
	labels map[string]map[string]string
	owners map[string][]metav1.OwnerReference
}

func newSharing() *sharing {
	s := &sharing{}
	s.forget()
	return s
}

func (s *sharing) forget() {
	s.texts, s.labels, s.owners = map[string]string{}, map[string]map[string]string{}, map[string][]metav1.OwnerReference{}
}

// transform is for cache.Options.DefaultTransform of controller-runtime.
func (s *sharing) transform(o any) (any, error) {
	object, err := meta.Accessor(o)
	if err != nil {
		return o, nil // the last state of something that was deleted unseen
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.texts)+len(s.labels)+len(s.owners) > maxShared {
		s.forget()
	}
	strip(object)
	object.SetNamespace(s.text(object.GetNamespace()))
	if l := object.GetLabels(); l != nil {
		object.SetLabels(s.label(l))
	}
	if owners := object.GetOwnerReferences(); owners != nil {
		object.SetOwnerReferences(s.owner(owners))
	}
	return o, nil
}

// strip drops managed fields, which nobody reads from a cache, except for the time of the last change to a trigger token, which REST shows.
func strip(object metav1.Object) {
	if t, ok := object.(*v1alpha1.TriggerToken); ok {
		declare.KeepChanged(t)
		return
	}
	object.SetManagedFields(nil)
}

func (s *sharing) text(t string) string {
	if known, ok := s.texts[t]; ok {
		return known
	}
	s.texts[t] = t
	return t
}

func (s *sharing) label(l map[string]string) map[string]string {
	pairs := make([]string, 0, len(l))
	for name, value := range l {
		pairs = append(pairs, name+"="+value)
	}
	slices.Sort(pairs)
	key := strings.Join(pairs, ",")
	if known, ok := s.labels[key]; ok {
		return known
	}
	s.labels[key] = l
	return l
}

func (s *sharing) owner(owners []metav1.OwnerReference) []metav1.OwnerReference {
	var key strings.Builder
	for i := range owners {
		key.WriteString(owners[i].String())
	}
	if known, ok := s.owners[key.String()]; ok {
		return known
	}
	s.owners[key.String()] = owners
	return owners
}
