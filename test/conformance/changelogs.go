package conformance

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// newRelease has a tag v1.0.0, and later commits of the outsider and of the developer that belong in the changelog.
func newRelease() *gittest.Client {
	GinkgoHelper()
	c := gittest.New(GinkgoTB(), "sha1")
	c.Commit(GinkgoTB(), ".gitlab/changelog_config.yml", "categories:\n  fixed: Not looked at\n  added: Not looked at\n")
	c.Commit(GinkgoTB(), ".service/changelog_config.yml", "categories:\n  fixed: Repairs\n  added: News\n")
	c.Git(GinkgoTB(), "tag", "v1.0.0")
	for _, change := range []struct{ author, message string }{
		{"outsider", "Add a door\n\nChangelog: added"}, {"developer", "Close a window\n\nChangelog: fixed"}, {"guest", "Sweep"},
	} {
		c.Env = []string{"GIT_AUTHOR_EMAIL=" + change.author + "@example.com"}
		c.Git(GinkgoTB(), "commit", "--quiet", "--allow-empty", "--message="+change.message)
	}
	c.Env = nil
	c.Git(GinkgoTB(), "branch", "topic")
	return c
}

var _ = throughEachDoor("Changelogs", func(d *door) {
	var team team
	var history *gittest.Client
	BeforeEach(func() {
		team, history = d.newTeam(gitlab.PrivateVisibility), newRelease()
		push(team.project, history)
		history.Git(GinkgoTB(), "push", "--quiet", "--tags", remote(team.project))
	})
	section := func(version, date string) string {
		entry := func(title, more string) string {
			return fmt.Sprintf("- [%s](%s@%s)%s\n", title, team.project.PathWithNamespace, history.Git(GinkgoTB(), "rev-parse", ":/^"+title), more)
		}
		return fmt.Sprintf("## %s (%s)\n\n### Repairs (1 change)\n\n%s\n### News (1 change)\n\n%s", version, date,
			entry("Close a window", ""), entry("Add a door", " by @outsider"))
	}

	It("list the commits since the previous version", func() {
		for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			data, r, err := d.as(developer).Repositories.GenerateChangelogData(id, gitlab.GenerateChangelogDataOptions{
				Version: gitlab.Ptr("1.1.0"), Date: gitlab.Ptr(gitlab.ISOTime(time.Date(2026, 6, 15, 0, 0, 0, 0, time.UTC))),
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(200))
			Expect(data.Notes).To(Equal(section("1.1.0", "2026-06-15")))
		}
		data, _, err := d.as(developer).Repositories.GenerateChangelogData(team.project.ID, gitlab.GenerateChangelogDataOptions{
			Version: gitlab.Ptr("0.1.0"), From: gitlab.Ptr("v1.0.0"), To: gitlab.Ptr("v1.0.0"), ConfigFile: gitlab.Ptr("none"), Trailer: gitlab.Ptr("Kind"),
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(data.Notes).To(MatchRegexp(`^## 0\.1\.0 \(\d{4}-\d\d-\d\d\)\n\nNo changes\.\n$`))
	})

	It("can be committed to a file of a branch", func() {
		date := gitlab.Ptr(gitlab.ISOTime(time.Date(2026, 6, 15, 0, 0, 0, 0, time.UTC)))
		file := func(branch, path string) string {
			text, _, err := d.as(developer).RepositoryFiles.GetRawFile(team.project.ID, path, &gitlab.GetRawFileOptions{Ref: &branch})
			Expect(err).NotTo(HaveOccurred())
			return string(text)
		}
		r, err := d.as(maintainer).Repositories.AddChangelog(team.project.ID, &gitlab.AddChangelogOptions{Version: gitlab.Ptr("1.1.0"), Date: date})
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("200 200"))
		Expect(file("main", "CHANGELOG.md")).To(Equal(section("1.1.0", "2026-06-15")))

		for range 2 { // the second time, the file exists
			_, err = d.as(developer).Repositories.AddChangelog(team.project.PathWithNamespace, &gitlab.AddChangelogOptions{
				Version: gitlab.Ptr("v1.1.0"), Date: date, Branch: gitlab.Ptr("topic"), File: gitlab.Ptr("docs/news.md"), Message: gitlab.Ptr("Tell of it"),
				From: gitlab.Ptr(history.Git(GinkgoTB(), "rev-parse", "v1.0.0")), To: gitlab.Ptr(history.Git(GinkgoTB(), "rev-parse", "topic")),
				ConfigFile: gitlab.Ptr(".service/changelog_config.yml"), Trailer: gitlab.Ptr("Changelog"),
			})
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(file("topic", "docs/news.md")).To(Equal(section("v1.1.0", "2026-06-15")))
		commit, _, err := d.as(developer).Commits.GetCommit(team.project.ID, "topic", nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(commit.Message).To(Equal("Tell of it"))
		Expect(commit.AuthorEmail).To(Equal("developer@example.com"))
		Expect(commit.ParentIDs).To(Equal([]string{history.Git(GinkgoTB(), "rev-parse", "topic")}))
	})

	It("say why there is no changelog, and who may not commit it", d.again(), func() {
		at := fmt.Sprintf("projects/%d/repository/changelog", team.project.ID)
		const noStart = `422 {"message":"Failed to generate the changelog: The commit start range is unspecified, and no previous tag could be found to use instead"}`
		for query, want := range map[string]string{
			"": `400 {"error":"version is missing"}`, "?version=": `400 {"error":"version is empty"}`, "?version=1": `400 {"error":"version is invalid"}`,
			"?version=1.0.0": noStart, "?version=1.1.0&to=x": `422 {"message":"Failed to generate the changelog: There is no commit \"x\""}`,
		} {
			Expect(answered(send(d.as(developer), "GET "+at+query, ""))).To(Equal(want), query)
		}
		const not = `403 {"message":"403 Forbidden - You are not allowed to commit a changelog on this branch"}`
		Eventually(func() int {
			return send(d.as(developer), fmt.Sprintf("GET projects/%d/protected_branches/main", team.project.ID), "").StatusCode
		}).WithPolling(polling).Should(Equal(200))
		Expect(answered(send(d.as(developer), "POST "+at, `{"version":"1.1.0"}`))).To(Equal(not))
		Expect(answered(send(d.as(maintainer), "POST "+at, `{"version":"1.0.0"}`))).To(Equal(noStart))
		Expect(answered(send(d.as(guest), "POST "+at, `{"version":"1.1.0"}`))).To(Equal(not))
		Expect(answered(send(d.as(outsider), "POST "+at, `{"version":"1.1.0"}`))).To(Equal(`404 {"message":"404 Project Not Found"}`))
		Expect(answered(send(d.as(nobody), "GET "+at+"?version=1.1.0", ""))).To(Equal(`404 {"message":"404 Project Not Found"}`))
	})
})
