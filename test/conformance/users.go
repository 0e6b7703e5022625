package conformance

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

// newUser creates a user.
func (d *door) newUser(username string) *gitlab.User {
	GinkgoHelper()
	u, _, err := d.as(root).Users.CreateUser(&gitlab.CreateUserOptions{
		Email: gitlab.Ptr(username + "@example.com"), Name: gitlab.Ptr("Zoë " + username), Username: &username,
		Password: gitlab.Ptr("a password that nobody needs"), SkipConfirmation: gitlab.Ptr(true),
	})
	Expect(err).NotTo(HaveOccurred())
	return u
}

var _ = throughEachDoor("Users", func(d *door) {
	It("are created, read, changed and removed", func() {
		c := d.as(root)
		username := fresh("Zoe_u.x-")
		made := d.newUser(username)
		Expect(made.ID).NotTo(BeZero())
		Expect(made.Username).To(Equal(username))
		Expect(made.Name).To(Equal("Zoë " + username))
		Expect(made.Email).To(Equal(username + "@example.com"))
		Expect(made.State).To(Equal("active"))
		Expect(made.WebURL).To(Equal(own.url + "/" + username))
		Expect(made.CreatedAt.IsZero()).To(BeFalse())

		got, _, err := c.Users.GetUser(made.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(Equal(made))

		changed, _, err := c.Users.ModifyUser(made.ID, &gitlab.ModifyUserOptions{Name: gitlab.Ptr("田中 + Söhne"), Admin: gitlab.Ptr(true)})
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.Name).To(Equal("田中 + Söhne"))
		Expect(changed.IsAdmin).To(BeTrue())
		Expect(changed.Username).To(Equal(username))
		Expect(changed.Email).To(Equal(made.Email))

		r, err := c.Users.DeleteUser(made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
		_, r, err = c.Users.GetUser(made.ID, nil)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(`404 {"message":"404 User Not Found"}`))
	})

	It("see and change less or more if they are external users or auditors", d.again(), func() {
		team := d.newTeam(gitlab.InternalVisibility)
		c, theirs := d.as(root), d.as(outsider)
		become := func(external, auditor bool) *gitlab.User {
			GinkgoHelper()
			u, _, err := c.Users.ModifyUser(outsider.id, &gitlab.ModifyUserOptions{External: &external, Auditor: &auditor})
			Expect(err).NotTo(HaveOccurred())
			return u
		}
		DeferCleanup(func() { become(false, false) })
		_, _, err := theirs.Projects.GetProject(team.project.ID, nil)
		Expect(err).NotTo(HaveOccurred())

		Expect(become(true, false)).To(And(HaveField("External", true), HaveField("IsAuditor", false), HaveField("CanCreateGroup", false)))
		_, _, err = theirs.Projects.GetProject(team.project.ID, nil)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		_, r, err := theirs.Groups.CreateGroup(&gitlab.CreateGroupOptions{Name: gitlab.Ptr("x"), Path: gitlab.Ptr(fresh("external"))})
		Expect(err).To(HaveOccurred())
		Expect(r.StatusCode).To(Equal(403))
		_, r, err = theirs.Projects.CreateProject(&gitlab.CreateProjectOptions{Name: gitlab.Ptr(fresh("external"))})
		Expect(err).To(HaveOccurred())
		Expect(r.StatusCode).To(Equal(403))

		private := d.newTeam(gitlab.PrivateVisibility)
		Expect(become(false, true)).To(And(HaveField("External", false), HaveField("IsAuditor", true)))
		_, _, err = theirs.Projects.GetProject(private.project.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		_, _, err = theirs.DeployKeys.ListProjectDeployKeys(private.project.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		_, r, err = theirs.Labels.CreateLabel(private.project.ID, &gitlab.CreateLabelOptions{Name: gitlab.Ptr("audit"), Color: gitlab.Ptr("#fff")})
		Expect(err).To(HaveOccurred())
		Expect(r.StatusCode).To(Equal(403))
	})

	It("are listed by username and by part of a name, and sorted for administrators", d.again(), func() {
		word := fresh("list")
		first, second := d.newUser(word+"-a"), d.newUser(word+"-b")
		usernames := func(p *person, o *gitlab.ListUsersOptions) (all []string) {
			GinkgoHelper()
			list, _, err := d.as(p).Users.ListUsers(o)
			Expect(err).NotTo(HaveOccurred())
			for _, u := range list {
				all = append(all, u.Username)
			}
			return all
		}
		Expect(usernames(developer, &gitlab.ListUsersOptions{Search: &word})).To(Equal([]string{second.Username, first.Username}))
		Expect(usernames(root, &gitlab.ListUsersOptions{Search: &word, OrderBy: gitlab.Ptr("username"), Sort: gitlab.Ptr("asc")})).
			To(Equal([]string{first.Username, second.Username}))
		Expect(usernames(developer, &gitlab.ListUsersOptions{Username: gitlab.Ptr("LIST" + first.Username[len("list"):])})).
			To(Equal([]string{first.Username}))
		_, err := d.as(root).Users.BlockUser(first.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(usernames(developer, &gitlab.ListUsersOptions{Search: &word, Active: gitlab.Ptr(true)})).To(Equal([]string{second.Username}))
		Expect(usernames(developer, &gitlab.ListUsersOptions{Search: &word, Blocked: gitlab.Ptr(true)})).To(Equal([]string{first.Username}))
	})

	It("show their addresses only to administrators and to themselves", func() {
		seen, _, err := d.as(developer).Users.GetUser(maintainer.id, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(seen.Username).To(Equal("maintainer"))
		Expect(seen.Email).To(BeEmpty())
		listed, _, err := d.as(root).Users.ListUsers(&gitlab.ListUsersOptions{Username: gitlab.Ptr("maintainer")})
		Expect(err).NotTo(HaveOccurred())
		Expect(listed).To(HaveLen(1))
		Expect(listed[0].Email).To(Equal("maintainer@example.com"))
	})

	It("are refused everywhere while they are blocked", func() {
		c := d.as(root)
		u := d.newUser(fresh("blocked"))
		token := d.newToken(u.ID, "api")
		Expect(answered(send(d.with(token.Token), "GET version", ""))).To(HavePrefix("200"))

		r, err := c.Users.BlockUser(u.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("201 true"))
		blocked, _, err := c.Users.GetUser(u.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(blocked.State).To(Equal("blocked"))
		Expect(answered(send(d.with(token.Token), "GET projects", ""))).
			To(Equal(`403 {"message":"403 Forbidden - Your account has been blocked."}`))

		r, err = c.Users.UnblockUser(u.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("201 true"))
		Expect(answered(send(d.with(token.Token), "GET projects", ""))).To(HavePrefix("200"))
		_, err = c.Users.UnblockUser(1 << 50)
		Expect(err).To(MatchError(gitlab.ErrUserNotFound))
	})

	It("are deactivated and banned, and come back", func() {
		c := d.as(root)
		u := d.newUser(fresh("gone"))
		token := d.newToken(u.ID, "api")
		for _, step := range []struct {
			do    func(int64, ...gitlab.RequestOptionFunc) (*gitlab.Response, error)
			state string
			says  string
		}{
			{c.Users.DeactivateUser, "deactivated", `403 {"message":"403 Forbidden - Your account has been deactivated by your administrator."}`},
			{c.Users.ActivateUser, "active", "200"},
			{c.Users.BanUser, "banned", `403 {"message":"403 Forbidden - Your account has been blocked."}`},
			{c.Users.UnbanUser, "active", "200"},
		} {
			r, err := step.do(u.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(Equal("201 true"), step.state)
			got, _, err := c.Users.GetUser(u.ID, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(got.State).To(Equal(step.state))
			Expect(answered(send(d.with(token.Token), "GET projects", ""))).To(HavePrefix(step.says))
		}
		_, err := c.Users.BlockUser(u.ID)
		Expect(err).NotTo(HaveOccurred())
		r, err := c.Users.BlockUser(u.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("201 null"))
		_, err = c.Users.ActivateUser(u.ID)
		Expect(err).To(MatchError(gitlab.ErrUserActivatePrevented))
		_, err = c.Users.DeactivateUser(u.ID)
		Expect(err).To(MatchError(gitlab.ErrUserDeactivatePrevented))
	})

	It("take their personal projects with them when they are deleted for good", d.again(), func() {
		u := d.newUser(fresh("whole"))
		project, _, err := d.with(d.newToken(u.ID, "api").Token).Projects.CreateProject(&gitlab.CreateProjectOptions{Name: gitlab.Ptr("notes")})
		Expect(err).NotTo(HaveOccurred())
		r := send(d.as(root), fmt.Sprintf("DELETE users/%d?hard_delete=true", u.ID), "")
		Expect(answered(r)).To(Equal("204"))
		for _, id := range []any{project.ID, project.PathWithNamespace} {
			_, _, err = d.as(root).Projects.GetProject(id, nil)
			Expect(err).To(MatchError(gitlab.ErrNotFound))
		}
	})
})
