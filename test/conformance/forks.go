package conformance

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// finished waits until a fork has its repository.
func (d *door) finished(p *person, fork *gitlab.Project) *gitlab.Project {
	GinkgoHelper()
	Eventually(func() (string, error) {
		got, _, err := d.as(p).Projects.GetProject(fork.ID, nil)
		if err != nil {
			return "", err
		}
		fork = got
		return got.ImportStatus, nil
	}).WithPolling(polling).Should(Equal("finished"))
	return fork
}

var _ = throughEachDoor("Forks", func(d *door) {
	var team team
	var history *gittest.Client
	BeforeEach(func() {
		team, history = d.newTeam(gitlab.PublicVisibility), newHistory()
		push(team.project, history)
	})
	rev := func(name string) string {
		GinkgoHelper()
		return history.Git(GinkgoTB(), "rev-parse", name)
	}
	names := func(p *person, id any, o *gitlab.ListProjectsOptions) (ids []int64) {
		GinkgoHelper()
		list, _, err := d.as(p).Projects.ListProjectForks(id, o)
		Expect(err).NotTo(HaveOccurred())
		for _, one := range list {
			ids = append(ids, one.ID)
		}
		return ids
	}

	It("begin with the branches of the project, and are listed", d.again(), func() {
		fork, r, err := d.as(outsider).Projects.ForkProject(team.project.PathWithNamespace, &gitlab.ForkProjectOptions{
			Path: gitlab.Ptr(fresh("fork")), Name: gitlab.Ptr("The fork"), Description: gitlab.Ptr("ours"), Visibility: gitlab.Ptr(gitlab.PublicVisibility),
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(fork.Name).To(Equal("The fork"))
		Expect(fork.Description).To(Equal("ours"))
		Expect(fork.Namespace.FullPath).To(Equal("outsider"))
		Expect(fork.ForkedFromProject.ID).To(Equal(team.project.ID))
		Expect(fork.ForkedFromProject.PathWithNamespace).To(Equal(team.project.PathWithNamespace))
		fork = d.finished(outsider, fork)
		Expect(fork.DefaultBranch).To(Equal("main"))
		branches, _, err := d.as(outsider).Branches.ListBranches(fork.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(branches).To(HaveExactElements(HaveField("Name", "left"), HaveField("Name", "main"), HaveField("Name", "right/side")))
		source, _, err := d.as(owner).Projects.GetProject(team.project.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(source.ForksCount).To(BeEquivalentTo(1))
		for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			Expect(names(nobody, id, nil)).To(Equal([]int64{fork.ID}))
			Expect(names(owner, id, &gitlab.ListProjectsOptions{Owned: gitlab.Ptr(true)})).To(BeEmpty())
		}
	})

	It("can have some branches only, and are visible to no more people than the project", d.again(), func() {
		private := d.newTeam(gitlab.PrivateVisibility)
		push(private.project, history)
		fork, _, err := d.as(developer).Projects.ForkProject(private.project.ID, &gitlab.ForkProjectOptions{
			Branches: gitlab.Ptr("left"), Path: gitlab.Ptr(fresh("fork")), Visibility: gitlab.Ptr(gitlab.PublicVisibility),
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(fork.Visibility).To(Equal(gitlab.PrivateVisibility))
		fork = d.finished(developer, fork)
		Expect(fork.DefaultBranch).To(Equal("left"))
		branches, _, err := d.as(developer).Branches.ListBranches(fork.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(branches).To(HaveExactElements(HaveField("Name", "left")))
		Expect(names(outsider, team.project.ID, nil)).To(BeEmpty())
		Expect(names(owner, private.project.ID, nil)).To(BeEmpty(), "the owner of the project does not see the fork of somebody else")
	})

	It("are refused with a reason", d.again(), func() {
		fork, _, err := d.as(outsider).Projects.ForkProject(team.project.ID, &gitlab.ForkProjectOptions{Path: gitlab.Ptr(fresh("fork"))})
		Expect(err).NotTo(HaveOccurred())
		at := fmt.Sprintf("POST projects/%d/fork", team.project.ID)
		for body, want := range map[string]string{
			fmt.Sprintf(`{"path":%q}`, fork.Path):                `409 {"message":{"name":["has already been taken"],"path":["has already been taken"]}}`,
			`{"namespace_path":"nowhere"}`:                       `404 {"message":"404 Target Namespace Not Found"}`,
			`{"namespace_id":1,"namespace_path":"a"}`:            `400 {"error":"namespace_id, namespace_path are mutually exclusive"}`,
			fmt.Sprintf(`{"namespace":%q}`, team.group.FullPath): `403 {"message":"403 Forbidden"}`,
			`{"visibility":"hidden"}`:                            `400 {"error":"visibility does not have a valid value"}`,
		} {
			Expect(answered(send(d.as(outsider), at, body))).To(Equal(want), body)
		}
	})

	It("can be related to a project and unrelated again", func() {
		other := d.newProject(team.group.ID, gitlab.PublicVisibility)
		related, r, err := d.as(owner).Projects.CreateProjectForkRelation(other.ID, team.project.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(related).NotTo(BeNil())
		Expect(names(nobody, team.project.ID, nil)).To(Equal([]int64{other.ID}))
		_, r, err = d.as(owner).Projects.CreateProjectForkRelation(other.ID, team.project.ID)
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`409 {"message":"Project already forked"}`))
		r, err = d.as(owner).Projects.DeleteProjectForkRelation(other.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(204))
		Expect(names(nobody, team.project.ID, nil)).To(BeEmpty())
		Expect(send(d.as(owner), fmt.Sprintf("DELETE projects/%d/fork", other.ID), "").StatusCode).To(Equal(304))
	})

	It("can be compared with the project", func() {
		fork, _, err := d.as(outsider).Projects.ForkProject(team.project.ID, &gitlab.ForkProjectOptions{
			Path: gitlab.Ptr(fresh("fork")), Visibility: gitlab.Ptr(gitlab.PrivateVisibility),
		})
		Expect(err).NotTo(HaveOccurred())
		fork = d.finished(outsider, fork)
		compare := fmt.Sprintf("GET projects/%d/repository/compare?from_project_id=%d&from=left&to=main", team.project.ID, fork.ID)
		Expect(answered(send(d.as(developer), compare, ""))).To(Equal(
			fmt.Sprintf(`400 {"message":"Target project id:%d is not a fork of project id:%d"}`, fork.ID, team.project.ID)), "the fork is private")
		result, _, err := d.as(outsider).Repositories.Compare(fork.ID, &gitlab.CompareOptions{
			From: gitlab.Ptr("main"), To: gitlab.Ptr("left"), FromProjectID: &team.project.ID,
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(result.Commits).To(HaveExactElements(HaveField("ID", rev("left"))))
	})

	It("take commits that begin in the project, of what they do not have yet", d.again(), func() {
		fork, _, err := d.as(outsider).Projects.ForkProject(team.project.ID, &gitlab.ForkProjectOptions{
			Branches: gitlab.Ptr("left"), Path: gitlab.Ptr(fresh("fork")), Visibility: gitlab.Ptr(gitlab.PrivateVisibility),
		})
		Expect(err).NotTo(HaveOccurred())
		fork = d.finished(outsider, fork)
		later := history.Commit(GinkgoTB(), "later", "than the fork")
		push(team.project, history)
		branch := func(name string, o gitlab.CreateCommitOptions) (*gitlab.Commit, *gitlab.Response, error) {
			o.Branch, o.CommitMessage = &name, gitlab.Ptr("Begin there")
			o.Actions = []*gitlab.CommitActionOptions{{
				Action: gitlab.Ptr(gitlab.FileCreate), FilePath: gitlab.Ptr("ours"), Content: gitlab.Ptr("ours"),
			}}
			return d.as(outsider).Commits.CreateCommit(fork.ID, &o)
		}
		for name, project := range map[string]string{"by-id": fmt.Sprint(team.project.ID), "by-path": team.project.PathWithNamespace} {
			made, r, err := branch(name, gitlab.CreateCommitOptions{StartProject: &project, StartSHA: &later})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(201))
			Expect(made.ParentIDs).To(Equal([]string{later}))
			content, _, err := d.as(outsider).RepositoryFiles.GetRawFile(fork.ID, "later", &gitlab.GetRawFileOptions{Ref: &name})
			Expect(err).NotTo(HaveOccurred())
			Expect(string(content)).To(Equal("than the fork"))
		}
		private := d.newTeam(gitlab.PrivateVisibility)
		_, r, err := branch("other", gitlab.CreateCommitOptions{StartProject: &private.project.PathWithNamespace})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`404 {"message":"404 Project Not Found"}`))
		public := d.newTeam(gitlab.PublicVisibility)
		_, r, err = branch("other", gitlab.CreateCommitOptions{StartProject: &public.project.PathWithNamespace})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden - Project is not included in the fork network for ` + public.project.PathWithNamespace + `"}`))
	})
})
