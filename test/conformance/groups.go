package conformance

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// newGroup creates a group for a person, below another group unless that is nil.
func (d *door) newGroup(p *person, parent *gitlab.Group, visibility gitlab.VisibilityValue) *gitlab.Group {
	GinkgoHelper()
	o := &gitlab.CreateGroupOptions{Path: gitlab.Ptr(fresh("group")), Visibility: &visibility}
	o.Name = gitlab.Ptr("Ünïted " + *o.Path)
	if parent != nil {
		o.ParentID = &parent.ID
	}
	g, _, err := d.as(p).Groups.CreateGroup(o)
	Expect(err).NotTo(HaveOccurred())
	return g
}

var _ = throughEachDoor("Groups", func(d *door) {
	It("are created, read by id and by full path, changed and removed", func() {
		c := d.as(outsider)
		above := d.newGroup(outsider, nil, gitlab.PublicVisibility)
		Expect(above.ID).NotTo(BeZero())
		Expect(above.FullPath).To(Equal(above.Path))
		Expect(above.Name).To(Equal("Ünïted " + above.Path))
		Expect(above.FullName).To(Equal(above.Name))
		Expect(above.Visibility).To(Equal(gitlab.PublicVisibility))
		Expect(above.WebURL).To(Equal(own.url + "/groups/" + above.Path))
		Expect(above.CreatedAt.IsZero()).To(BeFalse())

		below := d.newGroup(outsider, above, gitlab.PrivateVisibility)
		Expect(below.ParentID).To(Equal(above.ID))
		Expect(below.FullPath).To(Equal(above.Path + "/" + below.Path))
		Expect(below.FullName).To(Equal(above.Name + " / " + below.Name))
		for _, id := range []any{below.ID, below.FullPath} {
			got, _, err := c.Groups.GetGroup(id, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(below))
		}

		changed, _, err := c.Groups.UpdateGroup(below.FullPath, &gitlab.UpdateGroupOptions{
			Name: gitlab.Ptr("100 % & more"), Path: gitlab.Ptr("re.named_-x"), Description: gitlab.Ptr("Größe ≥ 1"),
			Visibility: gitlab.Ptr(gitlab.PublicVisibility),
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.ID).To(Equal(below.ID))
		Expect(changed.Name).To(Equal("100 % & more"))
		Expect(changed.Description).To(Equal("Größe ≥ 1"))
		Expect(changed.FullPath).To(Equal(above.Path + "/re.named_-x"))
		Expect(changed.Visibility).To(Equal(gitlab.PublicVisibility))
		got, _, err := c.Groups.GetGroup(changed.FullPath, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(Equal(changed))

		r, err := c.Groups.DeleteGroup(above.FullPath, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal(`202 {"message":"202 Accepted"}`))
		for _, id := range []any{above.ID, above.FullPath, changed.ID, changed.FullPath} {
			_, r, err = c.Groups.GetGroup(id, nil)
			Expect(err).To(MatchError(gitlab.ErrNotFound))
			Expect(answered(r)).To(Equal(`404 {"message":"404 Group Not Found"}`))
		}
	})

	It("refuse changes over REST if they or a group above declare it", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		below := d.newGroup(owner, team.group, gitlab.PrivateVisibility)
		declare := func(writes v1alpha1.RESTWrites) {
			GinkgoHelper()
			g := group(team)
			was := g.DeepCopy()
			g.Spec.RESTWrites = writes
			Expect(api.Patch(context.Background(), g, client.MergeFrom(was))).To(Succeed())
		}
		change := func(id int64) func() string {
			return func() string {
				_, r, _ := d.as(owner).Groups.UpdateGroup(id, &gitlab.UpdateGroupOptions{Description: gitlab.Ptr(fresh("text"))})
				return answered(r)
			}
		}
		declare(v1alpha1.RESTWritesRefuseDeclared)
		Eventually(change(team.group.ID)).WithPolling(polling).Should(MatchRegexp(
			`^403 {"message":"403 Forbidden - this is managed by .+, so a change over REST would be undone: change it there"}$`))
		Expect(change(below.ID)()).To(HavePrefix("200 "), "nobody declares it")
		label := d.newLabel(team.project.ID, "allowed")

		declare(v1alpha1.RESTWritesRefuse)
		refused := fmt.Sprintf(`403 {"message":"403 Forbidden - the group %s does not accept changes over REST: they are declared elsewhere"}`, team.group.FullPath)
		Eventually(change(team.group.ID)).WithPolling(polling).Should(Equal(refused))
		Expect(change(below.ID)()).To(Equal(refused))
		c := d.as(owner)
		_, r, err := c.Labels.UpdateLabel(team.project.ID, label.ID, &gitlab.UpdateLabelOptions{Color: gitlab.Ptr("blue")})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(refused))
		_, r, err = c.GroupMembers.AddGroupMember(below.ID, &gitlab.AddGroupMemberOptions{UserID: &outsider.id, AccessLevel: gitlab.Ptr(gitlab.GuestPermissions)})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(refused))
		_, r, err = c.Projects.CreateProject(&gitlab.CreateProjectOptions{Name: gitlab.Ptr(fresh("project")), NamespaceID: &below.ID})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(refused))
		r, err = c.Groups.DeleteGroup(below.ID, nil)
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(refused))

		declare(v1alpha1.RESTWritesAllow)
		Eventually(change(below.ID)).WithPolling(polling).Should(HavePrefix("200 "))
	})

	It("are listed by the relation of the caller to them", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		below := d.newGroup(owner, team.group, gitlab.PrivateVisibility)
		paths := func(p *person, o *gitlab.ListGroupsOptions) (all []string) {
			GinkgoHelper()
			list, err := gitlab.ScanAndCollect(func(page gitlab.PaginationOptionFunc) ([]*gitlab.Group, *gitlab.Response, error) {
				return d.as(p).Groups.ListGroups(o, page)
			})
			Expect(err).NotTo(HaveOccurred())
			for _, g := range list {
				all = append(all, g.FullPath)
			}
			return all
		}
		Expect(paths(guest, &gitlab.ListGroupsOptions{Search: &team.group.Path})).To(Equal([]string{team.group.FullPath}))
		Expect(paths(outsider, &gitlab.ListGroupsOptions{Search: &team.group.Path})).To(BeEmpty())
		Expect(paths(nobody, &gitlab.ListGroupsOptions{Search: &team.group.Path})).To(BeEmpty())
		Expect(paths(owner, &gitlab.ListGroupsOptions{Owned: gitlab.Ptr(true)})).To(ContainElements(team.group.FullPath, below.FullPath))
		Expect(paths(guest, &gitlab.ListGroupsOptions{Owned: gitlab.Ptr(true)})).NotTo(ContainElement(team.group.FullPath))
		Expect(paths(developer, &gitlab.ListGroupsOptions{MinAccessLevel: gitlab.Ptr(gitlab.DeveloperPermissions)})).To(ContainElement(below.FullPath))
		Expect(paths(developer, &gitlab.ListGroupsOptions{MinAccessLevel: gitlab.Ptr(gitlab.MaintainerPermissions)})).NotTo(ContainElement(below.FullPath))
		Expect(paths(owner, &gitlab.ListGroupsOptions{TopLevelOnly: gitlab.Ptr(true)})).NotTo(ContainElement(below.FullPath))
		newest := paths(owner, &gitlab.ListGroupsOptions{OrderBy: gitlab.Ptr("id"), Sort: gitlab.Ptr("desc"), Owned: gitlab.Ptr(true)})
		// Groups that were declared before can have higher ids, because each process has its own blocks of ids.
		newest = slices.DeleteFunc(newest, func(path string) bool { return path != below.FullPath && path != team.group.FullPath })
		Expect(newest).To(Equal([]string{below.FullPath, team.group.FullPath}))

		open := d.newTeam(gitlab.PublicVisibility).group
		Expect(paths(guest, &gitlab.ListGroupsOptions{Search: &open.Path})).To(Equal([]string{open.FullPath}))
		Expect(paths(outsider, &gitlab.ListGroupsOptions{Search: &open.Path})).To(BeEmpty())
		all := gitlab.ListGroupsOptions{Search: &open.Path, AllAvailable: gitlab.Ptr(true)}
		Expect(paths(outsider, &all)).To(Equal([]string{open.FullPath}))
		Expect(paths(nobody, &gitlab.ListGroupsOptions{Search: &open.Path})).To(Equal([]string{open.FullPath}))

		for _, id := range []any{team.group.ID, team.group.FullPath} {
			subgroups, _, err := d.as(guest).Groups.ListSubGroups(id, &gitlab.ListSubGroupsOptions{Search: gitlab.Ptr("ÜNÏTED")})
			Expect(err).NotTo(HaveOccurred())
			Expect(subgroups).To(HaveLen(1))
			Expect(subgroups[0].FullPath).To(Equal(below.FullPath))
		}
	})

	It("are namespaces of projects, like those of the users themselves", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		c := d.as(developer)
		for _, id := range []any{int(team.group.ID), team.group.FullPath} {
			n, _, err := c.Namespaces.GetNamespace(id)
			Expect(err).NotTo(HaveOccurred())
			Expect(n.ID).To(Equal(team.group.ID))
			Expect(n.Kind).To(Equal("group"))
			Expect(n.FullPath).To(Equal(team.group.FullPath))
		}
		_, r, err := d.as(outsider).Namespaces.GetNamespace(team.group.FullPath)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(`404 {"message":"404 Namespace Not Found"}`))
		found, _, err := c.Namespaces.SearchNamespace(team.group.Path)
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(HaveLen(1))

		d.newPersonalProject(developer)
		personal, _, err := c.Namespaces.GetNamespace("developer")
		Expect(err).NotTo(HaveOccurred())
		Expect(personal.Kind).To(Equal("user"))
		Expect(personal.FullPath).To(Equal("developer"))
		Expect(personal.WebURL).To(Equal(own.url + "/developer"))
		_, r, err = c.Groups.GetGroup("developer", nil)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(`404 {"message":"404 Group Not Found"}`))
		all, err := gitlab.ScanAndCollect(func(page gitlab.PaginationOptionFunc) ([]*gitlab.Namespace, *gitlab.Response, error) {
			return c.Namespaces.ListNamespaces(nil, page)
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(all).To(ContainElement(HaveField("FullPath", "developer")))
		Expect(all).To(ContainElement(HaveField("FullPath", team.group.FullPath)))
	})

	It("are listed below a group at all levels, and above a project", func() {
		team := d.newTeam(gitlab.PublicVisibility)
		below := d.newGroup(owner, team.group, gitlab.PublicVisibility)
		deep := d.newGroup(owner, below, gitlab.PrivateVisibility)
		for _, id := range []any{team.group.ID, team.group.FullPath} {
			all, _, err := d.as(guest).Groups.ListDescendantGroups(id, &gitlab.ListDescendantGroupsOptions{OrderBy: gitlab.Ptr("path")})
			Expect(err).NotTo(HaveOccurred())
			Expect(all).To(ConsistOf(HaveField("ID", below.ID), HaveField("ID", deep.ID)))
		}
		all, _, err := d.as(nobody).Groups.ListDescendantGroups(team.group.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(all).To(HaveExactElements(HaveField("ID", below.ID)))

		project := d.newProject(deep.ID, gitlab.PrivateVisibility)
		groups, _, err := d.as(guest).Projects.ListProjectsGroups(project.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(groups).To(ConsistOf(HaveField("FullPath", deep.FullPath), HaveField("FullPath", below.FullPath), HaveField("FullPath", team.group.FullPath)))
		groups, _, err = d.as(guest).Projects.ListProjectsGroups(project.PathWithNamespace, &gitlab.ListProjectGroupOptions{
			Search: &below.Path, SkipGroups: &[]int64{deep.ID},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(groups).To(HaveExactElements(HaveValue(Equal(gitlab.ProjectGroup{
			ID: below.ID, Name: below.Name, WebURL: below.WebURL, FullName: below.FullName, FullPath: below.FullPath,
		}))))
	})

	It("reserve their paths, as users do, and a free path is suggested", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		below := d.newGroup(owner, team.group, gitlab.PrivateVisibility)
		exists := func(p *person, path string, parent *int64) gitlab.NamespaceExistance {
			GinkgoHelper()
			got, _, err := d.as(p).Namespaces.NamespaceExists(path, &gitlab.NamespaceExistsOptions{ParentID: parent})
			Expect(err).NotTo(HaveOccurred())
			return *got
		}
		free := gitlab.NamespaceExistance{Suggests: []string{}}
		Expect(exists(outsider, "developer", nil)).To(Equal(gitlab.NamespaceExistance{Exists: true, Suggests: []string{"developer1"}}))
		Expect(exists(outsider, fresh("free"), nil)).To(Equal(free))
		Expect(exists(owner, below.Path, &team.group.ID)).To(Equal(gitlab.NamespaceExistance{Exists: true, Suggests: []string{below.Path + "1"}}))
		Expect(exists(outsider, below.Path, &team.group.ID)).To(Equal(free))
	})
})
