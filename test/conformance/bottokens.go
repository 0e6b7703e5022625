package conformance

import (
	"fmt"
	"net/url"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

// newBot creates an access token of a project.
func (d *door) newBot(project any, level gitlab.AccessLevelValue, scopes ...string) *gitlab.ProjectAccessToken {
	GinkgoHelper()
	t, r, err := d.as(owner).ProjectAccessTokens.CreateProjectAccessToken(project, &gitlab.CreateProjectAccessTokenOptions{
		Name: gitlab.Ptr("Robot"), Scopes: &scopes, AccessLevel: &level,
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(r.StatusCode).To(Equal(201))
	return t
}

// botUsed returns when an access token of a project was last used.
func (d *door) botUsed(project any, id int64) func() *time.Time {
	return func() *time.Time {
		t, _, err := d.as(owner).ProjectAccessTokens.GetProjectAccessToken(project, id)
		Expect(err).NotTo(HaveOccurred())
		return t.LastUsedAt
	}
}

// remoteFor is remote with the value of a token as the password.
func remoteFor(p *gitlab.Project, value string) string {
	GinkgoHelper()
	address, err := url.Parse(own.url)
	Expect(err).NotTo(HaveOccurred())
	address.User = url.UserPassword("any-name", value)
	return address.JoinPath(p.PathWithNamespace + ".git").String()
}

var _ = throughEachDoor("Access tokens of projects and groups", func(d *door) {
	It("are created, read and revoked in a project", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		c := d.as(maintainer).ProjectAccessTokens
		expires := day(30)
		for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			made, r, err := c.CreateProjectAccessToken(id, &gitlab.CreateProjectAccessTokenOptions{
				Name: gitlab.Ptr("Röbot 50% + ½"), Description: gitlab.Ptr("For releases"), Scopes: &[]string{"api", "read_api"},
				AccessLevel: gitlab.Ptr(gitlab.DeveloperPermissions), ExpiresAt: &expires,
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(201))
			Expect(made.Name).To(Equal("Röbot 50% + ½"))
			Expect(made.Scopes).To(Equal([]string{"api", "read_api"}))
			Expect(made.AccessLevel).To(Equal(gitlab.DeveloperPermissions))
			Expect(made.ExpiresAt).To(Equal(&expires))
			Expect(made.Active).To(BeTrue())
			value := made.Token

			got, _, err := c.GetProjectAccessToken(id, made.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(got.Token).To(BeEmpty())
			made.Token = ""
			Expect(got).To(Equal(made))
			listed, _, err := c.ListProjectAccessTokens(id, &gitlab.ListProjectAccessTokensOptions{State: gitlab.Ptr("active")})
			Expect(err).NotTo(HaveOccurred())
			Expect(listed).To(HaveExactElements(Equal(made)))

			me, _, err := d.with(value).Users.CurrentUser()
			Expect(err).NotTo(HaveOccurred())
			Expect(me.ID).To(Equal(made.UserID))
			Expect(me.Name).To(Equal(made.Name))
			Expect(me.Bot).To(BeTrue())
			self, _, err := d.with(value).PersonalAccessTokens.GetSinglePersonalAccessToken()
			Expect(err).NotTo(HaveOccurred())
			Expect(self.ID).To(Equal(made.ID))
			Expect(self.Description).To(Equal("For releases"))
			Eventually(d.botUsed(id, made.ID)).WithPolling(polling).Should(HaveValue(BeTemporally("~", time.Now(), time.Minute)))

			r, err = c.RevokeProjectAccessToken(id, made.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(Equal("204"))
			Expect(answered(send(d.with(value), "GET user", ""))).To(Equal(revoked))
			got, _, err = c.GetProjectAccessToken(id, made.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(got.Revoked).To(BeTrue())
			_, r, err = c.GetProjectAccessToken(id, 1<<40)
			Expect(err).To(MatchError(gitlab.ErrNotFound))
			Expect(answered(r)).To(Equal(fmt.Sprintf(`404 {"message":"404 Could not find project access token with token_id: %d Not Found"}`, 1<<40)))
		}
	})

	It("are created, read, rotated and revoked in a group, and act in its projects", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		c := d.as(owner).GroupAccessTokens
		made, r, err := c.CreateGroupAccessToken(team.group.ID, &gitlab.CreateGroupAccessTokenOptions{Name: gitlab.Ptr("Robot"), Scopes: &[]string{"api"}})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(made.AccessLevel).To(Equal(gitlab.MaintainerPermissions))
		bot := d.with(made.Token)
		projects, _, err := bot.Projects.ListProjects(&gitlab.ListProjectsOptions{Membership: gitlab.Ptr(true)})
		Expect(err).NotTo(HaveOccurred())
		Expect(projects).To(HaveExactElements(HaveField("ID", team.project.ID)))
		_, _, err = bot.Labels.CreateLabel(team.project.ID, &gitlab.CreateLabelOptions{Name: gitlab.Ptr("bug"), Color: gitlab.Ptr("#FF0000")})
		Expect(err).NotTo(HaveOccurred())
		path := fresh("below")
		below, _, err := bot.Groups.CreateGroup(&gitlab.CreateGroupOptions{Name: &path, Path: &path, ParentID: &team.group.ID})
		Expect(err).NotTo(HaveOccurred())
		_, _, err = bot.Projects.CreateProject(&gitlab.CreateProjectOptions{Name: &path, NamespaceID: &below.ID})
		Expect(err).NotTo(HaveOccurred())

		By("acting elsewhere, and without a group")
		other := d.newTeam(gitlab.PrivateVisibility)
		Expect(answered(send(bot, fmt.Sprintf("GET projects/%d", other.project.ID), ""))).To(Equal(`404 {"message":"404 Project Not Found"}`))
		Expect(answered(send(bot, "POST groups", fmt.Sprintf(`{"name":%q,"path":%[1]q}`, fresh("root"))))).To(Equal(`403 {"message":"403 Forbidden"}`))
		Expect(send(bot, "POST projects", fmt.Sprintf(`{"name":%q}`, fresh("own"))).StatusCode).To(Equal(403))

		By("rotating and revoking the token")
		expires := day(10)
		rotated, r, err := c.RotateGroupAccessToken(team.group.ID, made.ID, &gitlab.RotateGroupAccessTokenOptions{ExpiresAt: &expires})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(200))
		Expect(rotated.UserID).To(Equal(made.UserID))
		Expect(rotated.ExpiresAt).To(Equal(&expires))
		Expect(send(bot, "GET user", "").StatusCode).To(Equal(401))
		Expect(send(d.with(rotated.Token), "GET user", "").StatusCode).To(Equal(200))
		listed, _, err := c.ListGroupAccessTokens(team.group.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(listed).To(HaveExactElements(HaveField("ID", rotated.ID)))
		r, err = c.RevokeGroupAccessToken(team.group.ID, rotated.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
		got, _, err := c.GetGroupAccessToken(team.group.ID, rotated.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Active).To(BeFalse())
	})

	It("make their bots members, as long as they are accepted", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		made := d.newBot(team.project.ID, gitlab.DeveloperPermissions, "read_api")
		ofGroup, _, err := d.as(owner).GroupAccessTokens.CreateGroupAccessToken(team.group.ID, &gitlab.CreateGroupAccessTokenOptions{
			Name: gitlab.Ptr("Robot"), Scopes: &[]string{"api"},
		})
		Expect(err).NotTo(HaveOccurred())
		c := d.as(guest).ProjectMembers
		listed, _, err := c.ListProjectMembers(team.project.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(listed).To(HaveExactElements(And(
			HaveField("ID", made.UserID), HaveField("AccessLevel", gitlab.DeveloperPermissions), HaveField("ExpiresAt", made.ExpiresAt))))
		listed, _, err = c.ListAllProjectMembers(team.project.PathWithNamespace, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(listed).To(ContainElements(HaveField("ID", made.UserID), HaveField("ID", ofGroup.UserID), HaveField("ID", developer.id)))
		one, _, err := c.GetInheritedProjectMember(team.project.ID, ofGroup.UserID)
		Expect(err).NotTo(HaveOccurred())
		user, _, err := d.as(guest).Users.GetUser(ofGroup.UserID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(one.Username).To(Equal(user.Username))
		_, err = d.as(owner).GroupAccessTokens.RevokeGroupAccessToken(team.group.ID, ofGroup.ID)
		Expect(err).NotTo(HaveOccurred())
		_, _, err = d.as(guest).GroupMembers.GetInheritedGroupMember(team.group.ID, ofGroup.UserID)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
	})

	It("clone and push with their role, and are rotated by a Maintainer", func() {
		team, history := d.cloned()
		developing := d.newBot(team.project.ID, gitlab.DeveloperPermissions, "write_repository")
		reading := d.newBot(team.project.ID, gitlab.DeveloperPermissions, "read_repository")
		history.Git(GinkgoTB(), "fetch", remoteFor(team.project, reading.Token), "main")
		history.Git(GinkgoTB(), "push", remoteFor(team.project, developing.Token), "main:refs/heads/by-bot")
		for _, used := range []*gitlab.ProjectAccessToken{reading, developing} {
			Eventually(d.botUsed(team.project.ID, used.ID)).WithPolling(polling).Should(HaveValue(BeTemporally("~", time.Now(), time.Minute)))
		}
		Expect(history.Refused(GinkgoTB(), "push", remoteFor(team.project, reading.Token), "main:refs/heads/other")).To(ContainSubstring("403"))
		commit := history.Commit(GinkgoTB(), "robot", "for the default branch")
		Expect(history.Refused(GinkgoTB(), "push", remoteFor(team.project, developing.Token), commit+":refs/heads/main")).
			To(ContainSubstring("protected"))

		rotated, r, err := d.as(maintainer).ProjectAccessTokens.RotateProjectAccessToken(team.project.ID, developing.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(200))
		history.Refused(GinkgoTB(), "fetch", remoteFor(team.project, developing.Token), "main")
		history.Git(GinkgoTB(), "fetch", remoteFor(team.project, rotated.Token), "main")
	})
})

var _ = withTokens("The access token of a project or group that a request is made with", func(d *door) {
	It("is rotated as self", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		made := d.newBot(team.project.ID, gitlab.GuestPermissions, "api")
		rotated, r, err := d.with(made.Token).ProjectAccessTokens.RotateProjectAccessTokenSelf(team.project.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(200))
		Expect(rotated.ID).To(Equal(made.ID))
		ofGroup, _, err := d.as(owner).GroupAccessTokens.CreateGroupAccessToken(team.group.ID, &gitlab.CreateGroupAccessTokenOptions{
			Name: gitlab.Ptr("Robot"), Scopes: &[]string{"api"},
		})
		Expect(err).NotTo(HaveOccurred())
		again, _, err := d.with(ofGroup.Token).GroupAccessTokens.RotateGroupAccessTokenSelf(team.group.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(again.UserID).To(Equal(ofGroup.UserID))
	})

	It("is read, rotated and revoked as a personal one", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		made := d.newBot(team.project.ID, gitlab.GuestPermissions, "api")
		self, _, err := d.with(made.Token).PersonalAccessTokens.GetSinglePersonalAccessToken()
		Expect(err).NotTo(HaveOccurred())
		Expect(self.UserID).To(Equal(made.UserID))
		rotated, r, err := d.with(made.Token).PersonalAccessTokens.RotatePersonalAccessTokenSelf(nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(200))
		Expect(rotated.ID).To(Equal(made.ID))
		Expect(send(d.with(made.Token), "GET user", "").StatusCode).To(Equal(401))
		r, err = d.with(rotated.Token).PersonalAccessTokens.RevokePersonalAccessTokenSelf()
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
		Expect(answered(send(d.with(rotated.Token), "GET user", ""))).To(Equal(revoked))
	})
})
