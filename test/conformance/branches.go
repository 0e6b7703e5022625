package conformance

import (
	"net/url"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// remote is the address of a project's repository, with the credentials of root, who can do everything.
func remote(p *gitlab.Project) string {
	GinkgoHelper()
	address, err := url.Parse(own.url)
	Expect(err).NotTo(HaveOccurred())
	address.User = url.UserPassword(root.name, root.token)
	return address.JoinPath(p.PathWithNamespace + ".git").String()
}

// cloned returns a team whose project has the history of newHistory.
func (d *door) cloned() (team, *gittest.Client) {
	GinkgoHelper()
	team, history := d.newTeam(gitlab.PrivateVisibility), newHistory()
	push(team.project, history)
	return team, history
}

var _ = throughEachDoor("Branches", func(d *door) {
	branchNames := func(all []*gitlab.Branch) (names []string) {
		for _, b := range all {
			names = append(names, b.Name)
		}
		return names
	}

	It("are listed, searched and read", d.again(), func() {
		team, history := d.cloned()
		rev := func(name string) string { return history.Git(GinkgoTB(), "rev-parse", name) }
		c := d.as(developer).Branches
		for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			all, r, err := c.ListBranches(id, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(branchNames(all)).To(Equal([]string{"left", "main", "right/side"}))
			Expect(r.TotalItems).To(Equal(int64(3)))
			one, _, err := c.GetBranch(id, "right/side")
			Expect(err).NotTo(HaveOccurred())
			Expect(one).To(Equal(all[2]))
			Expect(one.Commit.ID).To(Equal(rev("right/side")))
			Expect(one.Commit.Title).To(Equal(`Change "file"`))
			Expect(one.Default || one.Merged || one.Protected).To(BeFalse())
			Expect(one.CanPush).To(BeTrue())
			Expect(one.WebURL).To(Equal(team.project.WebURL + "/-/tree/right/side"))
		}
		Eventually(func() *gitlab.Branch {
			one, _, err := c.GetBranch(team.project.ID, "main")
			Expect(err).NotTo(HaveOccurred())
			return one
		}).WithPolling(polling).Should(And(HaveField("Protected", true), HaveField("Default", true), HaveField("Merged", false)))
		for text, want := range map[string][]string{"I": {"main", "right/side"}, "^l": {"left"}, "e$": {"right/side"}, "^main$": {"main"}, "x": nil} {
			found, _, err := c.ListBranches(team.project.ID, &gitlab.ListBranchesOptions{Search: &text})
			Expect(err).NotTo(HaveOccurred())
			Expect(branchNames(found)).To(Equal(want), text)
		}
		found, _, err := c.ListBranches(team.project.ID, &gitlab.ListBranchesOptions{Regex: gitlab.Ptr("^(left|right/.*)$")})
		Expect(err).NotTo(HaveOccurred())
		Expect(branchNames(found)).To(Equal([]string{"left", "right/side"}))

		paged, err := gitlab.ScanAndCollect(func(page gitlab.PaginationOptionFunc) ([]*gitlab.Branch, *gitlab.Response, error) {
			return c.ListBranches(team.project.ID, &gitlab.ListBranchesOptions{
				ListOptions: gitlab.ListOptions{PerPage: 1, Pagination: "keyset"},
			}, page)
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(branchNames(paged)).To(Equal([]string{"left", "main", "right/side"}))
	})

	It("are created and deleted, and Git sees the changes", d.again(), func() {
		team, history := d.cloned()
		c := d.as(developer).Branches
		made, r, err := c.CreateBranch(team.project.ID, &gitlab.CreateBranchOptions{Branch: gitlab.Ptr("new/ümläut"), Ref: gitlab.Ptr("left")})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(made.Commit.ID).To(Equal(history.Git(GinkgoTB(), "rev-parse", "left")))
		got, _, err := c.GetBranch(team.project.PathWithNamespace, "new/ümläut")
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(Equal(made))
		Expect(history.Git(GinkgoTB(), "ls-remote", remote(team.project))).To(ContainSubstring(made.Commit.ID + "\trefs/heads/new/ümläut"))
		r, err = c.DeleteBranch(team.project.ID, "new/ümläut")
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
		_, r, err = c.GetBranch(team.project.ID, "new/ümläut")
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(`404 {"message":"404 Branch Not Found"}`))
		Expect(history.Git(GinkgoTB(), "ls-remote", remote(team.project))).NotTo(ContainSubstring("new/"))
	})

	It("are deleted when they are merged", func() {
		team, history := d.cloned()
		history.Git(GinkgoTB(), "branch", "merged", "main~1")
		push(team.project, history)
		r, err := d.as(developer).Branches.DeleteMergedBranches(team.project.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal(`202 {"message":"202 Accepted"}`))
		all, _, err := d.as(developer).Branches.ListBranches(team.project.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(branchNames(all)).To(Equal([]string{"left", "main", "right/side"}))
	})

	It("are subject to protections", func() {
		team, _ := d.cloned()
		_, _, err := d.as(maintainer).ProtectedBranches.ProtectRepositoryBranches(team.project.ID, &gitlab.ProtectRepositoryBranchesOptions{
			Name: gitlab.Ptr("right/*"), PushAccessLevel: gitlab.Ptr(gitlab.MaintainerPermissions), MergeAccessLevel: gitlab.Ptr(gitlab.DeveloperPermissions),
		})
		Expect(err).NotTo(HaveOccurred())
		one, _, err := d.as(developer).Branches.GetBranch(team.project.ID, "right/side")
		Expect(err).NotTo(HaveOccurred())
		Expect(one.Protected && one.DevelopersCanMerge).To(BeTrue())
		Expect(one.CanPush || one.DevelopersCanPush).To(BeFalse())
		create := &gitlab.CreateBranchOptions{Branch: gitlab.Ptr("right/more"), Ref: gitlab.Ptr("main")}
		_, r, err := d.as(developer).Branches.CreateBranch(team.project.ID, create)
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(And(HavePrefix(`403 {"message":"Branch \"right/more\" is protected by \"right/*\"`), HaveSuffix(`only Maintainers may push to it. You have the Developer role."}`)))
		r, err = d.as(developer).Branches.DeleteBranch(team.project.ID, "right/side")
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`403 {"message":"Protected branch can't be removed"}`))
		_, _, err = d.as(maintainer).Branches.CreateBranch(team.project.ID, create)
		Expect(err).NotTo(HaveOccurred())
		_, err = d.as(maintainer).Branches.DeleteBranch(team.project.ID, "right/side")
		Expect(err).NotTo(HaveOccurred())
		r, err = d.as(maintainer).Branches.DeleteBranch(team.project.ID, "main")
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`400 {"message":"The default branch of a project cannot be deleted."}`))
	})

	It("are refused with the messages of the API", d.again(), func() {
		team, _ := d.cloned()
		at := "projects/" + gitlab.PathEscape(team.project.PathWithNamespace) + "/repository/branches"
		for _, refused := range []struct {
			who                 *person
			request, body, want string
		}{
			{outsider, "GET " + at, "", `404 {"message":"404 Project Not Found"}`},
			{guest, "GET " + at, "", `403 {"message":"403 Forbidden"}`},
			{guest, "POST " + at, `{"branch":"x","ref":"main"}`, `403 {"message":"403 Forbidden"}`},
			{developer, "POST " + at, `{}`, `400 {"error":"branch is missing, ref is missing"}`},
			{developer, "POST " + at, `{"branch":"left","ref":"main"}`, `400 {"message":"Branch already exists"}`},
			{developer, "POST " + at, `{"branch":"x","ref":"gone"}`, `400 {"message":"Invalid reference name: gone"}`},
			{developer, "POST " + at, `{"branch":"a b","ref":"main"}`, `400 {"message":"Branch name is invalid"}`},
			{developer, "GET " + at + "?regex=(", "", `400 {"error":"regex is an invalid regexp"}`},
			{developer, "GET " + at + "?regex=a&search=a", "", `400 {"error":"search, regex are mutually exclusive"}`},
			{developer, "DELETE " + at + "/gone", "", `404 {"message":"404 Branch Not Found"}`},
		} {
			Expect(answered(send(d.as(refused.who), refused.request, refused.body))).To(Equal(refused.want), refused.request)
		}
		_, _, err := d.as(owner).Projects.ArchiveProject(team.project.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(send(d.as(owner), "POST "+at, `{"branch":"x","ref":"main"}`))).To(Equal(`403 {"message":"403 Forbidden - The project is archived"}`))
	})
})

var _ = throughEachDoor("Tags", func(d *door) {
	It("are created, listed, read and deleted", func() {
		team, history := d.cloned()
		rev := func(name string) string { return history.Git(GinkgoTB(), "rev-parse", name) }
		c := d.as(developer).Tags
		id := team.project.ID
		light, r, err := c.CreateTag(id, &gitlab.CreateTagOptions{TagName: gitlab.Ptr("v1.10"), Ref: gitlab.Ptr("left")})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(light.Target).To(Equal(rev("left")))
		Expect(light.Commit.ID).To(Equal(rev("left")))
		Expect(light.Message).To(BeEmpty())
		Expect(light.CreatedAt).To(BeNil())
		Expect(light.Release).To(BeNil())
		annotated, _, err := c.CreateTag(id, &gitlab.CreateTagOptions{TagName: gitlab.Ptr("rel/v1.9"), Ref: gitlab.Ptr("main"), Message: gitlab.Ptr("Hello\n\nthere")})
		Expect(err).NotTo(HaveOccurred())
		Expect(annotated.Message).To(Equal("Hello\n\nthere"))
		Expect(annotated.Commit.ID).To(Equal(rev("main")))
		Expect(annotated.Target).NotTo(Equal(rev("main")))
		Expect(*annotated.CreatedAt).To(BeTemporally("~", time.Now(), time.Minute))

		history.Git(GinkgoTB(), "fetch", "--quiet", "--tags", remote(team.project))
		Expect(rev("rel/v1.9")).To(Equal(annotated.Target))
		Expect(history.Git(GinkgoTB(), "cat-file", "tag", "rel/v1.9")).To(And(
			ContainSubstring("tagger Called developer <developer@example.com> "), HaveSuffix("\n\nHello\n\nthere")))

		got, _, err := c.GetTag(team.project.PathWithNamespace, "rel/v1.9")
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(Equal(annotated))
		for _, o := range []gitlab.ListTagsOptions{
			{OrderBy: gitlab.Ptr("name"), Sort: gitlab.Ptr("asc")}, {OrderBy: gitlab.Ptr("updated")}, {OrderBy: gitlab.Ptr("version"), Sort: gitlab.Ptr("asc")},
		} {
			all, _, err := c.ListTags(id, &o)
			Expect(err).NotTo(HaveOccurred())
			Expect(all).To(HaveExactElements(Equal(annotated), Equal(light)))
		}
		found, _, err := c.ListTags(id, &gitlab.ListTagsOptions{Search: gitlab.Ptr("^V1")})
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(HaveExactElements(Equal(light)))

		r, err = c.DeleteTag(id, "rel/v1.9")
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
		_, r, err = c.GetTag(id, "rel/v1.9")
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(`404 {"message":"404 Tag Not Found"}`))
	})

	It("are refused with the messages of the API", d.again(), func() {
		team, _ := d.cloned()
		at := "projects/" + gitlab.PathEscape(team.project.PathWithNamespace) + "/repository/tags"
		_, _, err := d.as(developer).Tags.CreateTag(team.project.ID, &gitlab.CreateTagOptions{TagName: gitlab.Ptr("v1"), Ref: gitlab.Ptr("main")})
		Expect(err).NotTo(HaveOccurred())
		for _, refused := range []struct {
			who                 *person
			request, body, want string
		}{
			{outsider, "GET " + at, "", `404 {"message":"404 Project Not Found"}`},
			{guest, "GET " + at, "", `403 {"message":"403 Forbidden"}`},
			{guest, "DELETE " + at + "/v1", "", `403 {"message":"403 Forbidden"}`},
			{developer, "POST " + at, `{}`, `400 {"error":"tag_name is missing, ref is missing"}`},
			{developer, "POST " + at, `{"tag_name":"v1","ref":"main"}`, `400 {"message":"Tag v1 already exists"}`},
			{developer, "POST " + at, `{"tag_name":"v2","ref":"gone"}`, `400 {"message":"Target gone is invalid"}`},
			{developer, "POST " + at, `{"tag_name":"a b","ref":"main"}`, `400 {"message":"Tag name invalid"}`},
			{developer, "GET " + at + "?order_by=x", "", `400 {"error":"order_by does not have a valid value"}`},
			{developer, "DELETE " + at + "/gone", "", `404 {"message":"404 Tag Not Found"}`},
		} {
			Expect(answered(send(d.as(refused.who), refused.request, refused.body))).To(Equal(refused.want), refused.request)
		}
	})
})
