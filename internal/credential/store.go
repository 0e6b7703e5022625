package credential

import (
	"context"
	"crypto/subtle"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

const (
	// TokenKey is the key of a Secret of the platform with the value of a trigger token.
	TokenKey = "token"
	// ValueKey is the key of a Secret of the platform with the value of a variable.
	ValueKey = "value"
)

// Store finds credentials that Forgeplane received over REST or generated. They are in Secrets of the platform's namespace. An object names
// its Secret in its status, which tenants cannot write.
type Store struct {
	cache     client.Reader
	namespace string
}

// NewStore returns a store that reads a cache. namespace is the platform's namespace.
func NewStore(cache client.Reader, namespace string) *Store {
	return &Store{cache: cache, namespace: namespace}
}

// New returns a Secret for an object that exists. An object has at most one Secret of each kind. The Secret is deleted when no object names
// it any more.
func (s *Store) New(kind string, holder client.Object, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: NameOf(kind, holder),
			Labels:      map[string]string{v1alpha1.LabelSecret: kind},
			Annotations: map[string]string{v1alpha1.AnnotationHolder: client.ObjectKeyFromObject(holder).String()},
		},
		Type: corev1.SecretTypeOpaque, Data: data,
	}
}

// NameOf returns the name of the Secret of a kind that New returns for an object.
func NameOf(kind string, holder client.Object) string { return kind + "-" + string(holder.GetUID()) }

// Of returns the cached Secret with a name, or nil if it does not exist or belongs to another object.
func (s *Store) Of(ctx context.Context, kind string, holder client.Object, name string) (*corev1.Secret, error) {
	if name == "" {
		return nil, nil
	}
	var found corev1.Secret
	err := s.cache.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, &found)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Secret %s of the platform: %w", name, err)
	}
	if err == nil && Held(&found, kind, holder) {
		return &found, nil
	}
	return nil, nil
}

// Live is Of past the cache, which can show an object before its Secret.
func (s *Store) Live(ctx context.Context, live client.Reader, kind string, holder client.Object, name string) (*corev1.Secret, error) {
	var found corev1.SecretList
	err := live.List(ctx, &found, client.InNamespace(s.namespace), client.MatchingFields{metav1.ObjectNameField: name})
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s of the platform: %w", name, err)
	}
	if len(found.Items) == 1 && Held(&found.Items[0], kind, holder) {
		return &found.Items[0], nil
	}
	return nil, nil
}

// Held reports whether a Secret of the platform belongs to an object.
func Held(s *corev1.Secret, kind string, holder client.Object) bool {
	return s.Labels[v1alpha1.LabelSecret] == kind && s.Annotations[v1alpha1.AnnotationHolder] == client.ObjectKeyFromObject(holder).String()
}

// TriggerToken returns the cached value of a token. It is empty while no value is accepted, and if the value is in a Secret of the token's
// namespace, because the RBAC of that namespace decides who can read it.
func (s *Store) TriggerToken(ctx context.Context, t *v1alpha1.TriggerToken) (string, error) {
	found, err := s.Of(ctx, v1alpha1.SecretOfTriggerToken, t, t.Status.SecretRef.Name)
	if found == nil {
		return "", err
	}
	value := string(found.Data[TokenKey])
	if subtle.ConstantTimeCompare([]byte(t.Status.Digest), []byte(Digest(value))) != 1 {
		return "", nil
	}
	return value, nil
}

// Variable returns the cached value of a variable, and false if it has none.
func (s *Store) Variable(ctx context.Context, v *v1alpha1.Variable) (value string, ok bool, err error) {
	found, err := s.Of(ctx, v1alpha1.SecretOfVariable, v, v.Status.SecretRef.Name)
	if found == nil {
		return "", false, err
	}
	data, ok := found.Data[ValueKey]
	return string(data), ok, nil
}
