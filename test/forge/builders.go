package forge

import (
	"crypto/ed25519"
	"crypto/rand"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/crypto/ssh"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// The builders start with the least that is valid. What they have no method for is set on what Build returns.

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
			Scopes: []v1alpha1.TokenScope{v1alpha1.ScopeAPI}, SecretRef: v1alpha1.SecretKeyReference{Name: name},
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
	b.obj.Spec.SecretRef = v1alpha1.SecretKeyReference{Name: name, Key: key}
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

// DefaultBranch sets the branch that HEAD is to name.
func (b *ProjectBuilder) DefaultBranch(branch string) *ProjectBuilder {
	b.obj.Spec.DefaultBranch = branch
	return b
}

// On says which shard the repository is to be on.
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

// Retained keeps the repository when the project is deleted.
func (b *ProjectBuilder) Retained() *ProjectBuilder {
	b.obj.Spec.DeletionPolicy = v1alpha1.DeletionPolicyRetain
	return b
}

// Build returns the project.
func (b *ProjectBuilder) Build() *v1alpha1.Project { return b.obj.DeepCopy() }

// MembershipBuilder builds a Membership.
type MembershipBuilder struct{ obj v1alpha1.Membership }

// Membership begins the membership of a user, as a Developer.
func Membership(of *v1alpha1.User) *MembershipBuilder {
	return &MembershipBuilder{v1alpha1.Membership{
		ObjectMeta: metav1.ObjectMeta{Name: of.Name},
		Spec:       v1alpha1.MembershipSpec{UserRef: named(of), Role: v1alpha1.RoleDeveloper},
	}}
}

// In says by name which group or project the membership is of, and puts it into the same namespace; its object name is
// made of both.
func (b *MembershipBuilder) In(target client.Object) *MembershipBuilder {
	b.obj.Namespace, b.obj.Name = target.GetNamespace(), target.GetName()+"-"+b.obj.Spec.UserRef.Name
	b.obj.Spec.ProjectRef, b.obj.Spec.GroupRef = references(target)
	return b
}

// Named sets the name of the object.
func (b *MembershipBuilder) Named(name string) *MembershipBuilder { b.obj.Name = name; return b }

// As sets the role.
func (b *MembershipBuilder) As(role v1alpha1.Role) *MembershipBuilder { b.obj.Spec.Role = role; return b }

// Expires sets when the membership ends.
func (b *MembershipBuilder) Expires(at time.Time) *MembershipBuilder {
	b.obj.Spec.ExpiresAt = ptr.To(metav1.NewTime(at))
	return b
}

// Build returns the membership.
func (b *MembershipBuilder) Build() *v1alpha1.Membership { return b.obj.DeepCopy() }

// references are those of a setting to its group or project.
func references(target client.Object) (project, group *v1alpha1.Reference) {
	GinkgoHelper()
	switch target.(type) {
	case *v1alpha1.Project:
		return ptr.To(named(target)), nil
	case *v1alpha1.Group:
		return nil, ptr.To(named(target))
	default:
		Fail("this is neither a group nor a project")
		return nil, nil
	}
}

// DeployKeyBuilder builds a DeployKey.
type DeployKeyBuilder struct{ obj v1alpha1.DeployKey }

// DeployKey begins a read-only deploy key of this title and object name, with a new public key.
func DeployKey(title string) *DeployKeyBuilder {
	GinkgoHelper()
	return &DeployKeyBuilder{v1alpha1.DeployKey{
		ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(title)},
		Spec:       v1alpha1.DeployKeySpec{Title: title, PublicKey: NewPublicKey()},
	}}
}

// NewPublicKey returns a new key in the form of an authorized_keys line.
func NewPublicKey() string {
	GinkgoHelper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	key, err := ssh.NewPublicKey(public)
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// Of says by name which project the key is of, and puts it into the same namespace.
func (b *DeployKeyBuilder) Of(p *v1alpha1.Project) *DeployKeyBuilder {
	b.obj.Namespace, b.obj.Spec.ProjectRef = p.Namespace, named(p)
	return b
}

// Named sets the name of the object.
func (b *DeployKeyBuilder) Named(name string) *DeployKeyBuilder { b.obj.Name = name; return b }

// ID pins the id.
func (b *DeployKeyBuilder) ID(id int64) *DeployKeyBuilder { b.obj.Spec.ID = id; return b }

// PublicKey sets the key, an authorized_keys line.
func (b *DeployKeyBuilder) PublicKey(line string) *DeployKeyBuilder {
	b.obj.Spec.PublicKey = line
	return b
}

// ReadWrite lets the key push.
func (b *DeployKeyBuilder) ReadWrite() *DeployKeyBuilder {
	b.obj.Spec.Access = v1alpha1.DeployKeyReadWrite
	return b
}

// Build returns the deploy key.
func (b *DeployKeyBuilder) Build() *v1alpha1.DeployKey { return b.obj.DeepCopy() }

// ProtectedBranchBuilder builds a ProtectedBranch.
type ProtectedBranchBuilder struct{ obj v1alpha1.ProtectedBranch }

// ProtectedBranch begins the protection of a branch or wildcard.
func ProtectedBranch(branch string) *ProtectedBranchBuilder {
	return &ProtectedBranchBuilder{v1alpha1.ProtectedBranch{
		ObjectMeta: metav1.ObjectMeta{Name: strings.NewReplacer("*", "all", "/", "-").Replace(strings.ToLower(branch))},
		Spec:       v1alpha1.ProtectedBranchSpec{Branch: branch},
	}}
}

// Of says by name which group or project the protection is of, and puts it into the same namespace.
func (b *ProtectedBranchBuilder) Of(target client.Object) *ProtectedBranchBuilder {
	GinkgoHelper()
	b.obj.Namespace = target.GetNamespace()
	b.obj.Spec.ProjectRef, b.obj.Spec.GroupRef = references(target)
	return b
}

// Named sets the name of the object.
func (b *ProtectedBranchBuilder) Named(name string) *ProtectedBranchBuilder {
	b.obj.Name = name
	return b
}

// ID pins the id.
func (b *ProtectedBranchBuilder) ID(id int64) *ProtectedBranchBuilder { b.obj.Spec.ID = id; return b }

// Push says who may push.
func (b *ProtectedBranchBuilder) Push(levels ...v1alpha1.AccessLevel) *ProtectedBranchBuilder {
	b.obj.Spec.Push = levels
	return b
}

// Merge says who may merge.
func (b *ProtectedBranchBuilder) Merge(levels ...v1alpha1.AccessLevel) *ProtectedBranchBuilder {
	b.obj.Spec.Merge = levels
	return b
}

// Unprotect says who may take the protection away.
func (b *ProtectedBranchBuilder) Unprotect(levels ...v1alpha1.AccessLevel) *ProtectedBranchBuilder {
	b.obj.Spec.Unprotect = levels
	return b
}

// ForcePush lets those who may push rewrite the branch.
func (b *ProtectedBranchBuilder) ForcePush() *ProtectedBranchBuilder {
	b.obj.Spec.AllowForcePush = true
	return b
}

// Build returns the protection.
func (b *ProtectedBranchBuilder) Build() *v1alpha1.ProtectedBranch { return b.obj.DeepCopy() }

// Level is the access level that an object stands for: a User, a Group or a DeployKey, by name.
func Level(grantee client.Object) (l v1alpha1.AccessLevel) {
	GinkgoHelper()
	switch grantee.(type) {
	case *v1alpha1.User:
		l.UserRef = ptr.To(named(grantee))
	case *v1alpha1.Group:
		l.GroupRef = ptr.To(named(grantee))
	case *v1alpha1.DeployKey:
		l.DeployKeyRef = ptr.To(named(grantee))
	default:
		Fail("this is neither a user nor a group nor a deploy key")
	}
	return l
}

// Role is the access level of a role.
func Role(role v1alpha1.AccessRole) v1alpha1.AccessLevel { return v1alpha1.AccessLevel{Role: role} }
