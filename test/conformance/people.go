package conformance

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forgeplane"
)

// person is a caller.
type person struct {
	name string
	// id is the id of their User, or 0 without a User.
	id int64
	// token is their access token with the scopes api and sudo, or empty without a User.
	token string
	// identity is their Kubernetes identity.
	identity *rest.Config
}

// These are all callers. All except nobody and operator have a User: root administers the instance, and the others are named by the role that they
// have in teams.
var (
	root       = &person{name: "root"}
	owner      = &person{name: "owner"}
	maintainer = &person{name: "maintainer"}
	developer  = &person{name: "developer"}
	guest      = &person{name: "guest"}
	outsider   = &person{name: "outsider"}

	// nobody is anonymous: RBAC admits anonymous requests, and no User is declared for them.
	nobody = &person{name: "nobody"}
	// operator administers the cluster, and has no User.
	operator = &person{name: "operator"}
)

var users = []*person{root, owner, maintainer, developer, guest, outsider}

// admitted is the Kubernetes group whose members RBAC admits to every endpoint.
const admitted = "conformance"

// introducePeople declares the people, and learns their tokens.
func introducePeople() {
	GinkgoHelper()
	admit(admitted, "forgeplane-rest-user")
	for _, p := range append([]*person{nobody}, users...) {
		p.identify(admitted)
	}
	operator.identify("system:masters")
	for _, p := range users {
		p.declare()
	}
	for _, p := range users {
		p.learn()
	}
}

// admit binds a ClusterRole to a group.
func admit(group, role string) {
	GinkgoHelper()
	Expect(api.Create(context.Background(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: group},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: group}},
	})).To(Succeed())
}

// identify gives a person a certificate of a group.
func (p *person) identify(group string) {
	GinkgoHelper()
	var err error
	p.identity, err = controlPlane.Identity(p.kubernetes(), group)
	Expect(err).NotTo(HaveOccurred())
}

func (p *person) kubernetes() string { return "conformance:" + p.name }

// declare declares a User for a person, and an access token.
func (p *person) declare() {
	GinkgoHelper()
	ctx := context.Background()
	Expect(api.Create(ctx, &v1alpha1.User{
		ObjectMeta: metav1.ObjectMeta{Name: p.name},
		Spec: v1alpha1.UserSpec{
			Username: p.name, Name: "Called " + p.name, Email: p.name + "@example.com", Admin: p == root,
			Kubernetes: &v1alpha1.KubernetesIdentity{Username: p.kubernetes()},
		},
	})).To(Succeed())
	Expect(api.Create(ctx, &v1alpha1.AccessToken{
		ObjectMeta: metav1.ObjectMeta{Name: p.name},
		Spec: v1alpha1.AccessTokenSpec{
			UserRef: v1alpha1.Reference{Name: p.name}, Description: "Declared", SecretRef: &v1alpha1.SecretKeyReference{Name: p.name},
			Scopes: []v1alpha1.TokenScope{v1alpha1.ScopeAPI, v1alpha1.ScopeSudo},
		},
	})).To(Succeed())
}

// learn waits for the id and the value of the token that Forgeplane gives a person.
func (p *person) learn() {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		var u v1alpha1.User
		g.Expect(api.Get(context.Background(), client.ObjectKey{Name: p.name}, &u)).To(Succeed())
		g.Expect(u.Status.ID).NotTo(BeZero())
		p.id = u.Status.ID
	}).WithPolling(polling).Should(Succeed())
	p.token = valueOf(p.name)
	var t v1alpha1.AccessToken
	Expect(api.Get(context.Background(), client.ObjectKey{Name: p.name}, &t)).To(Succeed())
	told.introduce(p.token, bearer{user: p.id, token: t.Status.ID})
}

// valueOf waits for the value of the declared access token with a name, whose Secret has the same name.
func valueOf(name string) (value string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		var t v1alpha1.AccessToken
		g.Expect(api.Get(context.Background(), client.ObjectKey{Name: name}, &t)).To(Succeed())
		g.Expect(t.Status.Digest).NotTo(BeEmpty())
		var secret corev1.Secret
		g.Expect(api.Get(context.Background(), client.ObjectKey{Namespace: forgeplane.Namespace, Name: name}, &secret)).To(Succeed())
		value = string(secret.Data["token"])
	}).WithPolling(polling).Should(Succeed())
	return value
}

// made counts the names that fresh has returned.
var made int

// fresh returns a word that no other object has in its name.
func fresh(word string) string {
	made++
	return fmt.Sprintf("%s-%d", word, made)
}

// team is a group with a project in it, and members of the group in every role.
type team struct {
	group   *gitlab.Group
	project *gitlab.Project
}

// roles are the roles of people in teams.
var roles = map[*person]gitlab.AccessLevelValue{
	owner: gitlab.OwnerPermissions, maintainer: gitlab.MaintainerPermissions,
	developer: gitlab.DeveloperPermissions, guest: gitlab.GuestPermissions,
}

// newTeam creates a team with a visibility.
func (d *door) newTeam(visibility gitlab.VisibilityValue) team {
	GinkgoHelper()
	path := fresh("team")
	c := d.as(root)
	group, _, err := c.Groups.CreateGroup(&gitlab.CreateGroupOptions{Name: &path, Path: &path, Visibility: &visibility})
	Expect(err).NotTo(HaveOccurred())
	for p, role := range roles {
		_, _, err := c.GroupMembers.AddGroupMember(group.ID, &gitlab.AddGroupMemberOptions{UserID: &p.id, AccessLevel: &role})
		Expect(err).NotTo(HaveOccurred())
	}
	return team{group: group, project: d.newProject(group.ID, visibility)}
}

// newProject creates a project in a group.
func (d *door) newProject(group int64, visibility gitlab.VisibilityValue) *gitlab.Project {
	GinkgoHelper()
	name := fresh("project")
	p, _, err := d.as(root).Projects.CreateProject(&gitlab.CreateProjectOptions{Name: &name, NamespaceID: &group, Visibility: &visibility})
	Expect(err).NotTo(HaveOccurred())
	return p
}
