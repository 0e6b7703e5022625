// Package credential finds the Secrets that Forgeplane uses: Secrets of tenants with a label for that purpose, and its own Secrets in the
// namespace of the platform, which tenants cannot name.
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
	// Holder is the object, and Field is its field that names the Secret, for messages.
	Holder client.Object
	Field  string
	// Name of the Secret, in the namespace of the holder.
	Name string
	// Kind is the expected value of the label, such as v1alpha1.SecretOfRemoteMirror.
	Kind string
	// URL is the URL to which the credentials are sent, which the Secret must allow. It is empty if they are not sent.
	URL string
}

// Check returns the cached Secret, or a frame.Waiting error that explains the problem and its fix.
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

// Login reads the credentials past the cache. It does not receive Secrets without the label.
func (o Offer) Login(ctx context.Context, live client.Reader) (Login, error) {
	s, err := o.Read(ctx, live)
	if err != nil {
		return Login{}, err
	}
	return LoginOf(s), nil
}

// Read is Check past the cache, which does not have the content of every Secret. It does not receive Secrets without the label.
func (o Offer) Read(ctx context.Context, live client.Reader) (*corev1.Secret, error) {
	var l corev1.SecretList
	err := live.List(ctx, &l, client.InNamespace(o.Holder.GetNamespace()),
		client.MatchingLabels{v1alpha1.LabelSecret: o.Kind}, client.MatchingFields{metav1.ObjectNameField: o.Name})
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", o.Name, err)
	}
	if len(l.Items) != 1 {
		return nil, o.missing()
	}
	return &l.Items[0], o.admits(&l.Items[0])
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

// admits checks that the Secret allows sending the credentials to the URL.
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

// Origin returns the origin of a URL in the form of AnnotationHost: host or host:port for https, and with the scheme otherwise. It accepts
// a URL or an origin.
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
