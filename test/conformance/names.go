package conformance

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/forgeplane/forgeplane/test/soak"
)

// branches are names that clients, proxies and servers often handle wrongly.
var branches = []string{
	"feature/a/b", "*", "feature/*", "*-stable", "*/release/*.x", "v1.2.3", "a.b/c.d", "50%", "100%25", "%2F", "a%2Fb", "a+b", "a+%20",
	"ветка/é", "名前", "😀", "a&b=c", "a;b", "#1", "a,b", "a'b\"c", "(x)", "@", "a@b", "$HOME", "a|b", "<a>", "protected_branches", "main/protected_branches/main",
	"x-", "api/v4/projects", "!", "=",
}

var _ = throughEachDoor("Names", func(d *door) {
	It("of branches are not altered", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		c := d.as(maintainer).ProtectedBranches
		for i, name := range branches {
			projects := []any{team.project.ID, team.project.PathWithNamespace}
			if !soak.Running() { // each name is used in one of the ways
				projects = projects[i%2 : i%2+1]
			}
			for _, id := range projects {
				made, r, err := c.ProtectRepositoryBranches(id, &gitlab.ProtectRepositoryBranchesOptions{Name: &name})
				if err != nil {
					Fail(name + ": " + answered(r))
				}
				Expect(made.Name).To(Equal(name))
				got, _, err := c.GetProtectedBranch(id, name)
				Expect(err).NotTo(HaveOccurred(), name)
				Expect(got).To(Equal(made))
				changed, _, err := c.UpdateProtectedBranch(id, name, &gitlab.UpdateProtectedBranchOptions{AllowForcePush: gitlab.Ptr(true)})
				Expect(err).NotTo(HaveOccurred(), name)
				Expect(changed.ID).To(Equal(made.ID))
				found, _, err := c.ListProtectedBranches(id, &gitlab.ListProtectedBranchesOptions{Search: &name})
				Expect(err).NotTo(HaveOccurred(), name)
				Expect(found).To(ContainElement(HaveField("Name", name)))
				_, err = c.UnprotectRepositoryBranches(id, name)
				Expect(err).NotTo(HaveOccurred(), name)
				_, r, err = c.GetProtectedBranch(id, name)
				Expect(err).To(MatchError(gitlab.ErrNotFound), name)
				Expect(answered(r)).To(Equal(`404 {"message":"404 Not found"}`))
			}
		}
	})

	It("of groups and projects can be full paths with dots, dashes and words of the API", func() {
		for _, path := range []string{"v1.2-x_y", "projects", "protected_branches", "members", "1x", "api", "v4"} {
			above := d.newGroup(owner, nil, gitlab.PublicVisibility)
			below, _, err := d.as(owner).Groups.CreateGroup(&gitlab.CreateGroupOptions{Name: &path, Path: &path, ParentID: &above.ID})
			Expect(err).NotTo(HaveOccurred(), path)
			project, _, err := d.as(owner).Projects.CreateProject(&gitlab.CreateProjectOptions{Name: &path, Path: &path, NamespaceID: &below.ID})
			Expect(err).NotTo(HaveOccurred(), path)
			Expect(project.PathWithNamespace).To(Equal(above.Path + "/" + path + "/" + path))
			got, _, err := d.as(owner).Projects.GetProject(project.PathWithNamespace, nil)
			Expect(err).NotTo(HaveOccurred(), path)
			Expect(got.ID).To(Equal(project.ID))
			group, _, err := d.as(owner).Groups.GetGroup(below.FullPath, nil)
			Expect(err).NotTo(HaveOccurred(), path)
			Expect(group.ID).To(Equal(below.ID))
			namespace, _, err := d.as(owner).Namespaces.GetNamespace(below.FullPath)
			Expect(err).NotTo(HaveOccurred(), path)
			Expect(namespace.ID).To(Equal(below.ID))
			_, _, err = d.as(owner).ProtectedBranches.ProtectRepositoryBranches(project.PathWithNamespace, &gitlab.ProtectRepositoryBranchesOptions{Name: gitlab.Ptr("a/*")})
			Expect(err).NotTo(HaveOccurred(), path)
			members, _, err := d.as(owner).ProjectMembers.ListAllProjectMembers(project.PathWithNamespace, nil)
			Expect(err).NotTo(HaveOccurred(), path)
			Expect(members).To(HaveExactElements(HaveField("ID", owner.id)))
		}
	})

	It("for display can contain any characters", d.again(), func() {
		for _, name := range []string{"a/b", "* wild *", "50 % + 1", "  spaced  out", "ñandú 名前 😀", `"quoted" <b> & 'so'`, "tab\tand\nline"} {
			path := fresh("named")
			g, r, err := d.as(owner).Groups.CreateGroup(&gitlab.CreateGroupOptions{Name: &name, Path: &path, Description: &name})
			if err != nil {
				Fail(name + ": " + answered(r))
			}
			Expect(g.Name).To(Equal(name))
			Expect(g.Description).To(Equal(name))
			p, _, err := d.as(owner).Projects.CreateProject(&gitlab.CreateProjectOptions{Name: &name, Path: &path, NamespaceID: &g.ID, Description: &name})
			Expect(err).NotTo(HaveOccurred(), name)
			Expect(p.Name).To(Equal(name))
			Expect(p.Description).To(Equal(name))
			Expect(p.NameWithNamespace).To(Equal(name + " / " + name))
			listed, _, err := d.as(owner).Projects.ListProjects(&gitlab.ListProjectsOptions{Search: &name, Owned: gitlab.Ptr(true)})
			Expect(err).NotTo(HaveOccurred(), name)
			Expect(listed).To(ContainElement(HaveField("ID", p.ID)), name)
		}
	})

	It("of users can contain dots, dashes and underscores", d.again(), func() {
		for _, suffix := range []string{"a.b", "a-b", "_x", "UPPER", "1"} {
			u := d.newUser(fresh("user") + suffix)
			list, _, err := d.as(guest).Users.ListUsers(&gitlab.ListUsersOptions{Username: &u.Username})
			Expect(err).NotTo(HaveOccurred())
			Expect(list).To(HaveExactElements(HaveField("ID", u.ID)))
			me, _, err := d.with(d.newToken(u.ID, "api").Token).Users.CurrentUser()
			Expect(err).NotTo(HaveOccurred())
			Expect(me.Username).To(Equal(u.Username))
			p, _, err := d.with(d.newToken(u.ID, "api").Token).Projects.CreateProject(&gitlab.CreateProjectOptions{Name: gitlab.Ptr("Mine")})
			Expect(err).NotTo(HaveOccurred())
			Expect(p.PathWithNamespace).To(Equal(u.Username + "/mine"))
			_, _, err = d.as(root).Projects.GetProject(p.PathWithNamespace, nil)
			Expect(err).NotTo(HaveOccurred())
		}
	})
})
