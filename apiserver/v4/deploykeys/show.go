package deploykeys

import (
	"context"
	"errors"

	"golang.org/x/crypto/ssh"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/sshkey"
)

// Record has the fields of every response about a deploy key.
type Record struct {
	ID                int64         `json:"id"`
	Title             string        `json:"title"`
	Key               string        `json:"key" doc:"In the form of an authorized_keys line."`
	Fingerprint       string        `json:"fingerprint" doc:"MD5, pairs of hexadecimal digits with colons between."`
	FingerprintSHA256 string        `json:"fingerprint_sha256"`
	CreatedAt         endpoint.Time `json:"created_at"`
	ExpiresAt         endpoint.Time `json:"expires_at" doc:"Always null: deploy keys do not expire."`
}

// Key is a deploy key of a project.
type Key struct {
	Record
	CanPush bool `json:"can_push"`
}

// InstanceKey is a deploy key in the list for administrators.
type InstanceKey struct {
	Record
	Public                     bool                     `json:"public"`
	ProjectsWithWriteAccess    []entity.ProjectIdentity `json:"projects_with_write_access"`
	ProjectsWithReadonlyAccess []entity.ProjectIdentity `json:"projects_with_readonly_access"`
}

// describe computes the fingerprints like the controller, because the status can be outdated.
func describe(k *v1alpha1.DeployKey) Record {
	r := Record{ID: k.RESTID(), Title: k.Spec.Title, Key: k.Spec.PublicKey, CreatedAt: endpoint.Time(k.CreationTimestamp.Time)}
	if key, err := sshkey.Parse(k.Spec.PublicKey); err == nil {
		r.Fingerprint, r.FingerprintSHA256 = ssh.FingerprintLegacyMD5(key), ssh.FingerprintSHA256(key)
	}
	return r
}

func show(k *v1alpha1.DeployKey) Key {
	return Key{Record: describe(k), CanPush: k.Spec.Access == v1alpha1.DeployKeyReadWrite}
}

func (f *Family) showToAdmin(ctx context.Context, k *v1alpha1.DeployKey) (InstanceKey, error) {
	shown := InstanceKey{Record: describe(k), ProjectsWithWriteAccess: []entity.ProjectIdentity{}, ProjectsWithReadonlyAccess: []entity.ProjectIdentity{}}
	scope, err := f.scopeOf(ctx, k)
	if errors.Is(err, catalog.ErrNotFound) {
		return shown, nil
	}
	if err != nil {
		return InstanceKey{}, err
	}
	p := entity.IdentifyProject(scope)
	if k.Spec.Access == v1alpha1.DeployKeyReadWrite {
		shown.ProjectsWithWriteAccess = append(shown.ProjectsWithWriteAccess, p)
	} else {
		shown.ProjectsWithReadonlyAccess = append(shown.ProjectsWithReadonlyAccess, p)
	}
	return shown, nil
}

// scopeOf returns the project of a key.
func (f *Family) scopeOf(ctx context.Context, k *v1alpha1.DeployKey) (catalog.Scope, error) {
	return f.Catalog.ScopeOf(ctx, k)
}
