package catalog_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// The objects of the tests: what is not said is as short as it can be. An object is known by the UID that name gives it.

func byName(name string) v1alpha1.Reference { return v1alpha1.Reference{Name: name} }
func byPath(path string) v1alpha1.Reference { return v1alpha1.Reference{Path: path} }
func byID(id int64) v1alpha1.Reference      { return v1alpha1.Reference{ID: id} }

// meaning is a reference that means the object of a UID, and no other one.
func meaning(ref v1alpha1.Reference, uid types.UID) v1alpha1.Reference {
	ref.UID = string(uid)
	return ref
}

func meta(kind, namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(kind + " " + namespace + "/" + name)}
}

// title names an object in the expectations of a test.
func title(o client.Object) string {
	if o == nil {
		return ""
	}
	return string(o.GetUID())
}

func group(namespace, name string, change ...func(*v1alpha1.GroupSpec)) *v1alpha1.Group {
	g := &v1alpha1.Group{ObjectMeta: meta("group", namespace, name), Spec: v1alpha1.GroupSpec{Path: name}}
	for _, c := range change {
		c(&g.Spec)
	}
	return g
}

func below(parent v1alpha1.Reference) func(*v1alpha1.GroupSpec) {
	return func(s *v1alpha1.GroupSpec) { s.ParentRef = &parent }
}

func at(path string) func(*v1alpha1.GroupSpec) {
	return func(s *v1alpha1.GroupSpec) { s.Path = path }
}

func pinned(id int64) func(*v1alpha1.GroupSpec) {
	return func(s *v1alpha1.GroupSpec) { s.ID = id }
}

func visible(v v1alpha1.Visibility) func(*v1alpha1.GroupSpec) {
	return func(s *v1alpha1.GroupSpec) { s.Visibility = v }
}

func admittingAll(s *v1alpha1.GroupSpec) {
	s.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll}
}

func admittingSame(s *v1alpha1.GroupSpec) {
	s.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromSame}
}

func admitting(label, value string) func(*v1alpha1.GroupSpec) {
	return func(s *v1alpha1.GroupSpec) {
		s.AllowedNamespaces = &v1alpha1.AllowedNamespaces{
			From:     v1alpha1.NamespacesFromSelector,
			Selector: &v1alpha1.NamespaceSelector{MatchLabels: map[string]v1alpha1.LabelValue{label: v1alpha1.LabelValue(value)}},
		}
	}
}

func namespace(name, label, value string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: meta("namespace", "", name)}
	n.Labels = map[string]string{label: value}
	return n
}

func project(namespace, name string, in v1alpha1.Reference, change ...func(*v1alpha1.ProjectSpec)) *v1alpha1.Project {
	p := &v1alpha1.Project{ObjectMeta: meta("project", namespace, name), Spec: v1alpha1.ProjectSpec{Path: name, GroupRef: in}}
	for _, c := range change {
		c(&p.Spec)
	}
	return p
}

func placed(path string) func(*v1alpha1.ProjectSpec) {
	return func(s *v1alpha1.ProjectSpec) { s.Path = path }
}

func known(id int64) func(*v1alpha1.ProjectSpec) {
	return func(s *v1alpha1.ProjectSpec) { s.ID = id }
}

func user(name string, id int64, change ...func(*v1alpha1.UserSpec)) *v1alpha1.User {
	u := &v1alpha1.User{ObjectMeta: meta("user", "", name), Spec: v1alpha1.UserSpec{Username: name, ID: id}}
	for _, c := range change {
		c(&u.Spec)
	}
	return u
}

func called(username string) func(*v1alpha1.UserSpec) {
	return func(s *v1alpha1.UserSpec) { s.Username = username }
}

func reached(email string) func(*v1alpha1.UserSpec) {
	return func(s *v1alpha1.UserSpec) { s.Email = email }
}

func deployKey(namespace, name string, id int64, of v1alpha1.Reference) *v1alpha1.DeployKey {
	return &v1alpha1.DeployKey{
		ObjectMeta: meta("deploykey", namespace, name),
		Spec:       v1alpha1.DeployKeySpec{ID: id, Title: name, ProjectRef: of},
	}
}

func inGroup(namespace, name string, of, who v1alpha1.Reference, r v1alpha1.Role) *v1alpha1.Membership {
	return &v1alpha1.Membership{
		ObjectMeta: meta("membership", namespace, name),
		Spec:       v1alpha1.MembershipSpec{GroupRef: &of, UserRef: who, Role: r},
	}
}

func inProject(namespace, name string, of, who v1alpha1.Reference, r v1alpha1.Role) *v1alpha1.Membership {
	return &v1alpha1.Membership{
		ObjectMeta: meta("membership", namespace, name),
		Spec:       v1alpha1.MembershipSpec{ProjectRef: &of, UserRef: who, Role: r},
	}
}

func until(m *v1alpha1.Membership, when time.Time) *v1alpha1.Membership {
	m.Spec.ExpiresAt = &metav1.Time{Time: when}
	return m
}

func protecting(namespace, name, branch string, of v1alpha1.Reference, push ...v1alpha1.AccessLevel) *v1alpha1.ProtectedBranch {
	return &v1alpha1.ProtectedBranch{
		ObjectMeta: meta("protectedbranch", namespace, name),
		Spec:       v1alpha1.ProtectedBranchSpec{ProjectRef: &of, Branch: branch, Push: push},
	}
}

func protectingBelow(namespace, name, branch string, of v1alpha1.Reference, push ...v1alpha1.AccessLevel) *v1alpha1.ProtectedBranch {
	b := protecting(namespace, name, branch, of, push...)
	b.Spec.GroupRef, b.Spec.ProjectRef = b.Spec.ProjectRef, nil
	return b
}

func asDefault(b *v1alpha1.ProtectedBranch) *v1alpha1.ProtectedBranch {
	b.Labels = map[string]string{v1alpha1.LabelDefaultProtection: "true"}
	return b
}

func labelled(namespace, name, title string, of v1alpha1.Reference) *v1alpha1.Label {
	return &v1alpha1.Label{ObjectMeta: meta("l", namespace, name), Spec: v1alpha1.LabelSpec{ProjectRef: &of, Title: title, Color: "#fff"}}
}

func labelledBelow(namespace, name, title string, of v1alpha1.Reference) *v1alpha1.Label {
	return &v1alpha1.Label{ObjectMeta: meta("l", namespace, name), Spec: v1alpha1.LabelSpec{GroupRef: &of, Title: title, Color: "#fff"}}
}

func labelID(l *v1alpha1.Label, id int64) *v1alpha1.Label {
	l.Spec.ID = id
	return l
}

func toRole(r v1alpha1.AccessRole) v1alpha1.AccessLevel { return v1alpha1.AccessLevel{Role: r} }

func toUser(ref v1alpha1.Reference) v1alpha1.AccessLevel { return v1alpha1.AccessLevel{UserRef: &ref} }

func toGroup(ref v1alpha1.Reference) v1alpha1.AccessLevel {
	return v1alpha1.AccessLevel{GroupRef: &ref}
}

func toDeployKey(ref v1alpha1.Reference) v1alpha1.AccessLevel {
	return v1alpha1.AccessLevel{DeployKeyRef: &ref}
}
