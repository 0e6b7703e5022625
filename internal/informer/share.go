package informer

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fieldmanager"
)

const (
	// maxShared is the number of shared labels and owners at which all are discarded, because some are no longer in use.
	maxShared = 100_000
	// recentTexts is the number of texts of earlier objects that later ones can share. An informer lists objects by their names, so what they
	// have in common is often in neighbours.
	recentTexts = 1 << 14
)

// sharing makes objects share the values that many of them have in common and that decoding JSON creates separately for each: their
// namespace, their labels, their owners, and the texts of spec and status. That is safe because objects of a cache are never changed.
type sharing struct {
	mu     sync.Mutex
	seed   maphash.Seed
	texts  [recentTexts]string
	labels map[string]map[string]string
	owners map[string][]metav1.OwnerReference
}

func newSharing() *sharing {
	s := &sharing{seed: maphash.MakeSeed()}
	s.forget()
	return s
}

func (s *sharing) forget() {
	s.labels, s.owners = map[string]map[string]string{}, map[string][]metav1.OwnerReference{}
}

// transform is for cache.Options.DefaultTransform of controller-runtime.
func (s *sharing) transform(o any) (any, error) {
	object, err := meta.Accessor(o)
	if err != nil {
		return o, nil // the last state of something that was deleted unseen
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.labels)+len(s.owners) > maxShared {
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
	if object, ok := o.(v1alpha1.Object); ok {
		s.compact(object)
	}
	return o, nil
}

// strip drops managed fields, which are not read from a cache, with three exceptions: if a controller corrects the owner, if a manifest declares
// the id, and the time of the last change to a trigger token, which REST shows.
func strip(object metav1.Object) {
	switch o := object.(type) {
	case *v1alpha1.TriggerToken:
		fieldmanager.Keep(o, true)
	case v1alpha1.Targeted:
		fieldmanager.Keep(o, false)
	case v1alpha1.Identified:
		fieldmanager.KeepID(o)
	default:
		object.SetManagedFields(nil)
	}
}

func (s *sharing) text(t string) string {
	recent := &s.texts[maphash.String(s.seed, t)%recentTexts]
	if *recent != t {
		*recent = t
	}
	return *recent
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
