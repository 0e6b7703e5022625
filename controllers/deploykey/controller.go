// Package deploykey reconciles deploy keys: their fingerprints, and that a project has each key once.
package deploykey

import (
	"context"
	"slices"

	"golang.org/x/crypto/ssh"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/reference"
	"github.com/forgeplane/forgeplane/internal/sshkey"
)

// Controller reconciles deploy keys.
type Controller struct {
	client  client.Client
	catalog *catalog.Catalog
	frame   *frame.Frame[*v1alpha1.DeployKey]
}

// New returns the controller.
func New(c client.Client, r events.EventRecorder, cat *catalog.Catalog, ids frame.Allocator) *Controller {
	return &Controller{
		client: c, catalog: cat,
		frame: frame.New(c, r,
			frame.WithIDs[*v1alpha1.DeployKey](ids),
			frame.WithOwner(func(ctx context.Context, k *v1alpha1.DeployKey) (client.Object, error) {
				return cat.Target(ctx, k.Namespace, &k.Spec.ProjectRef, nil)
			}),
			frame.WithClaims(cat.Register(), func(ctx context.Context, k *v1alpha1.DeployKey) ([]claim.Claim, error) {
				return cat.DeployKeyClaims(ctx, k, fingerprintOf(k))
			})),
	}
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=deploykeys,verbs=patch
// +kubebuilder:rbac:groups=forgeplane.dev,resources=deploykeys/status,verbs=patch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	keys := &v1alpha1.DeployKeyList{}
	return frame.NewWatch(mgr, "deploykey", &v1alpha1.DeployKey{}, o).
		OnReferred(&v1alpha1.Project{}, c.catalog.Referrers(keys, catalog.IndexProject)).
		OnReleased(&v1alpha1.DeployKey{}, c.catalog.Peers(keys, catalog.IndexProject, c.projectKeys)).
		OnReleased(&v1alpha1.DeployKey{}, c.catalog.Peers(keys, catalog.IndexID, catalog.SpecID)).
		OnClaimReleased(&v1alpha1.DeployKey{}, c.catalog.Waiting(&v1alpha1.DeployKey{})).
		Complete(reconcile.AsReconciler(c.client, c))
}

// Reconcile brings one deploy key up to date.
func (c *Controller) Reconcile(ctx context.Context, k *v1alpha1.DeployKey) (reconcile.Result, error) {
	return c.frame.Run(ctx, k, c.fingerprint, c.claim)
}

func (c *Controller) fingerprint(_ context.Context, k *v1alpha1.DeployKey) error {
	key, err := sshkey.Parse(k.Spec.PublicKey)
	if err != nil {
		k.Status.FingerprintMD5, k.Status.FingerprintSHA256 = "", ""
		return frame.Stalled(v1alpha1.ReasonInvalid, "publicKey is not a key in the form of an authorized_keys line: %w", err)
	}
	k.Status.FingerprintMD5, k.Status.FingerprintSHA256 = ssh.FingerprintLegacyMD5(key), ssh.FingerprintSHA256(key)
	return nil
}

// claim keeps a project from having one key twice.
func (c *Controller) claim(ctx context.Context, k *v1alpha1.DeployKey) error {
	p, err := c.catalog.Project(ctx, k.Namespace, k.Spec.ProjectRef)
	if err != nil {
		return reference.Unresolved("projectRef", err)
	}
	scope, err := c.catalog.ProjectScope(ctx, p)
	if err != nil {
		return reference.Unresolved("projectRef", err)
	}
	if err := reference.Reachable(ctx, c.catalog, "projectRef", p, scope.Path()); err != nil {
		return err
	}
	siblings, err := c.catalog.DeployKeysOf(ctx, p)
	if err != nil {
		return err
	}
	fingerprint := k.Status.FingerprintSHA256
	same := slices.DeleteFunc(siblings, func(s *v1alpha1.DeployKey) bool { return fingerprintOf(s) != fingerprint })
	held := claim.DeployKey(p.UID, fingerprint)
	return reference.Take(ctx, c.catalog, k, claim.Holder(same, held), held, "the key %s", fingerprint)
}

// fingerprintOf is that of the key; empty when it is none.
func fingerprintOf(k *v1alpha1.DeployKey) string {
	key, err := sshkey.Parse(k.Spec.PublicKey)
	if err != nil {
		return ""
	}
	return ssh.FingerprintSHA256(key)
}

// projectKeys maps a deploy key to the keys of its project.
func (c *Controller) projectKeys(ctx context.Context, obj client.Object) []string {
	p, err := c.catalog.Project(ctx, obj.GetNamespace(), obj.(*v1alpha1.DeployKey).Spec.ProjectRef)
	if err != nil {
		return nil
	}
	return c.catalog.ProjectKeys(ctx, p)
}
