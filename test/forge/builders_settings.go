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

// Membership begins the membership of a user, as a Developer.
func Membership(of *v1alpha1.User) *MembershipBuilder {
	return &MembershipBuilder{v1alpha1.Membership{
		ObjectMeta: metav1.ObjectMeta{Name: of.Name},
		Spec:       v1alpha1.MembershipSpec{UserRef: named(of), Role: v1alpha1.RoleDeveloper},
	}}
}

// In sets the group or project of the membership, by name, and its namespace. The name of the object is made of both.
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

// Expires sets when the membership ends.
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

// ProtectedBranch begins the protection of a branch or wildcard.
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

// Unprotect sets who may remove the protection.
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

// LabelBuilder builds a Label.
type LabelBuilder struct{ obj v1alpha1.Label }

// LabelTitled begins a red label. Label itself is a word of Ginkgo.
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

// TriggerTokenBuilder builds a TriggerToken.
type TriggerTokenBuilder struct{ obj v1alpha1.TriggerToken }

// TriggerToken begins a token of this object name, which nobody owns and which names no Secret.
func TriggerToken(name string) *TriggerTokenBuilder {
	return &TriggerTokenBuilder{v1alpha1.TriggerToken{ObjectMeta: metav1.ObjectMeta{Name: name}}}
}

// Of sets the project of the token, by name, and its namespace.
func (b *TriggerTokenBuilder) Of(p *v1alpha1.Project) *TriggerTokenBuilder {
	b.obj.Namespace, b.obj.Spec.ProjectRef = p.Namespace, named(p)
	return b
}

// OwnedBy says whose token it is.
func (b *TriggerTokenBuilder) OwnedBy(u *v1alpha1.User) *TriggerTokenBuilder {
	b.obj.Spec.OwnerRef = ptr.To(named(u))
	return b
}

// ID pins the id.
func (b *TriggerTokenBuilder) ID(id int64) *TriggerTokenBuilder { b.obj.Spec.ID = id; return b }

// Secret says where the value is kept.
func (b *TriggerTokenBuilder) Secret(name, key string) *TriggerTokenBuilder {
	b.obj.Spec.SecretRef = &v1alpha1.SecretKeyReference{Name: name, Key: key}
	return b
}

// Rotate asks for another value.
func (b *TriggerTokenBuilder) Rotate(text string) *TriggerTokenBuilder {
	metav1.SetMetaDataAnnotation(&b.obj.ObjectMeta, v1alpha1.AnnotationRotate, text)
	return b
}

// Build returns the token.
func (b *TriggerTokenBuilder) Build() *v1alpha1.TriggerToken { return b.obj.DeepCopy() }
