package familytest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// User returns a user who can call the API. Their name is their username.
func User(name string, id int64, change ...func(*v1alpha1.UserSpec)) *v1alpha1.User {
	u := &v1alpha1.User{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.UserSpec{
			ID: id, Username: name, Email: name + "@forge.example", Type: v1alpha1.UserPerson, State: v1alpha1.UserActive,
		},
		Status: v1alpha1.UserStatus{ID: id},
	}
	for _, c := range change {
		c(&u.Spec)
	}
	return u
}

// Admin makes a user an administrator.
func Admin(s *v1alpha1.UserSpec) { s.Admin = true }

// Blocked blocks a user.
func Blocked(s *v1alpha1.UserSpec) { s.State = v1alpha1.UserBlocked }

// Banned is for users who are banned.
func Banned(s *v1alpha1.UserSpec) { s.State = v1alpha1.UserBanned }

// Group returns a group; below names the one above it in the same namespace, and is empty for a root group.
func Group(namespace, name string, id int64, below string, v v1alpha1.Visibility) *v1alpha1.Group {
	g := &v1alpha1.Group{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.GroupSpec{ID: id, Path: name, Visibility: v},
	}
	if below != "" {
		g.Spec.ParentRef = &v1alpha1.Reference{Name: below}
	}
	return g
}

// Project returns a project in a group of the same namespace.
func Project(namespace, name string, id int64, group string, v v1alpha1.Visibility) *v1alpha1.Project {
	return &v1alpha1.Project{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.ProjectSpec{
			ID: id, Path: name, GroupRef: v1alpha1.Reference{Name: group}, Visibility: v,
			Features: v1alpha1.Features{Repository: v1alpha1.FeatureEnabled},
		},
		// Its default branch is not protected any more.
		Status: v1alpha1.ProjectStatus{ProtectedDefaultBranch: "main"},
	}
}

// InProject returns the membership of a user in a project.
func InProject(namespace, project, username string, r v1alpha1.Role) *v1alpha1.Membership {
	return &v1alpha1.Membership{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: project + "-" + username},
		Spec: v1alpha1.MembershipSpec{
			UserRef: v1alpha1.Reference{Path: username}, ProjectRef: &v1alpha1.Reference{Name: project}, Role: r,
		},
	}
}

// InGroup returns the membership of a user in a group.
func InGroup(namespace, group, username string, r v1alpha1.Role) *v1alpha1.Membership {
	return &v1alpha1.Membership{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "in-" + group + "-" + username},
		Spec: v1alpha1.MembershipSpec{
			UserRef: v1alpha1.Reference{Path: username}, GroupRef: &v1alpha1.Reference{Name: group}, Role: r,
		},
	}
}
