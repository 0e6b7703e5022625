package conformance

import (
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

var _ = throughEachDoor("Remote mirrors", func(d *door) {
	It("are added, read, changed and removed, and never show their credentials", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		c := d.as(maintainer).ProjectMirrors
		for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			made, r, err := c.AddProjectMirror(id, &gitlab.AddProjectMirrorOptions{
				URL: gitlab.Ptr("https://ann:s3cret@127.0.0.1:1/x.git"), KeepDivergentRefs: gitlab.Ptr(true), MirrorBranchRegex: gitlab.Ptr("^main$"),
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(201))
			Expect(answered(r)).NotTo(ContainSubstring("s3cret"))
			Expect(made.URL).To(Equal("https://*****:*****@127.0.0.1:1/x.git"))
			Expect(made.Enabled).To(BeFalse())
			Expect(made.KeepDivergentRefs).To(BeTrue())
			Expect(made.OnlyProtectedBranches).To(BeFalse())
			Expect(made.MirrorBranchRegex).To(Equal("^main$"))
			Expect(made.UpdateStatus).To(Equal("none"))
			Expect(made.LastUpdateAt).To(BeNil())
			Expect(made.LastError).To(BeEmpty())

			got, _, err := c.GetProjectMirror(id, made.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(made))

			changed, r, err := c.EditProjectMirror(id, made.ID, &gitlab.EditProjectMirrorOptions{
				KeepDivergentRefs: gitlab.Ptr(false), OnlyProtectedBranches: gitlab.Ptr(true), MirrorBranchRegex: gitlab.Ptr(""),
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(200))
			Expect(changed.OnlyProtectedBranches).To(BeTrue())
			Expect(changed.KeepDivergentRefs).To(BeFalse())
			Expect(changed.MirrorBranchRegex).To(BeEmpty())
			Expect(changed.URL).To(Equal(made.URL))
			listed, _, err := c.ListProjectMirror(id, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(listed).To(HaveExactElements(Equal(changed)))

			r, err = c.DeleteProjectMirror(id, made.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(Equal("204"))
			_, r, err = c.GetProjectMirror(id, made.ID)
			Expect(err).To(MatchError(gitlab.ErrNotFound))
			Expect(answered(r)).To(Equal(`404 {"message":"404 Not found"}`))
		}
	})

	It("are pushed over ssh to a host whose key is pinned", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		push(team.project, newHistory())
		target := gittest.New(GinkgoTB(), "sha1")
		target.Git(GinkgoTB(), "config", "receive.denyCurrentBranch", "ignore")
		server := gittest.SSH(GinkgoTB(), target.Dir)
		_, hostKey, _ := strings.Cut(strings.TrimSpace(string(server.KnownHosts)), " ")
		host := strings.TrimPrefix(server.URL, "ssh://")
		c := d.as(maintainer).ProjectMirrors
		made, r, err := c.AddProjectMirror(team.project.ID, &gitlab.AddProjectMirrorOptions{
			URL:     gitlab.Ptr("ssh://" + url.UserPassword("ann", gittest.Password).String() + "@" + host + "/.git"),
			Enabled: gitlab.Ptr(true), HostKeys: &[]string{hostKey},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(made.URL).To(Equal("ssh://*****:*****@" + host + "/.git"))
		Eventually(func() (*gitlab.ProjectMirror, error) {
			m, _, err := c.GetProjectMirror(team.project.ID, made.ID)
			return m, err
		}).WithPolling(polling).Should(And(HaveField("UpdateStatus", "finished"), HaveField("LastError", BeEmpty())))
		Expect(target.Git(GinkgoTB(), "branch", "--list", "--format=%(refname:short)")).To(Equal("left\nmain\nright/side"))

		made, _, err = c.AddProjectMirror(team.project.ID, &gitlab.AddProjectMirrorOptions{URL: gitlab.Ptr("git://127.0.0.1:1/x.git")})
		Expect(err).NotTo(HaveOccurred())
		Expect(made.URL).To(Equal("git://127.0.0.1:1/x.git"))
		_, r, err = c.AddProjectMirror(team.project.ID, &gitlab.AddProjectMirrorOptions{URL: gitlab.Ptr("ftp://127.0.0.1:1/x.git")})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`400 {"message":{"url":["is blocked: Only allowed schemes are http, https, ssh, git"]}}`))
	})

	It("show the progress of pushes, and push on request", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		c := d.as(maintainer).ProjectMirrors
		made, _, err := c.AddProjectMirror(team.project.ID, &gitlab.AddProjectMirrorOptions{
			URL: gitlab.Ptr("https://ann@127.0.0.1:1/x.git"), Enabled: gitlab.Ptr(true),
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(made.URL).To(Equal("https://*****@127.0.0.1:1/x.git"))
		Expect(made.Enabled).To(BeTrue(), "be the repository made by now or not")
		Expect(made.UpdateStatus).To(Equal("none"), "there is nothing to push")
		push(team.project, newHistory())
		Eventually(func() (*gitlab.ProjectMirror, error) {
			m, _, err := c.GetProjectMirror(team.project.ID, made.ID)
			return m, err
		}).WithPolling(polling).Should(And(HaveField("UpdateStatus", "failed"), HaveField("LastUpdateAt", Not(BeNil())),
			HaveField("LastError", Not(BeEmpty()))), "nothing listens there")
		r, err := c.ForcePushMirrorUpdate(team.project.ID, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
	})
})
