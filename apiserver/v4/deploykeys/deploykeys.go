// Package deploykeys is the family of the deploy keys of projects.
package deploykeys

import (
	"context"
	"errors"
	"strings"

	"golang.org/x/crypto/ssh"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/sshkey"
)

// +kubebuilder:rbac:groups=forgeplane.dev,resources=deploykeys,verbs=get;create;patch;delete,roleName=forgeplane-apiserver

// Family serves deploy keys.
type Family struct {
	family.Kit
	keys store.Identified[*v1alpha1.DeployKey]
}

// New returns the family.
func New(k family.Kit) *Family {
	keys := store.ByID(k.Writer, k.Catalog, store.OfProject(catalog.ListForProject[*v1alpha1.DeployKey])).Named("", "Deploy Key")
	return &Family{Kit: k, keys: keys}
}

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/deploy_keys", f.listAll).Needs(auth.AdminInstance).
			Doc("List the deploy keys of all projects."),
		endpoint.Get("/projects/{id}/deploy_keys", f.list).Needs(auth.ReadDeployKeys).
			Doc("List the deploy keys of a project."),
		endpoint.Get("/projects/{id}/deploy_keys/{key_id}", f.get).Needs(auth.ReadDeployKeys).
			Doc("Get a deploy key of a project."),
		endpoint.Post("/projects/{id}/deploy_keys", f.create).Needs(auth.WriteDeployKeys).
			Doc("Create a deploy key of a project, or get it if the project has the key."),
		endpoint.Post("/projects/{id}/deploy_keys/{key_id}/enable", f.enable).Needs(auth.WriteDeployKeys).Asks(auth.ReadDeployKeys).
			Doc("Enable a deploy key of another project that the caller can see, with read access."),
		endpoint.Put("/projects/{id}/deploy_keys/{key_id}", f.update).Needs(auth.WriteDeployKeys).
			Doc("Update a deploy key."),
		endpoint.Delete("/projects/{id}/deploy_keys/{key_id}", f.remove).Needs(auth.WriteDeployKeys).
			Conditional().Doc("Delete a deploy key of a project."),
	}
}

type listAllRequest struct {
	endpoint.Paging
	Public bool `param:"public" doc:"Only public keys. The list is always empty."`
}

func (f *Family) listAll(ctx context.Context, _ auth.Instance, r *listAllRequest) (endpoint.List[InstanceKey], error) {
	var all []*v1alpha1.DeployKey
	if !r.Public {
		var err error
		if all, err = catalog.All[*v1alpha1.DeployKey](ctx, f.Catalog); err != nil {
			return endpoint.List[InstanceKey]{}, err
		}
	}
	var failed error
	page := endpoint.Page(r.Paging, store.InOrder(store.Visible(all, nil)), func(k *v1alpha1.DeployKey) InstanceKey {
		shown, err := f.showToAdmin(ctx, k)
		failed = errors.Join(failed, err)
		return shown
	})
	return page, failed
}

type listRequest struct {
	endpoint.Paging
}

func (f *Family) list(ctx context.Context, s auth.Project, r *listRequest) (endpoint.List[Key], error) {
	all, err := f.keys.List(ctx, s.Subject)
	return endpoint.Page(r.Paging, all, show), err
}

type keyRequest struct {
	KeyID int64 `param:"key_id" doc:"Id of the deploy key."`
}

func (f *Family) get(ctx context.Context, s auth.Project, r *keyRequest) (Key, error) {
	k, err := f.keys.Get(ctx, s.Subject, r.KeyID)
	if err != nil {
		return Key{}, err
	}
	return show(k), nil
}

type createRequest struct {
	Title     string                    `param:"title" required:"" example:"deploy" doc:"Purpose of the key."`
	Key       string                    `param:"key" required:"" example:"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJzCtTiOmwHB1yR6SQl8gfB6Kzu3H0mCz8SaRlZ2sxsv" doc:"Public key in the form of an authorized_keys line."`
	CanPush   bool                      `param:"can_push" doc:"Whether the key may push."`
	ExpiresAt endpoint.Optional[string] `param:"expires_at" doc:"Refused: deploy keys do not expire."`
}

// create returns the existing key if the project has it already, as clients expect.
func (f *Family) create(ctx context.Context, s auth.Project, r *createRequest) (Key, error) {
	if r.ExpiresAt.Or("") != "" {
		// A key that outlived the requested date would be a risk.
		return Key{}, endpoint.Invalid(map[string][]string{"deploy_key.expires_at": {"is not supported"}})
	}
	if err := checkTitle(r.Title); err != nil {
		return Key{}, err
	}
	return f.add(ctx, s, r.Title, r.Key, r.CanPush)
}

// enable creates a copy of the key, so the project cannot change the key of the other project.
func (f *Family) enable(ctx context.Context, s auth.Project, r *keyRequest) (Key, error) {
	k, err := catalog.ByID[*v1alpha1.DeployKey](ctx, f.Catalog, r.KeyID)
	var scope catalog.Scope
	if err == nil {
		scope, err = f.scopeOf(ctx, k)
	}
	if errors.Is(err, catalog.ErrNotFound) {
		return Key{}, endpoint.NotFound("Deploy Key")
	}
	if err != nil {
		return Key{}, err
	}
	access, err := f.Guard.Access(ctx, s.Caller, scope)
	if err != nil {
		return Key{}, err
	}
	if !s.Has(access, auth.ReadDeployKeys) {
		return Key{}, endpoint.NotFound("Deploy Key")
	}
	return f.add(ctx, s, k.Spec.Title, k.Spec.PublicKey, false)
}

// add creates a key of the project, unless the project has the key.
func (f *Family) add(ctx context.Context, s auth.Project, title, publicKey string, push bool) (Key, error) {
	p := s.Scope.Project
	key, err := sshkey.Parse(publicKey)
	if err != nil || len(publicKey) > maxKey {
		return Key{}, endpoint.Invalid(map[string][]string{"deploy_key.key": {"is invalid"}})
	}
	fingerprint := ssh.FingerprintSHA256(key)
	if there, err := f.byFingerprint(ctx, p, fingerprint); err != nil {
		return Key{}, err
	} else if there != nil {
		return show(there), nil
	}
	k := &v1alpha1.DeployKey{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: v1alpha1.NaturalName(p.Name, fingerprint)},
		Spec: v1alpha1.DeployKeySpec{
			ProjectRef: catalog.ReferNamed(p), Title: title, PublicKey: strings.TrimSpace(publicKey), Access: access(push),
		},
	}
	if err := f.keys.Create(ctx, k); errors.Is(err, store.ErrExists) {
		return Key{}, endpoint.Invalid(map[string][]string{"deploy_key.fingerprint_sha256": {"has already been taken"}})
	} else if err != nil {
		return Key{}, err
	}
	return show(k), nil
}

type updateRequest struct {
	KeyID   int64                     `param:"key_id" doc:"Id of the deploy key."`
	Title   endpoint.Optional[string] `param:"title" atLeastOne:"change" example:"nightly deploy" doc:"Purpose of the key."`
	CanPush endpoint.Optional[bool]   `param:"can_push" atLeastOne:"change" doc:"Whether the key may push."`
}

func (f *Family) update(ctx context.Context, s auth.Project, r *updateRequest) (Key, error) {
	if _, err := f.keys.Get(ctx, s.Subject, r.KeyID); err != nil {
		return Key{}, err
	}
	if r.Title.Set {
		if err := checkTitle(r.Title.Value); err != nil {
			return Key{}, err
		}
	}
	k, err := f.keys.Update(ctx, s.Subject, r.KeyID, func(k *v1alpha1.DeployKey) error {
		k.Spec.Title = r.Title.Or(k.Spec.Title)
		k.Spec.Access = access(r.CanPush.Or(k.Spec.Access == v1alpha1.DeployKeyReadWrite))
		return nil
	})
	if err != nil {
		return Key{}, err
	}
	return show(k), nil
}

func (f *Family) remove(ctx context.Context, s auth.Project, r *keyRequest) (endpoint.None, error) {
	return endpoint.None{}, f.keys.Delete(ctx, s.Subject, r.KeyID)
}

// byFingerprint returns the project's deploy key with a fingerprint, or nil.
func (f *Family) byFingerprint(ctx context.Context, p *v1alpha1.Project, fingerprint string) (*v1alpha1.DeployKey, error) {
	all, err := catalog.ListForProject[*v1alpha1.DeployKey](ctx, f.Catalog, p)
	if err != nil {
		return nil, err
	}
	for _, k := range store.InOrder(all) {
		if key, err := sshkey.Parse(k.Spec.PublicKey); err == nil && ssh.FingerprintSHA256(key) == fingerprint {
			return k, nil
		}
	}
	return nil, nil
}

// Limits of the schema.
const (
	maxKey   = 8192
	maxTitle = 255
)

func checkTitle(title string) error {
	const attribute = "deploy_key.title"
	switch {
	case strings.TrimSpace(title) == "":
		return endpoint.Invalid(map[string][]string{attribute: {"can't be blank"}})
	case len([]rune(title)) > maxTitle:
		return endpoint.Invalid(map[string][]string{attribute: {"is too long (maximum is 255 characters)"}})
	default:
		return nil
	}
}

func access(push bool) v1alpha1.DeployKeyAccess {
	if push {
		return v1alpha1.DeployKeyReadWrite
	}
	return v1alpha1.DeployKeyReadOnly
}
