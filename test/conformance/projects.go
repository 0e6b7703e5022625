package conformance

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

// newPersonalProject creates a project in the namespace of a person.
func (d *door) newPersonalProject(p *person) *gitlab.Project {
	GinkgoHelper()
	name := fresh("personal")
	project, _, err := d.as(p).Projects.CreateProject(&gitlab.CreateProjectOptions{Name: &name})
	Expect(err).NotTo(HaveOccurred())
	return project
}

var _ = throughEachDoor("Projects", func(d *door) {
	It("are created in the namespace of their creator, unless the request names another one", d.again(), func() {
		p := d.newPersonalProject(outsider)
		Expect(p.Namespace.Kind).To(Equal("user"))
		Expect(p.Namespace.FullPath).To(Equal("outsider"))
		Expect(p.PathWithNamespace).To(Equal("outsider/" + p.Path))
		Expect(p.Visibility).To(Equal(gitlab.PrivateVisibility))
		got, _, err := d.as(outsider).Projects.GetProject(p.PathWithNamespace, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.ID).To(Equal(p.ID))
		Expect(got.Permissions.ProjectAccess).To(HaveValue(Equal(gitlab.ProjectAccess{
			AccessLevel: gitlab.OwnerPermissions, NotificationLevel: gitlab.GlobalNotificationLevel,
		})))
		Expect(got.Permissions.GroupAccess).To(BeNil())
		_, _, err = d.as(developer).Projects.GetProject(p.ID, nil)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
	})

	It("are created, read by id and by full path, changed, archived and removed", func() {
		team := d.newTeam(gitlab.PublicVisibility)
		below := d.newGroup(owner, team.group, gitlab.PublicVisibility)
		c := d.as(owner)
		made, _, err := c.Projects.CreateProject(&gitlab.CreateProjectOptions{
			Name: gitlab.Ptr("Überraschung & 50 %"), Path: gitlab.Ptr("Site_2.x-y"), NamespaceID: &below.ID,
			Description: gitlab.Ptr("a/b * c"), Visibility: gitlab.Ptr(gitlab.PublicVisibility), DefaultBranch: gitlab.Ptr("trunk"),
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(made.ID).NotTo(BeZero())
		Expect(made.Name).To(Equal("Überraschung & 50 %"))
		Expect(made.NameWithNamespace).To(Equal(team.group.Name + " / " + below.Name + " / Überraschung & 50 %"))
		Expect(made.Path).To(Equal("Site_2.x-y"))
		Expect(made.PathWithNamespace).To(Equal(below.FullPath + "/Site_2.x-y"))
		Expect(made.Description).To(Equal("a/b * c"))
		Expect(made.Visibility).To(Equal(gitlab.PublicVisibility))
		Expect(made.DefaultBranch).To(Equal("trunk"))
		Expect(made.Namespace.ID).To(Equal(below.ID))
		Expect(made.Namespace.ParentID).To(Equal(team.group.ID))
		Expect(made.HTTPURLToRepo).To(Equal(own.url + "/" + made.PathWithNamespace + ".git"))
		Expect(made.WebURL).To(Equal(own.url + "/" + made.PathWithNamespace))
		Expect(made.Links.Self).NotTo(BeEmpty())
		Expect(made.EmptyRepo).To(BeTrue())
		Expect(made.ImportStatus).To(Equal("none"))
		Expect(made.CreatedAt.IsZero()).To(BeFalse())
		Expect(made.LastActivityAt.IsZero()).To(BeFalse())
		Expect(made.ContainerRegistryAccessLevel).To(Equal(gitlab.EnabledAccessControl))
		Expect(made.RepositoryAccessLevel).To(Equal(gitlab.EnabledAccessControl))
		for _, id := range []any{made.ID, made.PathWithNamespace} {
			got, _, err := d.as(developer).Projects.GetProject(id, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(got.ID).To(Equal(made.ID))
			Expect(got.PathWithNamespace).To(Equal(made.PathWithNamespace))
		}

		changed, _, err := c.Projects.EditProject(made.PathWithNamespace, &gitlab.EditProjectOptions{
			Name: gitlab.Ptr("日本 語"), Path: gitlab.Ptr("renamed.1"), Description: gitlab.Ptr(""), DefaultBranch: gitlab.Ptr("main"),
			Visibility: gitlab.Ptr(gitlab.PrivateVisibility), ContainerRegistryAccessLevel: gitlab.Ptr(gitlab.PrivateAccessControl),
			RepositoryAccessLevel: gitlab.Ptr(gitlab.PrivateAccessControl), SquashOption: gitlab.Ptr(gitlab.SquashOptionAlways),
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.ID).To(Equal(made.ID))
		Expect(changed.Name).To(Equal("日本 語"))
		Expect(changed.PathWithNamespace).To(Equal(below.FullPath + "/renamed.1"))
		Expect(changed.Description).To(BeEmpty())
		Expect(changed.DefaultBranch).To(Equal("main"))
		Expect(changed.Visibility).To(Equal(gitlab.PrivateVisibility))
		Expect(changed.ContainerRegistryAccessLevel).To(Equal(gitlab.PrivateAccessControl))
		Expect(changed.RepositoryAccessLevel).To(Equal(gitlab.PrivateAccessControl))
		Expect(changed.SquashOption).To(Equal(gitlab.SquashOptionAlways))

		for _, step := range []struct {
			do       func(any, ...gitlab.RequestOptionFunc) (*gitlab.Project, *gitlab.Response, error)
			archived bool
		}{{c.Projects.ArchiveProject, true}, {c.Projects.UnarchiveProject, false}} {
			p, r, err := step.do(changed.PathWithNamespace)
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(201))
			Expect(p.Archived).To(Equal(step.archived))
			listed, _, err := c.Projects.ListProjects(&gitlab.ListProjectsOptions{
				Search: gitlab.Ptr(changed.PathWithNamespace), SearchNamespaces: gitlab.Ptr(true), Archived: gitlab.Ptr(true),
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(listed).To(HaveLen(map[bool]int{true: 1}[step.archived]))
		}

		r, err := c.Projects.DeleteProject(changed.PathWithNamespace, &gitlab.DeleteProjectOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal(`202 {"message":"202 Accepted"}`))
		for _, id := range []any{changed.ID, changed.PathWithNamespace} {
			_, r, err := c.Projects.GetProject(id, nil)
			Expect(err).To(MatchError(gitlab.ErrNotFound))
			Expect(answered(r)).To(Equal(`404 {"message":"404 Project Not Found"}`))
		}
	})

	It("are listed by the relation of the caller to them", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		public := d.newProject(d.newGroup(owner, nil, gitlab.PublicVisibility).ID, gitlab.PublicVisibility)
		ids := func(p *person, o *gitlab.ListProjectsOptions) (all []int64) {
			GinkgoHelper()
			o.PerPage = 100
			list, _, err := d.as(p).Projects.ListProjects(o)
			Expect(err).NotTo(HaveOccurred())
			for _, p := range list {
				all = append(all, p.ID)
			}
			return all
		}
		mine := team.project.ID
		Expect(ids(guest, &gitlab.ListProjectsOptions{Search: &team.project.Path})).To(Equal([]int64{mine}))
		Expect(ids(outsider, &gitlab.ListProjectsOptions{Search: &team.project.Path})).To(BeEmpty())
		Expect(ids(nobody, &gitlab.ListProjectsOptions{Search: &public.Path})).To(Equal([]int64{public.ID}))
		Expect(ids(root, &gitlab.ListProjectsOptions{Search: &team.project.Path, Visibility: gitlab.Ptr(gitlab.PublicVisibility)})).To(BeEmpty())
		Expect(ids(owner, &gitlab.ListProjectsOptions{Owned: gitlab.Ptr(true), Search: &team.project.Path})).To(Equal([]int64{mine}))
		Expect(ids(developer, &gitlab.ListProjectsOptions{Owned: gitlab.Ptr(true), Search: &team.project.Path})).To(BeEmpty())
		Expect(ids(developer, &gitlab.ListProjectsOptions{Membership: gitlab.Ptr(true), Search: &team.project.Path})).To(Equal([]int64{mine}))
		Expect(ids(developer, &gitlab.ListProjectsOptions{Membership: gitlab.Ptr(true), Search: &public.Path})).To(BeEmpty())
		Expect(ids(developer, &gitlab.ListProjectsOptions{
			MinAccessLevel: gitlab.Ptr(gitlab.MaintainerPermissions), Search: &team.project.Path,
		})).To(BeEmpty())
		Expect(ids(root, &gitlab.ListProjectsOptions{IDAfter: gitlab.Ptr(mine - 1), IDBefore: gitlab.Ptr(mine + 1)})).To(Equal([]int64{mine}))
		for _, field := range []string{"id", "name", "path", "created_at", "updated_at", "last_activity_at"} {
			two := []int64{mine, public.ID}
			if by := map[string]string{"name": public.Name, "path": public.Path}[field]; by != "" && by < team.project.Name {
				slices.Reverse(two)
			}
			o := gitlab.ListProjectsOptions{
				OrderBy: &field, Sort: gitlab.Ptr("asc"), IDAfter: gitlab.Ptr(mine - 1), IDBefore: gitlab.Ptr(public.ID + 1),
			}
			// A block of ids of the controllers can lie between the two.
			others := func(id int64) bool { return !slices.Contains(two, id) }
			Expect(slices.DeleteFunc(ids(root, &o), others)).To(Equal(two), field)
			o.Sort = gitlab.Ptr("desc")
			slices.Reverse(two)
			Expect(slices.DeleteFunc(ids(root, &o), others)).To(Equal(two), field)
		}
	})

	It("are listed below a group", d.again(), func() {
		team := d.newTeam(gitlab.PublicVisibility)
		below := d.newGroup(owner, team.group, gitlab.PublicVisibility)
		deep := d.newProject(below.ID, gitlab.PublicVisibility)
		for _, id := range []any{team.group.ID, team.group.FullPath} {
			right, _, err := d.as(nobody).Groups.ListGroupProjects(id, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(right).To(HaveExactElements(HaveField("ID", team.project.ID)))
			all, _, err := d.as(nobody).Groups.ListGroupProjects(id, &gitlab.ListGroupProjectsOptions{
				IncludeSubGroups: gitlab.Ptr(true), OrderBy: gitlab.Ptr("id"), Sort: gitlab.Ptr("asc"),
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(all).To(HaveExactElements(HaveField("ID", team.project.ID), HaveField("ID", deep.ID)))
		}
	})

	It("are listed by the user in whose namespace they are", func() {
		private := d.newPersonalProject(outsider)
		for _, id := range []any{"outsider", int(outsider.id)} {
			listed, _, err := d.as(outsider).Projects.ListUserProjects(id, &gitlab.ListProjectsOptions{Search: &private.Path})
			Expect(err).NotTo(HaveOccurred())
			Expect(listed).To(HaveExactElements(HaveField("ID", private.ID)))
			listed, _, err = d.as(developer).Projects.ListUserProjects(id, &gitlab.ListProjectsOptions{Search: &private.Path})
			Expect(err).NotTo(HaveOccurred())
			Expect(listed).To(BeEmpty())
		}
		_, r, err := d.as(developer).Projects.ListUserProjects("no-such-user", nil)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(`404 {"message":"404 User Not Found"}`))
	})
})
