package conformance

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

var _ = Describe("A Kubernetes identity", func() {
	d := identities

	It("that administers the cluster administers the instance, without a User", func() {
		c := d.as(operator)
		u, _, err := c.Users.CreateUser(&gitlab.CreateUserOptions{
			Email: gitlab.Ptr(fresh("made") + "@example.com"), Name: gitlab.Ptr("Made"), Username: gitlab.Ptr(fresh("made")),
		})
		Expect(err).NotTo(HaveOccurred())
		team := d.newTeam(gitlab.PrivateVisibility)
		p, _, err := c.Projects.CreateProject(&gitlab.CreateProjectOptions{Name: gitlab.Ptr("Operated"), NamespaceID: &team.group.ID})
		Expect(err).NotTo(HaveOccurred())
		_, _, err = c.ProjectMembers.AddProjectMember(p.ID, &gitlab.AddProjectMemberOptions{UserID: u.ID, AccessLevel: gitlab.Ptr(gitlab.OwnerPermissions)})
		Expect(err).NotTo(HaveOccurred())
		_, _, err = c.ProtectedBranches.ProtectRepositoryBranches(p.PathWithNamespace, &gitlab.ProtectRepositoryBranchesOptions{Name: gitlab.Ptr("a/*")})
		Expect(err).NotTo(HaveOccurred())
		_, err = c.Users.DeleteUser(u.ID)
		Expect(err).NotTo(HaveOccurred())
		noUser := `403 {"message":"403 Forbidden - Your Kubernetes identity is not linked to a user: a User must name it in spec.kubernetes.username"}`
		Expect(answered(send(c, "GET user", ""))).To(Equal(noUser))
		Expect(answered(send(c, "POST projects", `{"name":"Mine"}`))).To(Equal(noUser))
		Expect(answered(send(c, fmt.Sprintf("POST projects/%d/triggers", p.ID), `{"description":"Mine"}`))).To(Equal(noUser))
	})

	It("acts as the User that names it, with the roles of that User", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		me, _, err := d.as(developer).Users.CurrentUser()
		Expect(err).NotTo(HaveOccurred())
		Expect(me.ID).To(Equal(developer.id))
		_, _, err = d.as(developer).Projects.GetProject(team.project.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		r := send(d.as(developer), "PUT projects/"+gitlab.PathEscape(team.project.PathWithNamespace), `{"name":"x"}`)
		Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`))
	})

	It("is limited by the ClusterRole for a role of the forge, and gets no more from it than its User has", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		as := func(p person, role string) *gitlab.Client {
			group := fresh("limited")
			admit(group, "forgeplane-rest-"+role)
			p.identify(group)
			return d.as(&p)
		}
		at := func(rest string) string { return fmt.Sprintf("GET projects/%d", team.project.ID) + rest }
		c := as(*maintainer, "reporter")
		Eventually(func() int { return send(c, at(""), "").StatusCode }).WithPolling(polling).Should(Equal(200), "RBAC has seen the binding")
		Expect(send(c, at("/labels"), "").StatusCode).To(Equal(200))
		Expect(answered(send(c, at("/deploy_keys"), ""))).To(And(HavePrefix("403 "), ContainSubstring(`"kind":"Status"`)), "a Reporter has no endpoint there")
		Expect(send(d.as(maintainer), at("/deploy_keys"), "").StatusCode).To(Equal(200))

		c = as(*guest, "owner")
		Eventually(func() int { return send(c, at(""), "").StatusCode }).WithPolling(polling).Should(Equal(200), "RBAC has seen the binding")
		Expect(answered(send(c, at("/deploy_keys"), ""))).To(Equal(`403 {"message":"403 Forbidden"}`), "RBAC admits it, and the role of the Guest does not")
	})

	It("is ignored if the request has a token", func() {
		Expect(answered(send(d.client(root, guest.token), "GET user", ""))).To(ContainSubstring(`"username":"guest"`))
		Expect(answered(send(d.client(root, "no-such-token"), "GET projects", ""))).To(Equal(unknown))
	})

	It("is not shown as a token", func() {
		for _, request := range []string{"GET personal_access_tokens/self", "POST personal_access_tokens/self/rotate", "DELETE personal_access_tokens/self"} {
			Expect(answered(send(d.as(developer), request, ""))).To(Equal(`405 {"message":"405 Method Not Allowed"}`), request)
		}
	})

	It("cannot act as another user", func() {
		for _, p := range []*person{root, operator} {
			Expect(answered(send(d.as(p), "GET user", "", gitlab.WithSudo("guest")))).To(Equal(
				`403 {"message":"403 Forbidden - Must be authenticated using an OAuth or personal access token to use sudo"}`), p.name)
		}
	})
})
