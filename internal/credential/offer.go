// Package credential says which Secrets Forgeplane uses: of those of tenants the ones that are labelled for it, and its own, which lie
// in the namespace of the platform, where no tenant can name them.
package credential

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/frame"
)

// Offer is a tenant's Secret that an object names. It is used only if it has a label that declares its purpose. Everyone who can write the
// object can name any Secret, but only those who can write Secrets can label one.
type Offer struct {
	// Holder is the object, and Field the one of its fields that names the Secret, for messages.
	Holder client.Object
	Field  string
	// Name of the Secret, in the namespace of the holder.
	Name string
	// Kind is what the label has to say, such as v1alpha1.SecretOfRemoteMirror.
	Kind string
	// URL is where the credentials are sent, which the Secret has to allow; empty where they are sent nowhere.
	URL string
}

// Check returns the cached Secret, or a frame.Waiting error that says what is wrong with it and how to fix it.
func (o Offer) Check(ctx context.Context, cache client.Reader) (*corev1.Secret, error) {
	var s corev1.Secret
	err := cache.Get(ctx, client.ObjectKey{Namespace: o.Holder.GetNamespace(), Name: o.Name}, &s)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("looking for Secret %s: %w", o.Name, err)
	}
	if err != nil || s.Labels[v1alpha1.LabelSecret] != o.Kind {
		return nil, o.missing()
	}
	return &s, o.admits(&s)
}

// Login has the credentials for another server.
type Login struct {
	Username, Password string
	// Identity is a private key for ssh, and KnownHosts has the host keys of the server in the format of a known_hosts file.
	Identity, KnownHosts []byte
}

// LoginOf returns the credentials in a Secret.
func LoginOf(s *corev1.Secret) Login {
	return Login{
		Username: string(s.Data[UsernameKey]), Password: string(s.Data[PasswordKey]),
		Identity: s.Data[corev1.SSHAuthPrivateKey], KnownHosts: s.Data[KnownHostsKey],
	}
}

// Login reads the credentials past the cache. A Secret that does not bear the label is not even sent.
func (o Offer) Login(ctx context.Context, live client.Reader) (Login, error) {
	var l corev1.SecretList
	err := live.List(ctx, &l, client.InNamespace(o.Holder.GetNamespace()),
		client.MatchingLabels{v1alpha1.LabelSecret: o.Kind}, client.MatchingFields{metav1.ObjectNameField: o.Name})
	if err != nil {
		return Login{}, fmt.Errorf("reading Secret %s: %w", o.Name, err)
	}
	if len(l.Items) != 1 {
		return Login{}, o.missing()
	}
	s := &l.Items[0]
	if err := o.admits(s); err != nil {
		return Login{}, err
	}
	return LoginOf(s), nil
}

// The keys of a Secret with credentials for a host, in addition to corev1.SSHAuthPrivateKey.
const (
	UsernameKey   = "username"
	PasswordKey   = "password"
	KnownHostsKey = "known_hosts"
)

func (o Offer) missing() error {
	return frame.Waiting(v1alpha1.ReasonReferenceNotFound,
		"%s: there is no Secret %s with the label %s=%s in this namespace; if it exists without the label and Forgeplane may use it, run: kubectl label secret %[2]s --namespace %[5]s %[3]s=%[4]s",
		o.Field, o.Name, v1alpha1.LabelSecret, o.Kind, o.Holder.GetNamespace())
}

// admits checks that the credentials may be sent to the URL.
func (o Offer) admits(s *corev1.Secret) error {
	if o.URL == "" {
		return nil
	}
	to, err := Origin(o.URL)
	if err != nil {
		return frame.Stalled(v1alpha1.ReasonInvalid, "%w", err)
	}
	said, ok := s.Annotations[v1alpha1.AnnotationHost]
	if at, err := Origin(said); err == nil && at == to {
		return nil
	}
	what := "has no annotation " + v1alpha1.AnnotationHost
	if ok {
		what = fmt.Sprintf("is for another host: its annotation %s is %q", v1alpha1.AnnotationHost, said)
	}
	return frame.Waiting(v1alpha1.ReasonReferenceNotAllowed,
		"%s: Secret %s %s; if its credentials may be sent to %s, run: kubectl annotate secret %[2]s --namespace %[6]s --overwrite %[5]s=%[4]s",
		o.Field, o.Name, what, to, v1alpha1.AnnotationHost, o.Holder.GetNamespace())
}

// Origin is where a URL leads, as AnnotationHost names it: host, or host:port, for https, and with the scheme before it for anything
// else. It takes either form.
func Origin(text string) (string, error) {
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return "", fmt.Errorf("the value is neither a host nor a URL")
	}
	usual := map[string]string{"https": "443", "http": "80", "ssh": "22"}[u.Scheme]
	host := strings.ToLower(u.Host)
	if u.Port() == usual {
		host = strings.TrimSuffix(strings.TrimSuffix(host, usual), ":")
	}
	if u.Scheme == "https" {
		return host, nil
	}
	return u.Scheme + "://" + host, nil
}
