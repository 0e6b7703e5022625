package certificate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The keys of the Secret besides tls.crt and tls.key.
const (
	authoritiesKey  = "ca.crt"
	authorityKeyKey = "ca.key"
)

// attempts is the maximum number of attempts of a renewal that conflicts with those of other replicas.
const attempts = 5

// Options of a managed certificate.
type Options struct {
	// Client reads past any cache.
	Client client.Client
	// Secret is the Secret with the certificate and its authority.
	Secret client.ObjectKey
	// Names are the DNS names of the server.
	Names []string
	Clock clock.WithTicker
	Log   logr.Logger
}

// +kubebuilder:rbac:groups="",namespace=forgeplane-system,resources=secrets,verbs=get;create;patch,roleName=forgeplane-apiserver

// Managed returns a source that issues certificates itself, by an authority of its own, and keeps both in a Secret. Replicas
// with the same Secret have the same certificate. Either is renewed after two thirds of its life; a new authority is
// made known for a while before it signs, and an old one stays known until it expires.
func Managed(o Options) *Source {
	s := &Source{clock: o.Clock, log: o.Log}
	s.load = func(ctx context.Context) (*bundle, error) {
		b, err := o.agree(ctx)
		if err != nil {
			return nil, fmt.Errorf("keeping the certificate of the server in the Secret %s: %w", o.Secret, err)
		}
		return b, nil
	}
	return s
}

// agree returns the bundle in the Secret, after a renewal if one is due. If several replicas renew it at once, the first one writes it, and the
// others read what that one wrote.
func (o Options) agree(ctx context.Context) (*bundle, error) {
	var err error
	for range attempts {
		secret := &corev1.Secret{}
		if err = o.Client.Get(ctx, o.Secret, secret); client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		missing := err != nil
		var k *keys
		if k, err = renew(parse(secret.Data), o.Names, o.Clock.Now()); err != nil {
			return nil, err
		}
		data, encodeErr := k.data()
		if encodeErr != nil {
			return nil, encodeErr
		}
		if err = o.write(ctx, secret, missing, data); err == nil {
			return &bundle{authorities: data[authoritiesKey], certificate: data[corev1.TLSCertKey], key: data[corev1.TLSPrivateKeyKey]}, nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
	}
	return nil, errors.Join(errors.New("other replicas keep changing it"), err)
}

func (o Options) write(ctx context.Context, secret *corev1.Secret, missing bool, data map[string][]byte) error {
	if missing {
		return o.Client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.Secret.Namespace, Name: o.Secret.Name},
			Type:       corev1.SecretTypeTLS, Data: data,
		})
	}
	same := true
	for name, text := range data {
		same = same && bytes.Equal(secret.Data[name], text)
	}
	if same {
		return nil
	}
	before := client.MergeFromWithOptions(secret.DeepCopy(), client.MergeFromWithOptimisticLock{})
	secret.Data = data
	return o.Client.Patch(ctx, secret, before)
}

// Lifetimes. Certificates are dated back for clocks that are slow.
const (
	authorityLifetime   = 10 * 365 * 24 * time.Hour
	certificateLifetime = 90 * 24 * time.Hour
	clockSkew           = time.Hour
	// notice is the time for which an authority is published before it signs, while there is a valid certificate.
	notice = 10 * time.Minute
)
