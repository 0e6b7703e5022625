package token

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// SecretName is the name of the Secret in the namespace of the platform that has the keys.
	SecretName = "forgeplane-registry-keys"
	// keyPrefix precedes the time of a key in its name in the Secret, in seconds since 1970.
	keyPrefix = "key-"
	// uploadsKey is the name of the secret that signs the state of uploads.
	uploadsKey = "uploads"

	algorithm = jose.RS256
	keyBits   = 2048
	// rotation is the age of a key at which the next one is made.
	rotation = 90 * 24 * time.Hour
	// notice is the time for which a key is published before it signs, unless it is the only one. It is longer than refresh.
	notice = 5 * time.Minute
	// MaxLifetime is the longest lifetime of a token.
	MaxLifetime = 24 * time.Hour
	// refresh is the time between two looks at the Secret, and hurry the least time before a look for an unknown key.
	refresh, hurry = time.Minute, time.Second
	// attempts is the maximum number of attempts of a change that conflicts with those of other replicas.
	attempts = 5
)

// Options of Keys.
type Options struct {
	// Client reads past any cache.
	Client client.Client
	// Namespace is the namespace of the platform.
	Namespace string
	Clock     clock.WithTicker
	Log       logr.Logger
}

// Keys are the keys that sign tokens, in a Secret that all processes share. A key is replaced after 90 days, without a restart: the next one is
// known before it signs, and the former one is known until its tokens have expired. An administrator who deletes a key from the Secret, or all
// of it, makes the tokens of that key invalid within a minute. Keys are safe for concurrent use.
type Keys struct {
	o     Options
	clock clock.PassiveClock

	mu      sync.RWMutex
	current *ring
	// tried is the time of the last look at the Secret.
	tried time.Time
	// loading is held during a look at the Secret.
	loading sync.Mutex
}

// ring is the keys of the Secret at one time.
type ring struct {
	signer  jose.Signer
	public  map[string]*rsa.PublicKey
	uploads string
}

// NewKeys returns keys that are ready after a Load.
func NewKeys(o Options) *Keys { return &Keys{o: o, clock: o.Clock} }

// +kubebuilder:rbac:groups="",namespace=forgeplane-system,resources=secrets,verbs=get;create;patch,roleName=forgeplane-apiserver

// Load reads the keys, and creates or replaces those that are due.
func (k *Keys) Load(ctx context.Context) error {
	k.loading.Lock()
	defer k.loading.Unlock()
	k.mu.Lock()
	k.tried = k.clock.Now()
	k.mu.Unlock()
	data, err := k.agree(ctx)
	if err != nil {
		return fmt.Errorf("keeping the keys of the registry in the Secret %s/%s: %w", k.o.Namespace, SecretName, err)
	}
	r, err := newRing(data, k.clock.Now())
	if err != nil {
		return fmt.Errorf("reading the keys of the registry in the Secret %s/%s: %w", k.o.Namespace, SecretName, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.current = r
	return nil
}

// Run keeps the keys up to date until ctx ends.
func (k *Keys) Run(ctx context.Context) {
	tick := k.o.Clock.NewTicker(refresh)
	defer tick.Stop()
	for {
		if err := k.Load(ctx); err != nil && ctx.Err() == nil {
			k.o.Log.Error(err, "Failed to update the keys of the registry")
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C():
		}
	}
}

// UploadSecret returns the secret that signs the state of uploads, which all processes share.
func (k *Keys) UploadSecret() (string, error) {
	r, err := k.ring()
	if err != nil {
		return "", err
	}
	return r.uploads, nil
}

var errNotLoaded = errors.New("the keys of the registry have not been read yet")

func (k *Keys) ring() (*ring, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.current == nil {
		return nil, errNotLoaded
	}
	return k.current, nil
}

func (k *Keys) signer() (jose.Signer, error) {
	r, err := k.ring()
	if err != nil {
		return nil, err
	}
	return r.signer, nil
}

// verifier returns the public key with an id. Another process may have made it just now, so an unknown one is looked up, at most once a second.
func (k *Keys) verifier(id string) (*rsa.PublicKey, bool) {
	if r, err := k.ring(); err == nil && r.public[id] != nil {
		return r.public[id], true
	}
	if !strings.HasPrefix(id, keyPrefix) {
		return nil, false
	}
	k.mu.RLock()
	tried := k.tried
	k.mu.RUnlock()
	if k.clock.Since(tried) < hurry {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := k.Load(ctx); err != nil {
		k.o.Log.Error(err, "Failed to update the keys of the registry")
	}
	r, err := k.ring()
	if err != nil {
		return nil, false
	}
	key, ok := r.public[id]
	return key, ok
}

// agree returns the content of the Secret, after the changes that are due. If several processes change it at once, the first one writes it, and
// the others read what that one wrote.
func (k *Keys) agree(ctx context.Context) (map[string][]byte, error) {
	var err error
	for range attempts {
		secret := &corev1.Secret{}
		err = k.o.Client.Get(ctx, client.ObjectKey{Namespace: k.o.Namespace, Name: SecretName}, secret)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		missing := err != nil
		data, changed, renewErr := renew(secret.Data, k.clock.Now(), k.uploads())
		if renewErr != nil || !changed {
			return data, renewErr
		}
		if missing {
			err = k.o.Client.Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: k.o.Namespace, Name: SecretName}, Type: corev1.SecretTypeOpaque, Data: data,
			})
		} else {
			before := client.MergeFromWithOptions(secret.DeepCopy(), client.MergeFromWithOptimisticLock{})
			secret.Data = data
			err = k.o.Client.Patch(ctx, secret, before)
		}
		if err == nil {
			return data, nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
	}
	return nil, errors.Join(errors.New("other processes keep changing it"), err)
}

// uploads returns the secret of uploads that this process uses, or a new one.
func (k *Keys) uploads() string {
	if r, err := k.ring(); err == nil {
		return r.uploads
	}
	return rand.Text() + rand.Text()
}

// renew returns the data that the Secret should have, and whether it differs. uploads is the secret of uploads if it has none. Processes use it as
// long as they run, so it must stay when an administrator deletes the Secret.
func renew(data map[string][]byte, now time.Time, uploads string) (map[string][]byte, bool, error) {
	next := maps.Clone(data)
	if next == nil {
		next = map[string][]byte{}
	}
	names := keysIn(data)
	changed := false
	if len(names) == 0 || now.Sub(madeAt(names[len(names)-1])) >= rotation {
		text, err := newKey()
		if err != nil {
			return nil, false, err
		}
		next[keyPrefix+strconv.FormatInt(now.Unix(), 10)] = text
		changed = true
	}
	for i := 0; i+1 < len(names); i++ { // a key goes when its successor has signed alone for longer than any token lives
		if now.Sub(madeAt(names[i+1])) > notice+MaxLifetime+time.Hour {
			delete(next, names[i])
			changed = true
		}
	}
	if len(next[uploadsKey]) == 0 {
		next[uploadsKey] = []byte(uploads)
		changed = true
	}
	return next, changed, nil
}

func newKey() ([]byte, error) {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return keyutil.MarshalPrivateKeyToPEM(key)
}

// keysIn returns the names of the usable keys in the data of the Secret, the oldest first.
func keysIn(data map[string][]byte) []string {
	var names []string
	for name, text := range data {
		if parseKey(text) != nil && !madeAt(name).IsZero() {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return madeAt(a).Compare(madeAt(b)) })
	return names
}

func parseKey(text []byte) *rsa.PrivateKey {
	parsed, err := keyutil.ParsePrivateKeyPEM(text)
	if err != nil {
		return nil
	}
	key, _ := parsed.(*rsa.PrivateKey)
	return key
}

// madeAt returns the time of a key by its name; the zero time if it is not the name of a key.
func madeAt(name string) time.Time {
	text, ok := strings.CutPrefix(name, keyPrefix)
	seconds, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil || seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

// newRing parses the data of the Secret. The newest key that has been known for a while signs, or else the oldest one.
func newRing(data map[string][]byte, now time.Time) (*ring, error) {
	names := keysIn(data)
	if len(names) == 0 {
		return nil, errors.New("it has no usable key")
	}
	r := &ring{public: map[string]*rsa.PublicKey{}, uploads: string(data[uploadsKey])}
	signs := names[0]
	for _, name := range names {
		r.public[name] = &parseKey(data[name]).PublicKey
		if now.Sub(madeAt(name)) >= notice {
			signs = name
		}
	}
	key := jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: parseKey(data[signs]), KeyID: signs}}
	signer, err := jose.NewSigner(key, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return nil, fmt.Errorf("using the key %s: %w", signs, err)
	}
	r.signer = signer
	return r, nil
}
