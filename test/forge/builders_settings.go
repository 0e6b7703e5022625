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

// MembershipBuilder builds a Membership.
type MembershipBuilder struct{ obj v1alpha1.Membership }

// Membership returns a builder for the membership of a user, as a Developer.
func Membership(of *v1alpha1.User) *MembershipBuilder {
	return &MembershipBuilder{v1alpha1.Membership{
		ObjectMeta: metav1.ObjectMeta{Name: of.Name},
		Spec:       v1alpha1.MembershipSpec{UserRef: named(of), Role: v1alpha1.RoleDeveloper},
	}}
}

// In sets the group or project of the membership, by name, and its namespace. The name of the object consists of both names.
func (b *MembershipBuilder) In(target client.Object) *MembershipBuilder {
	b.obj.Namespace, b.obj.Name = target.GetNamespace(), target.GetName()+"-"+b.obj.Spec.UserRef.Name
	b.obj.Spec.ProjectRef, b.obj.Spec.GroupRef = references(target)
	return b
}

// Named sets the name of the object.
func (b *MembershipBuilder) Named(name string) *MembershipBuilder { b.obj.Name = name; return b }

// As sets the role.
func (b *MembershipBuilder) As(role v1alpha1.Role) *MembershipBuilder {
	b.obj.Spec.Role = role
	return b
}

// Expires sets the expiry.
func (b *MembershipBuilder) Expires(at time.Time) *MembershipBuilder {
	b.obj.Spec.ExpiresAt = ptr.To(metav1.NewTime(at))
	return b
}

// Build returns the membership.
func (b *MembershipBuilder) Build() *v1alpha1.Membership { return b.obj.DeepCopy() }

// references returns the references of a setting to its group or project.
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

// DeployKey returns a builder for a read-only deploy key with this title and object name, and with a new public key.
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

// Of sets the project of the key, by name, and its namespace.
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

// ProtectedBranch returns a builder for the protection of a branch or wildcard.
func ProtectedBranch(branch string) *ProtectedBranchBuilder {
	return &ProtectedBranchBuilder{v1alpha1.ProtectedBranch{
		ObjectMeta: metav1.ObjectMeta{Name: strings.NewReplacer("*", "all", "/", "-").Replace(strings.ToLower(branch))},
		Spec:       v1alpha1.ProtectedBranchSpec{Branch: branch},
	}}
}

// Of sets the group or project of the protection, by name, and its namespace.
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

// Push sets who can push.
func (b *ProtectedBranchBuilder) Push(levels ...v1alpha1.AccessLevel) *ProtectedBranchBuilder {
	b.obj.Spec.Push = levels
	return b
}

// Merge sets who can merge.
func (b *ProtectedBranchBuilder) Merge(levels ...v1alpha1.AccessLevel) *ProtectedBranchBuilder {
	b.obj.Spec.Merge = levels
	return b
}

// Unprotect sets who can remove the protection.
func (b *ProtectedBranchBuilder) Unprotect(levels ...v1alpha1.AccessLevel) *ProtectedBranchBuilder {
	b.obj.Spec.Unprotect = levels
	return b
}

// ForcePush allows those who can push to rewrite the branch.
func (b *ProtectedBranchBuilder) ForcePush() *ProtectedBranchBuilder {
	b.obj.Spec.AllowForcePush = true
	return b
}

// Build returns the protection.
func (b *ProtectedBranchBuilder) Build() *v1alpha1.ProtectedBranch { return b.obj.DeepCopy() }

// LabelBuilder builds a Label.
type LabelBuilder struct{ obj v1alpha1.Label }

// LabelTitled returns a builder for a red label. Ginkgo already defines Label.
func LabelTitled(title string) *LabelBuilder {
	return &LabelBuilder{v1alpha1.Label{
		ObjectMeta: metav1.ObjectMeta{Name: strings.NewReplacer(" ", "-", ":", "-").Replace(strings.ToLower(title))},
		Spec:       v1alpha1.LabelSpec{Title: title, Color: "#FF0000"},
	}}
}

// Of sets the group or project of the label, by name, and its namespace.
func (b *LabelBuilder) Of(target client.Object) *LabelBuilder {
	GinkgoHelper()
	b.obj.Namespace = target.GetNamespace()
	b.obj.Spec.ProjectRef, b.obj.Spec.GroupRef = references(target)
	return b
}

// Named sets the name of the object.
func (b *LabelBuilder) Named(name string) *LabelBuilder { b.obj.Name = name; return b }

// ID pins the id.
func (b *LabelBuilder) ID(id int64) *LabelBuilder { b.obj.Spec.ID = id; return b }

// Color sets the color.
func (b *LabelBuilder) Color(color string) *LabelBuilder { b.obj.Spec.Color = color; return b }

// Build returns the label.
func (b *LabelBuilder) Build() *v1alpha1.Label { return b.obj.DeepCopy() }

// Level returns the access level of an object by name, which is a User, a Group or a DeployKey.
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

// Role returns the access level of a role.
func Role(role v1alpha1.AccessRole) v1alpha1.AccessLevel { return v1alpha1.AccessLevel{Role: role} }

// TriggerTokenBuilder builds a TriggerToken.
type TriggerTokenBuilder struct{ obj v1alpha1.TriggerToken }

// TriggerToken returns a builder for a token with this object name, without an owner and a Secret.
func TriggerToken(name string) *TriggerTokenBuilder {
	return &TriggerTokenBuilder{v1alpha1.TriggerToken{ObjectMeta: metav1.ObjectMeta{Name: name}}}
}

// Of sets the project of the token, by name, and its namespace.
func (b *TriggerTokenBuilder) Of(p *v1alpha1.Project) *TriggerTokenBuilder {
	b.obj.Namespace, b.obj.Spec.ProjectRef = p.Namespace, named(p)
	return b
}

// OwnedBy sets the owner.
func (b *TriggerTokenBuilder) OwnedBy(u *v1alpha1.User) *TriggerTokenBuilder {
	b.obj.Spec.OwnerRef = ptr.To(named(u))
	return b
}

// ID pins the id.
func (b *TriggerTokenBuilder) ID(id int64) *TriggerTokenBuilder { b.obj.Spec.ID = id; return b }

// Secret sets the Secret of the value.
func (b *TriggerTokenBuilder) Secret(name, key string) *TriggerTokenBuilder {
	b.obj.Spec.SecretRef = &v1alpha1.SecretKeyReference{Name: name, Key: key}
	return b
}

// Rotate requests another value.
func (b *TriggerTokenBuilder) Rotate(text string) *TriggerTokenBuilder {
	metav1.SetMetaDataAnnotation(&b.obj.ObjectMeta, v1alpha1.AnnotationRotate, text)
	return b
}

// Build returns the token.
func (b *TriggerTokenBuilder) Build() *v1alpha1.TriggerToken { return b.obj.DeepCopy() }

// BotTokenBuilder builds a BotToken.
type BotTokenBuilder struct{ obj v1alpha1.BotToken }

// BotToken returns a builder for a token with this object name and the scope api, whose value is under the key token of the Secret of the same
// name.
func BotToken(name string) *BotTokenBuilder {
	return &BotTokenBuilder{v1alpha1.BotToken{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.BotTokenSpec{
			Name: name, Scopes: []v1alpha1.TokenScope{v1alpha1.ScopeAPI}, SecretRef: &v1alpha1.SecretKeyReference{Name: name, Key: "token"},
		},
	}}
}

// Of sets the project of the token, by name, and its namespace.
func (b *BotTokenBuilder) Of(p *v1alpha1.Project) *BotTokenBuilder {
	b.obj.Namespace, b.obj.Spec.ProjectRef = p.Namespace, ptr.To(named(p))
	return b
}

// OfGroup sets the group of the token, by name, and its namespace.
func (b *BotTokenBuilder) OfGroup(g *v1alpha1.Group) *BotTokenBuilder {
	b.obj.Namespace, b.obj.Spec.GroupRef = g.Namespace, ptr.To(named(g))
	return b
}

// ID pins the id.
func (b *BotTokenBuilder) ID(id int64) *BotTokenBuilder { b.obj.Spec.ID = id; return b }

// Secret sets the Secret of the value.
func (b *BotTokenBuilder) Secret(name, key string) *BotTokenBuilder {
	b.obj.Spec.SecretRef = &v1alpha1.SecretKeyReference{Name: name, Key: key}
	return b
}

// Digest sets the digest of the value instead of the Secret.
func (b *BotTokenBuilder) Digest(digest string) *BotTokenBuilder {
	b.obj.Spec.SecretRef, b.obj.Spec.Digest = nil, digest
	return b
}

// Expires sets the time at which the token expires.
func (b *BotTokenBuilder) Expires(at time.Time) *BotTokenBuilder {
	b.obj.Spec.ExpiresAt = &metav1.Time{Time: at}
	return b
}

// Rotate requests another value.
func (b *BotTokenBuilder) Rotate(text string) *BotTokenBuilder {
	metav1.SetMetaDataAnnotation(&b.obj.ObjectMeta, v1alpha1.AnnotationRotate, text)
	return b
}

// Build returns the token.
func (b *BotTokenBuilder) Build() *v1alpha1.BotToken { return b.obj.DeepCopy() }

// StorageMoveBuilder builds a move of the repositories of a project.
type StorageMoveBuilder struct{ obj v1alpha1.StorageMove }

// StorageMove returns a builder for a move with this object name.
func StorageMove(name string) *StorageMoveBuilder {
	return &StorageMoveBuilder{v1alpha1.StorageMove{ObjectMeta: metav1.ObjectMeta{Name: name}}}
}

// Of sets the project of the move, by name, and its namespace.
func (b *StorageMoveBuilder) Of(p *v1alpha1.Project) *StorageMoveBuilder {
	b.obj.Namespace, b.obj.Spec.ProjectRef = p.Namespace, named(p)
	return b
}

// ID pins the id.
func (b *StorageMoveBuilder) ID(id int64) *StorageMoveBuilder { b.obj.Spec.ID = id; return b }

// To sets the destination.
func (b *StorageMoveBuilder) To(storage string) *StorageMoveBuilder {
	b.obj.Spec.Destination = storage
	return b
}

// For sets how long the object is kept after the move has ended.
func (b *StorageMoveBuilder) For(d time.Duration) *StorageMoveBuilder {
	b.obj.Spec.TTLAfterFinished = &metav1.Duration{Duration: d}
	return b
}

// Build returns the move.
func (b *StorageMoveBuilder) Build() *v1alpha1.StorageMove { return b.obj.DeepCopy() }
