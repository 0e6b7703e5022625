package forge

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// The builders start with a minimal valid object. Set fields for which they have no method on the result of Build.

// named returns a reference by name.
func named(obj client.Object) v1alpha1.Reference { return v1alpha1.Reference{Name: obj.GetName()} }

// UserBuilder builds a User.
type UserBuilder struct{ obj v1alpha1.User }

// User returns a builder for a user with this username and object name.
func User(username string) *UserBuilder {
	return &UserBuilder{v1alpha1.User{
		ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(username)}, Spec: v1alpha1.UserSpec{Username: username},
	}}
}

// Named sets the name of the object.
func (b *UserBuilder) Named(name string) *UserBuilder { b.obj.Name = name; return b }

// ID pins the id.
func (b *UserBuilder) ID(id int64) *UserBuilder { b.obj.Spec.ID = id; return b }

// Email sets the address.
func (b *UserBuilder) Email(address string) *UserBuilder { b.obj.Spec.Email = address; return b }

// Admin makes the user an administrator.
func (b *UserBuilder) Admin() *UserBuilder { b.obj.Spec.Admin = true; return b }

// Blocked blocks the user.
func (b *UserBuilder) Blocked() *UserBuilder { b.obj.Spec.State = v1alpha1.UserBlocked; return b }

// Build returns the user.
func (b *UserBuilder) Build() *v1alpha1.User { return b.obj.DeepCopy() }

// AccessTokenBuilder builds an AccessToken.
type AccessTokenBuilder struct{ obj v1alpha1.AccessToken }

// AccessToken returns a builder for a token with this object name, which is kept in a Secret of the same name and has the scope api.
func AccessToken(name string) *AccessTokenBuilder {
	return &AccessTokenBuilder{v1alpha1.AccessToken{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.AccessTokenSpec{
			Scopes: []v1alpha1.TokenScope{v1alpha1.ScopeAPI}, SecretRef: &v1alpha1.SecretKeyReference{Name: name},
		},
	}}
}

// For sets the user of the token.
func (b *AccessTokenBuilder) For(u *v1alpha1.User) *AccessTokenBuilder {
	b.obj.Spec.UserRef = named(u)
	return b
}

// ID pins the id.
func (b *AccessTokenBuilder) ID(id int64) *AccessTokenBuilder { b.obj.Spec.ID = id; return b }

// Scopes sets the scopes.
func (b *AccessTokenBuilder) Scopes(scopes ...v1alpha1.TokenScope) *AccessTokenBuilder {
	b.obj.Spec.Scopes = scopes
	return b
}

// Secret sets the Secret of the value.
func (b *AccessTokenBuilder) Secret(name, key string) *AccessTokenBuilder {
	b.obj.Spec.SecretRef = &v1alpha1.SecretKeyReference{Name: name, Key: key}
	return b
}

// Digest sets the digest of a value that is not kept anywhere.
func (b *AccessTokenBuilder) Digest(digest string) *AccessTokenBuilder {
	b.obj.Spec.SecretRef, b.obj.Spec.Digest = nil, digest
	return b
}

// Expires sets the expiry.
func (b *AccessTokenBuilder) Expires(at time.Time) *AccessTokenBuilder {
	b.obj.Spec.ExpiresAt = ptr.To(metav1.NewTime(at))
	return b
}

// Revoked revokes the token.
func (b *AccessTokenBuilder) Revoked() *AccessTokenBuilder { b.obj.Spec.Revoked = true; return b }

// Build returns the token.
func (b *AccessTokenBuilder) Build() *v1alpha1.AccessToken { return b.obj.DeepCopy() }

// RepositoryStorageBuilder builds a RepositoryStorage.
type RepositoryStorageBuilder struct{ obj v1alpha1.RepositoryStorage }

// RepositoryStorage returns a builder for a shard with this object name.
func RepositoryStorage(name string) *RepositoryStorageBuilder {
	return &RepositoryStorageBuilder{v1alpha1.RepositoryStorage{ObjectMeta: metav1.ObjectMeta{Name: name}}}
}

// At sets the directory at which the volume is mounted.
func (b *RepositoryStorageBuilder) At(path string) *RepositoryStorageBuilder {
	b.obj.Spec.Path = path
	return b
}

// Weight sets the share of new projects.
func (b *RepositoryStorageBuilder) Weight(w int32) *RepositoryStorageBuilder {
	b.obj.Spec.Weight = &w
	return b
}

// Admitting sets the namespaces whose projects can name the shard.
func (b *RepositoryStorageBuilder) Admitting(from v1alpha1.NamespacesFrom) *RepositoryStorageBuilder {
	b.obj.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: from}
	return b
}

// AdmittingLabelled admits the namespaces that have a label.
func (b *RepositoryStorageBuilder) AdmittingLabelled(key, value string) *RepositoryStorageBuilder {
	b.obj.Spec.AllowedNamespaces = labelled(key, value)
	return b
}

// Build returns the shard.
func (b *RepositoryStorageBuilder) Build() *v1alpha1.RepositoryStorage { return b.obj.DeepCopy() }

// GroupBuilder builds a Group.
type GroupBuilder struct{ obj v1alpha1.Group }

// Group returns a builder for a root group with this path and object name.
func Group(path string) *GroupBuilder {
	return &GroupBuilder{v1alpha1.Group{
		ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(path)}, Spec: v1alpha1.GroupSpec{Path: path},
	}}
}

// In sets the namespace.
func (b *GroupBuilder) In(namespace string) *GroupBuilder { b.obj.Namespace = namespace; return b }

// Named sets the name of the object.
func (b *GroupBuilder) Named(name string) *GroupBuilder { b.obj.Name = name; return b }

// ID pins the id.
func (b *GroupBuilder) ID(id int64) *GroupBuilder { b.obj.Spec.ID = id; return b }

// Below puts the group into the namespace of another group, and below it by name.
func (b *GroupBuilder) Below(parent *v1alpha1.Group) *GroupBuilder {
	b.obj.Namespace = parent.Namespace
	b.obj.Spec.ParentRef = ptr.To(named(parent))
	return b
}

// BelowPath puts the group below the group with a full path.
func (b *GroupBuilder) BelowPath(fullPath string) *GroupBuilder {
	b.obj.Spec.ParentRef = &v1alpha1.Reference{Path: fullPath}
	return b
}

// BelowID puts the group below the group with an id.
func (b *GroupBuilder) BelowID(id int64) *GroupBuilder {
	b.obj.Spec.ParentRef = &v1alpha1.Reference{ID: id}
	return b
}

// Admitting sets the namespaces whose groups can be below this one.
func (b *GroupBuilder) Admitting(from v1alpha1.NamespacesFrom) *GroupBuilder {
	b.obj.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: from}
	return b
}

// AdmittingLabelled admits the namespaces that have a label.
func (b *GroupBuilder) AdmittingLabelled(key, value string) *GroupBuilder {
	b.obj.Spec.AllowedNamespaces = labelled(key, value)
	return b
}

// labelled admits the namespaces that have a label.
func labelled(key, value string) *v1alpha1.AllowedNamespaces {
	return &v1alpha1.AllowedNamespaces{
		From: v1alpha1.NamespacesFromSelector,
		Selector: &v1alpha1.NamespaceSelector{
			MatchLabels: map[string]v1alpha1.LabelValue{key: v1alpha1.LabelValue(value)},
		},
	}
}

// Visibility sets who can see the group.
func (b *GroupBuilder) Visibility(v v1alpha1.Visibility) *GroupBuilder {
	b.obj.Spec.Visibility = v
	return b
}

// Build returns the group.
func (b *GroupBuilder) Build() *v1alpha1.Group { return b.obj.DeepCopy() }

// ProjectBuilder builds a Project.
type ProjectBuilder struct{ obj v1alpha1.Project }

// Project returns a builder for a project with this path and object name.
func Project(path string) *ProjectBuilder {
	return &ProjectBuilder{v1alpha1.Project{
		ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(path)}, Spec: v1alpha1.ProjectSpec{Path: path},
	}}
}

// In puts the project into a group by name, and into its namespace.
func (b *ProjectBuilder) In(g *v1alpha1.Group) *ProjectBuilder {
	b.obj.Namespace, b.obj.Spec.GroupRef = g.Namespace, named(g)
	return b
}

// InPath puts the project into a namespace, and into the group with a full path.
func (b *ProjectBuilder) InPath(namespace, fullPath string) *ProjectBuilder {
	b.obj.Namespace, b.obj.Spec.GroupRef = namespace, v1alpha1.Reference{Path: fullPath}
	return b
}

// Named sets the name of the object.
func (b *ProjectBuilder) Named(name string) *ProjectBuilder { b.obj.Name = name; return b }

// ID pins the id.
func (b *ProjectBuilder) ID(id int64) *ProjectBuilder { b.obj.Spec.ID = id; return b }

// Visibility sets who can see the project.
func (b *ProjectBuilder) Visibility(v v1alpha1.Visibility) *ProjectBuilder {
	b.obj.Spec.Visibility = v
	return b
}

// DefaultBranch sets the branch that HEAD must name.
func (b *ProjectBuilder) DefaultBranch(branch string) *ProjectBuilder {
	b.obj.Spec.DefaultBranch = branch
	return b
}

// On sets the shard of the repository.
func (b *ProjectBuilder) On(storage string) *ProjectBuilder { b.obj.Spec.Storage = storage; return b }

// ImportedFrom sets the URL to import.
func (b *ProjectBuilder) ImportedFrom(url string) *ProjectBuilder {
	b.obj.Spec.ImportURL = url
	return b
}

// ForkOf makes the project a fork of the project that a reference names, with all branches or some.
func (b *ProjectBuilder) ForkOf(ref v1alpha1.Reference, branches ...string) *ProjectBuilder {
	b.obj.Spec.ForkOf = &v1alpha1.ForkOf{ProjectRef: ref, Branches: branches}
	return b
}

// ImportSecret names the Secret with the credentials of the import.
func (b *ProjectBuilder) ImportSecret(name string) *ProjectBuilder {
	b.obj.Spec.ImportSecretRef = &v1alpha1.LocalSecretReference{Name: name}
	return b
}

// ObjectFormat sets the hash of the repository.
func (b *ProjectBuilder) ObjectFormat(format v1alpha1.ObjectFormat) *ProjectBuilder {
	b.obj.Spec.ObjectFormat = format
	return b
}

// Discarded makes the deletion of the project remove the repository.
func (b *ProjectBuilder) Discarded() *ProjectBuilder {
	b.obj.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete
	return b
}

// Adopting sets which retained repository the project adopts.
func (b *ProjectBuilder) Adopting(name string) *ProjectBuilder {
	b.obj.Spec.AdoptRepository = name
	return b
}

// Retained makes the deletion of the project keep the repository.
func (b *ProjectBuilder) Retained() *ProjectBuilder {
	b.obj.Spec.DeletionPolicy = v1alpha1.DeletionPolicyRetain
	return b
}

// Build returns the project.
func (b *ProjectBuilder) Build() *v1alpha1.Project { return b.obj.DeepCopy() }
