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

// named is a reference by name.
func named(obj client.Object) v1alpha1.Reference { return v1alpha1.Reference{Name: obj.GetName()} }

// UserBuilder builds a User.
type UserBuilder struct{ obj v1alpha1.User }

// User begins a user of this username and object name.
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

// AccessToken begins a token of this object name, kept in a Secret of the same name, with the scope api.
func AccessToken(name string) *AccessTokenBuilder {
	return &AccessTokenBuilder{v1alpha1.AccessToken{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.AccessTokenSpec{
			Scopes: []v1alpha1.TokenScope{v1alpha1.ScopeAPI}, SecretRef: &v1alpha1.SecretKeyReference{Name: name},
		},
	}}
}

// For says whom the token stands for.
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

// Secret says where the value is kept.
func (b *AccessTokenBuilder) Secret(name, key string) *AccessTokenBuilder {
	b.obj.Spec.SecretRef = &v1alpha1.SecretKeyReference{Name: name, Key: key}
	return b
}

// Digest says by what the value is known, which is kept nowhere.
func (b *AccessTokenBuilder) Digest(digest string) *AccessTokenBuilder {
	b.obj.Spec.SecretRef, b.obj.Spec.Digest = nil, digest
	return b
}

// Expires sets when the token ends.
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

// RepositoryStorage begins a shard of this object name.
func RepositoryStorage(name string) *RepositoryStorageBuilder {
	return &RepositoryStorageBuilder{v1alpha1.RepositoryStorage{ObjectMeta: metav1.ObjectMeta{Name: name}}}
}

// At says where the volume is mounted.
func (b *RepositoryStorageBuilder) At(path string) *RepositoryStorageBuilder {
	b.obj.Spec.Path = path
	return b
}

// Weight sets the share of new projects.
func (b *RepositoryStorageBuilder) Weight(w int32) *RepositoryStorageBuilder {
	b.obj.Spec.Weight = &w
	return b
}

// Build returns the shard.
func (b *RepositoryStorageBuilder) Build() *v1alpha1.RepositoryStorage { return b.obj.DeepCopy() }

// GroupBuilder builds a Group.
type GroupBuilder struct{ obj v1alpha1.Group }

// Group begins a root group of this path and object name.
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

// Below puts the group into the namespace of another one, and below it by name.
func (b *GroupBuilder) Below(parent *v1alpha1.Group) *GroupBuilder {
	b.obj.Namespace = parent.Namespace
	b.obj.Spec.ParentRef = ptr.To(named(parent))
	return b
}

// BelowPath puts the group below the one of a full path.
func (b *GroupBuilder) BelowPath(fullPath string) *GroupBuilder {
	b.obj.Spec.ParentRef = &v1alpha1.Reference{Path: fullPath}
	return b
}

// BelowID puts the group below the one of an id.
func (b *GroupBuilder) BelowID(id int64) *GroupBuilder {
	b.obj.Spec.ParentRef = &v1alpha1.Reference{ID: id}
	return b
}

// Admitting says which namespaces may put groups below this one.
func (b *GroupBuilder) Admitting(from v1alpha1.NamespacesFrom) *GroupBuilder {
	b.obj.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: from}
	return b
}

// AdmittingLabelled admits the namespaces that carry a label.
func (b *GroupBuilder) AdmittingLabelled(key, value string) *GroupBuilder {
	b.obj.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{
		From: v1alpha1.NamespacesFromSelector,
		Selector: &v1alpha1.NamespaceSelector{
			MatchLabels: map[string]v1alpha1.LabelValue{key: v1alpha1.LabelValue(value)},
		},
	}
	return b
}

// Visibility says who may see the group.
func (b *GroupBuilder) Visibility(v v1alpha1.Visibility) *GroupBuilder {
	b.obj.Spec.Visibility = v
	return b
}

// Build returns the group.
func (b *GroupBuilder) Build() *v1alpha1.Group { return b.obj.DeepCopy() }

// ProjectBuilder builds a Project.
type ProjectBuilder struct{ obj v1alpha1.Project }

// Project begins a project of this path and object name.
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

// InPath puts the project into a namespace, and into the group of a full path.
func (b *ProjectBuilder) InPath(namespace, fullPath string) *ProjectBuilder {
	b.obj.Namespace, b.obj.Spec.GroupRef = namespace, v1alpha1.Reference{Path: fullPath}
	return b
}

// Named sets the name of the object.
func (b *ProjectBuilder) Named(name string) *ProjectBuilder { b.obj.Name = name; return b }

// ID pins the id.
func (b *ProjectBuilder) ID(id int64) *ProjectBuilder { b.obj.Spec.ID = id; return b }

// Visibility says who may see the project.
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

// Discarded lets the repository go with the project.
func (b *ProjectBuilder) Discarded() *ProjectBuilder {
	b.obj.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete
	return b
}

// Adopting says what to do about retained repositories.
func (b *ProjectBuilder) Adopting(name string) *ProjectBuilder {
	b.obj.Spec.AdoptRepository = name
	return b
}

// Retained keeps the repository when the project is deleted.
func (b *ProjectBuilder) Retained() *ProjectBuilder {
	b.obj.Spec.DeletionPolicy = v1alpha1.DeletionPolicyRetain
	return b
}

// Build returns the project.
func (b *ProjectBuilder) Build() *v1alpha1.Project { return b.obj.DeepCopy() }
