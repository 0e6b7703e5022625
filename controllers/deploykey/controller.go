// Package deploykey reconciles deploy keys: it sets their fingerprints, and ensures that a project has each key only once.
package deploykey

import (
	"context"
	"slices"

	"golang.org/x/crypto/ssh"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/deploykey"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/sshkey"
)

// Controller reconciles deploy keys.
type Controller struct {
	frame *frame.Frame[*v1alpha1.DeployKey]
}

// New returns the controller.
func New(b frame.Base) *Controller {
	return &Controller{frame.New(b, frame.WithClaims(func(ctx context.Context, c *catalog.Catalog, k *v1alpha1.DeployKey) ([]claim.Claim, error) {
		return deploykey.Claims(ctx, c, k, fingerprintOf(k))
	}))}
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=deploykeys,verbs=patch
// +kubebuilder:rbac:groups=forgeplane.dev,resources=deploykeys/status,verbs=patch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	return c.frame.Watch(mgr, o).
		OnReleased(&v1alpha1.DeployKey{}, c.frame.Catalog.Peers(&v1alpha1.DeployKeyList{}, catalog.IndexProject, c.projectKeys)).
		Complete(reconcile.AsReconciler(c.frame.Client, c))
}

// Reconcile reconciles one deploy key.
func (c *Controller) Reconcile(ctx context.Context, k *v1alpha1.DeployKey) (reconcile.Result, error) {
	return c.frame.Run(ctx, k, fingerprint, frame.InScope(c.frame, frame.Reachable(c.frame), c.claim))
}

func fingerprint(_ context.Context, k *v1alpha1.DeployKey) error {
	key, err := sshkey.Parse(k.Spec.PublicKey)
	if err != nil {
		k.Status.FingerprintMD5, k.Status.FingerprintSHA256 = "", ""
		return frame.Stalled(v1alpha1.ReasonInvalid, "publicKey must be a key in the format of a line of authorized_keys: %w", err)
	}
	k.Status.FingerprintMD5, k.Status.FingerprintSHA256 = ssh.FingerprintLegacyMD5(key), ssh.FingerprintSHA256(key)
	return nil
}

// claim prevents a project from having the same key twice.
func (c *Controller) claim(ctx context.Context, k *v1alpha1.DeployKey, s catalog.Scope) error {
	siblings, err := catalog.ListForProject[*v1alpha1.DeployKey](ctx, c.frame.Catalog, s.Project)
	if err != nil {
		return err
	}
	fingerprint := k.Status.FingerprintSHA256
	same := slices.DeleteFunc(siblings, func(s *v1alpha1.DeployKey) bool { return fingerprintOf(s) != fingerprint })
	held := claim.DeployKey(s.Project.UID, fingerprint)
	return c.frame.Take(ctx, k, claim.Holder(same, held), held, "the key %s", fingerprint)
}

// fingerprintOf returns the fingerprint of the key; empty if the key is not valid.
func fingerprintOf(k *v1alpha1.DeployKey) string {
	key, err := sshkey.Parse(k.Spec.PublicKey)
	if err != nil {
		return ""
	}
	return ssh.FingerprintSHA256(key)
}

// projectKeys maps a deploy key to the keys of its project.
func (c *Controller) projectKeys(ctx context.Context, obj client.Object) []string {
	p, err := c.frame.Catalog.Target(ctx, obj.(*v1alpha1.DeployKey))
	if err != nil {
		return nil
	}
	return c.frame.Catalog.Keys(ctx, p)
}
