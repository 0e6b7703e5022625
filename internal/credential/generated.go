package credential

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// Generated is a value that Forgeplane wrote into a Secret of the user. The annotation v1alpha1.AnnotationGenerated marks it.
type Generated struct {
	// Key is the key of the value in the Secret.
	Key string
	// For is the UID of the object that the value was generated for.
	For types.UID
	// digest distinguishes the value from a value that was written later.
	digest string
}

// String returns the form of the annotation. Keys, UIDs and digests do not contain its separators.
func (g Generated) String() string { return g.Key + "=" + string(g.For) + ":" + g.digest }

// GeneratedIn returns the generated values in a Secret.
func GeneratedIn(s *corev1.Secret) (all []Generated) {
	for entry := range strings.SplitSeq(s.Annotations[v1alpha1.AnnotationGenerated], ",") {
		key, rest, _ := strings.Cut(entry, "=")
		uid, digest, _ := strings.Cut(rest, ":")
		if value := s.Data[key]; len(value) > 0 && Digest(string(value)) == digest {
			all = append(all, Generated{Key: key, For: types.UID(uid), digest: digest})
		}
	}
	return all
}

// IsGenerated reports whether Forgeplane generated the value of a key in a Secret.
func IsGenerated(s *corev1.Secret, key string) bool {
	return slices.ContainsFunc(GeneratedIn(s), func(g Generated) bool { return g.Key == key })
}

// Generate writes a value that Forgeplane generated for an object into a Secret, and marks it as generated.
func Generate(s *corev1.Secret, key string, uid types.UID, value string) {
	if s.Data == nil {
		s.Data = map[string][]byte{}
	}
	s.Data[key] = []byte(value)
	kept := slices.DeleteFunc(GeneratedIn(s), func(g Generated) bool { return g.Key == key })
	annotate(s, append(kept, Generated{Key: key, For: uid, digest: Digest(value)}))
}

// Remove removes a key from a Secret, with the mark that its value was generated.
func Remove(s *corev1.Secret, key string) {
	delete(s.Data, key)
	annotate(s, GeneratedIn(s))
}

func annotate(s *corev1.Secret, all []Generated) {
	if len(all) == 0 {
		delete(s.Annotations, v1alpha1.AnnotationGenerated)
		return
	}
	entries := make([]string, len(all))
	for i, g := range all {
		entries[i] = g.String()
	}
	slices.Sort(entries)
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.AnnotationGenerated, strings.Join(entries, ","))
}
