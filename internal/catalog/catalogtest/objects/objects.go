// Package objects creates declared objects for tests, with the shortest possible values for everything that a test does not set. The UID of
// an object is derived from its name.
package objects

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	"github.com/forgeplane/forgeplane/internal/credential"
)

// ByName returns a reference by name.
func ByName(name string) v1alpha1.Reference { return v1alpha1.Reference{Name: name} }

// ByPath returns a reference by path.
func ByPath(path string) v1alpha1.Reference { return v1alpha1.Reference{Path: path} }

// ByID returns a reference by REST id.
func ByID(id int64) v1alpha1.Reference { return v1alpha1.Reference{ID: id} }

// Meaning returns a reference that means only the object with a UID.
func Meaning(ref v1alpha1.Reference, uid types.UID) v1alpha1.Reference {
	ref.UID = string(uid)
	return ref
}

// Meta returns the metadata of an object of a kind.
func Meta(kind, namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(kind + " " + namespace + "/" + name)}
}

// Title returns the name of an object in the expectations of a test.
func Title(o client.Object) string {
	if o == nil {
		return ""
	}
	return string(o.GetUID())
}

// Group returns a group; its path is its name.
func Group(namespace, name string, change ...func(*v1alpha1.GroupSpec)) *v1alpha1.Group {
	g := &v1alpha1.Group{ObjectMeta: Meta("group", namespace, name), Spec: v1alpha1.GroupSpec{Path: name}}
	for _, c := range change {
		c(&g.Spec)
	}
	return g
}

// Below sets the parent of a group.
func Below(parent v1alpha1.Reference) func(*v1alpha1.GroupSpec) {
	return func(s *v1alpha1.GroupSpec) { s.ParentRef = &parent }
}

// At sets the path of a group.
func At(path string) func(*v1alpha1.GroupSpec) {
	return func(s *v1alpha1.GroupSpec) { s.Path = path }
}

// Pinned sets the id of a group.
func Pinned(id int64) func(*v1alpha1.GroupSpec) {
	return func(s *v1alpha1.GroupSpec) { s.ID = id }
}

// Visible sets the visibility of a group.
func Visible(v v1alpha1.Visibility) func(*v1alpha1.GroupSpec) {
	return func(s *v1alpha1.GroupSpec) { s.Visibility = v }
}

// AdmittingAll makes a group admit groups of all namespaces.
func AdmittingAll(s *v1alpha1.GroupSpec) {
	s.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll}
}

// AdmittingSame makes a group admit only groups of its own namespace.
func AdmittingSame(s *v1alpha1.GroupSpec) {
	s.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromSame}
}

// Admitting makes a group admit groups of the namespaces with a label.
func Admitting(label, value string) func(*v1alpha1.GroupSpec) {
	return func(s *v1alpha1.GroupSpec) {
		s.AllowedNamespaces = &v1alpha1.AllowedNamespaces{
			From:     v1alpha1.NamespacesFromSelector,
			Selector: &v1alpha1.NamespaceSelector{MatchLabels: map[string]v1alpha1.LabelValue{label: v1alpha1.LabelValue(value)}},
		}
	}
}

// Namespace returns a namespace with a label.
func Namespace(name, label, value string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: Meta("namespace", "", name)}
	n.Labels = map[string]string{label: value}
	return n
}

// Project returns a project in a group; its path is its name. It has created the protection of its default branch, which is gone.
func Project(namespace, name string, in v1alpha1.Reference, change ...func(*v1alpha1.ProjectSpec)) *v1alpha1.Project {
	p := &v1alpha1.Project{ObjectMeta: Meta("project", namespace, name), Spec: v1alpha1.ProjectSpec{Path: name, GroupRef: in}}
	p.Status.ProtectedDefaultBranch = "main"
	for _, c := range change {
		c(&p.Spec)
	}
	return p
}

// Placed sets the path of a project.
func Placed(path string) func(*v1alpha1.ProjectSpec) {
	return func(s *v1alpha1.ProjectSpec) { s.Path = path }
}

// Known sets the id of a project.
func Known(id int64) func(*v1alpha1.ProjectSpec) {
	return func(s *v1alpha1.ProjectSpec) { s.ID = id }
}

// User returns a user; the username is the name.
func User(name string, id int64, change ...func(*v1alpha1.UserSpec)) *v1alpha1.User {
	u := &v1alpha1.User{ObjectMeta: Meta("user", "", name), Spec: v1alpha1.UserSpec{Username: name, ID: id}}
	for _, c := range change {
		c(&u.Spec)
	}
	return u
}

// Called sets the username of a user.
func Called(username string) func(*v1alpha1.UserSpec) {
	return func(s *v1alpha1.UserSpec) { s.Username = username }
}

// Reached sets the email address of a user.
func Reached(email string) func(*v1alpha1.UserSpec) {
	return func(s *v1alpha1.UserSpec) { s.Email = email }
}

// DeployKey returns a deploy key of a project.
func DeployKey(namespace, name string, id int64, of v1alpha1.Reference) *v1alpha1.DeployKey {
	return &v1alpha1.DeployKey{
		ObjectMeta: Meta("deploykey", namespace, name),
		Spec:       v1alpha1.DeployKeySpec{ID: id, Title: name, ProjectRef: of},
	}
}

// InGroup returns a membership of a user in a group.
func InGroup(namespace, name string, of, who v1alpha1.Reference, r v1alpha1.Role) *v1alpha1.Membership {
	return &v1alpha1.Membership{
		ObjectMeta: Meta("membership", namespace, name),
		Spec:       v1alpha1.MembershipSpec{GroupRef: &of, UserRef: who, Role: r},
	}
}

// InProject returns a membership of a user in a project.
func InProject(namespace, name string, of, who v1alpha1.Reference, r v1alpha1.Role) *v1alpha1.Membership {
	return &v1alpha1.Membership{
		ObjectMeta: Meta("membership", namespace, name),
		Spec:       v1alpha1.MembershipSpec{ProjectRef: &of, UserRef: who, Role: r},
	}
}

// Sharing returns a share with a group.
func Sharing(with v1alpha1.Reference, r v1alpha1.Role) v1alpha1.Share {
	return v1alpha1.Share{GroupRef: with, Role: r}
}

// Until sets the end of a membership.
func Until(m *v1alpha1.Membership, when time.Time) *v1alpha1.Membership {
	m.Spec.ExpiresAt = &metav1.Time{Time: when}
	return m
}

// Protecting returns a protection of a branch of a project.
func Protecting(namespace, name, branch string, of v1alpha1.Reference, push ...v1alpha1.AccessLevel) *v1alpha1.ProtectedBranch {
	return &v1alpha1.ProtectedBranch{
		ObjectMeta: Meta("protectedbranch", namespace, name),
		Spec:       v1alpha1.ProtectedBranchSpec{ProjectRef: &of, Branch: branch, Push: push},
	}
}

// ProtectingBelow returns a protection of a branch in all projects below a group.
func ProtectingBelow(namespace, name, branch string, of v1alpha1.Reference, push ...v1alpha1.AccessLevel) *v1alpha1.ProtectedBranch {
	b := Protecting(namespace, name, branch, of, push...)
	b.Spec.GroupRef, b.Spec.ProjectRef = b.Spec.ProjectRef, nil
	return b
}

// AsDefault marks a protection as the one that its project created for the default branch.
func AsDefault(b *v1alpha1.ProtectedBranch) *v1alpha1.ProtectedBranch {
	b.Labels = map[string]string{v1alpha1.LabelDefaultProtection: "true"}
	return b
}

// Labelled returns a label of a project.
func Labelled(namespace, name, title string, of v1alpha1.Reference) *v1alpha1.Label {
	return &v1alpha1.Label{ObjectMeta: Meta("l", namespace, name), Spec: v1alpha1.LabelSpec{ProjectRef: &of, Title: title, Color: "#fff"}}
}

// LabelledBelow returns a label of a group.
func LabelledBelow(namespace, name, title string, of v1alpha1.Reference) *v1alpha1.Label {
	return &v1alpha1.Label{ObjectMeta: Meta("l", namespace, name), Spec: v1alpha1.LabelSpec{GroupRef: &of, Title: title, Color: "#fff"}}
}

// LabelID sets the id of a label.
func LabelID(l *v1alpha1.Label, id int64) *v1alpha1.Label {
	l.Spec.ID = id
	return l
}

// ToRole returns an access level for a role.
func ToRole(r v1alpha1.AccessRole) v1alpha1.AccessLevel { return v1alpha1.AccessLevel{Role: r} }

// ToUser returns an access level for a user.
func ToUser(ref v1alpha1.Reference) v1alpha1.AccessLevel { return v1alpha1.AccessLevel{UserRef: &ref} }

// ToGroup returns an access level for a group.
func ToGroup(ref v1alpha1.Reference) v1alpha1.AccessLevel {
	return v1alpha1.AccessLevel{GroupRef: &ref}
}

// ToDeployKey returns an access level for a deploy key.
func ToDeployKey(ref v1alpha1.Reference) v1alpha1.AccessLevel {
	return v1alpha1.AccessLevel{DeployKeyRef: &ref}
}

// Badge returns a badge of a project or group.
func Badge(namespace, name string, id int64, project, group *v1alpha1.Reference) *v1alpha1.Badge {
	return &v1alpha1.Badge{
		ObjectMeta: Meta("badge", namespace, name),
		Spec:       v1alpha1.BadgeSpec{ID: id, ProjectRef: project, GroupRef: group},
	}
}

// TriggerToken returns a trigger token of a project; the value may be empty.
func TriggerToken(namespace, name string, of v1alpha1.Reference, value string) *v1alpha1.TriggerToken {
	t := &v1alpha1.TriggerToken{
		ObjectMeta: Meta("triggertoken", namespace, name), Spec: v1alpha1.TriggerTokenSpec{ProjectRef: of},
	}
	if value != "" {
		t.Status.Digest = credential.Digest(value)
	}
	return t
}

// JobTokenScope returns the job token scope of a project, with an allowlist.
func JobTokenScope(namespace, name string, of v1alpha1.Reference, allowed ...v1alpha1.Reference) *v1alpha1.JobTokenScope {
	s := &v1alpha1.JobTokenScope{ObjectMeta: Meta("jobtokenscope", namespace, name), Spec: v1alpha1.JobTokenScopeSpec{ProjectRef: of}}
	for _, a := range allowed {
		s.Spec.Allowlist = append(s.Spec.Allowlist, v1alpha1.AllowlistEntry{ProjectRef: a})
	}
	return s
}

// Owned adds an owner to an object.
func Owned[T client.Object](o T, kind, name string, uid types.UID) T {
	o.SetOwnerReferences(append(o.GetOwnerReferences(), metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Name: name, UID: uid,
	}))
	return o
}

// TenantWorld returns a world with the project acme/sub/web and another project in the namespace a, and a project with the same names in
// the namespace b.
func TenantWorld(t testing.TB) (*catalogtest.World, *v1alpha1.Project) {
	t.Helper()
	web := Project("a", "web", ByName("sub"), Known(100))
	return catalogtest.New(t, User("max", 1),
		Group("a", "acme", Pinned(10)), Group("a", "sub", Pinned(11), Below(ByName("acme"))), web, Project("a", "other", ByName("sub"), Known(101)),
		Group("b", "bolt", Pinned(20)), Project("b", "web", ByName("bolt"), Known(200)),
	), web
}

// Large returns a world with 10,000 projects in 100 subgroups of 10 root groups, one of these projects, and a user who is a member of every
// group above it.
func Large(b testing.TB) (*catalogtest.World, *v1alpha1.User, *v1alpha1.Project) {
	b.Helper()
	u := User("max", 1)
	w := catalogtest.New(b, u)
	id := int64(0)
	for i := range 10 {
		root := fmt.Sprintf("root-%d", i)
		id++
		w.Put(Group(root, root, Pinned(id)))
		for j := range 10 {
			sub := fmt.Sprintf("sub-%d", j)
			id++
			w.Put(Group(root, sub, Pinned(id), Below(ByName(root))))
			for k := range 100 {
				id++
				w.Put(Project(root, fmt.Sprintf("%s-p-%d", sub, k), ByName(sub), Known(id)))
			}
		}
	}
	p, err := w.Catalog().ProjectByPath(b.Context(), "root-5/sub-5/sub-5-p-50")
	if err != nil {
		b.Fatal(err)
	}
	w.Put(InGroup("root-5", "m1", ByName("root-5"), ByPath("max"), v1alpha1.RoleReporter),
		InGroup("root-5", "m2", ByName("sub-5"), ByPath("max"), v1alpha1.RoleDeveloper),
		InProject("root-5", "m3", ByName(p.Name), ByPath("max"), v1alpha1.RoleMaintainer))
	return w, u, p
}
