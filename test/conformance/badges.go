package conformance

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// newBadge adds a badge to a project.
func (d *door) newBadge(project any, name string) *gitlab.ProjectBadge {
	GinkgoHelper()
	b, r, err := d.as(maintainer).ProjectBadges.AddProjectBadge(project, &gitlab.AddProjectBadgeOptions{
		LinkURL: gitlab.Ptr("https://ci.example.com/%{project_path}"), ImageURL: gitlab.Ptr("https://ci.example.com/%{default_branch}.svg"), Name: &name,
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(r.StatusCode).To(Equal(201))
	return b
}

// newGroupBadge declares a badge of a group and waits until it exists. REST shows such badges, but cannot create them.
func (d *door) newGroupBadge(t team, name string) *v1alpha1.Badge {
	GinkgoHelper()
	g := group(t)
	b := &v1alpha1.Badge{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: fresh("badge")},
		Spec: v1alpha1.BadgeSpec{
			GroupRef: &v1alpha1.Reference{Name: g.Name}, Name: name,
			LinkURL: "https://ci.example.com/%{project_name}", ImageURL: "https://%{group_name}.example.com/%{unknown}.svg",
		},
	}
	Expect(api.Create(context.Background(), b)).To(Succeed())
	Eventually(func(g Gomega) {
		listed, _, err := d.as(owner).ProjectBadges.ListProjectBadges(t.project.ID, &gitlab.ListProjectBadgesOptions{Name: &name})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(listed).To(HaveLen(1))
		b.Spec.ID = listed[0].ID
	}).WithPolling(polling).Should(Succeed())
	return b
}

// group returns the object of a team's group.
func group(t team) *v1alpha1.Group {
	GinkgoHelper()
	var all v1alpha1.GroupList
	Expect(api.List(context.Background(), &all)).To(Succeed())
	for i := range all.Items {
		if all.Items[i].Spec.ID == t.group.ID {
			return &all.Items[i]
		}
	}
	Fail(fmt.Sprintf("there is no group %d", t.group.ID))
	return nil
}

var _ = throughEachDoor("Badges", func(d *door) {
	It("are added, read, changed and removed", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		c := d.as(maintainer).ProjectBadges
		for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			made := d.newBadge(id, "Überdeckung")
			Expect(made.ID).NotTo(BeZero())
			Expect(made).To(Equal(&gitlab.ProjectBadge{
				ID: made.ID, Name: "Überdeckung", Kind: "project",
				LinkURL: "https://ci.example.com/%{project_path}", ImageURL: "https://ci.example.com/%{default_branch}.svg",
				RenderedLinkURL: "https://ci.example.com/" + team.project.PathWithNamespace, RenderedImageURL: "https://ci.example.com/main.svg",
			}))
			got, _, err := d.as(guest).ProjectBadges.GetProjectBadge(id, made.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(made))

			changed, r, err := c.EditProjectBadge(id, made.ID, &gitlab.EditProjectBadgeOptions{
				ImageURL: gitlab.Ptr("http://%{project_name}.example.com/%{project_title}?%{project_id}#%{commit_sha}"), Name: gitlab.Ptr("Other"),
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(200))
			Expect(changed.Name).To(Equal("Other"))
			Expect(changed.LinkURL).To(Equal(made.LinkURL))
			Expect(changed.RenderedImageURL).To(Equal(fmt.Sprintf("http://%s.example.com/%s?%d#%%{commit_sha}", team.project.Path, team.project.Name, team.project.ID)))
			same, r, err := c.EditProjectBadge(id, made.ID, &gitlab.EditProjectBadgeOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(200))
			Expect(same).To(Equal(changed))
			listed, _, err := c.ListProjectBadges(id, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(listed).To(HaveExactElements(Equal(changed)))

			r, err = c.DeleteProjectBadge(id, made.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(Equal("204"))
			_, r, err = c.GetProjectBadge(id, made.ID)
			Expect(err).To(MatchError(gitlab.ErrNotFound))
			Expect(answered(r)).To(Equal(`404 {"message":"404 Not found"}`))
		}
	})

	It("need no name, and can lose it", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		path := fmt.Sprintf("projects/%d/badges", team.project.ID)
		r := send(d.as(maintainer), "POST "+path, `{"link_url":"https://a","image_url":"https://b"}`)
		Expect(answered(r)).To(And(HavePrefix("201 "), ContainSubstring(`"name":null`)))
		made := d.newBadge(team.project.ID, "Named")
		Expect(answered(send(d.as(maintainer), fmt.Sprintf("PUT %s/%d", path, made.ID), `{"name":null}`))).To(ContainSubstring(`"name":null`))
	})

	It("of groups are listed with those of the project, and cannot be changed through it", d.again(), func() {
		team := d.newTeam(gitlab.PublicVisibility)
		first := d.newBadge(team.project.ID, "Build")
		above := d.newGroupBadge(team, "build")
		second := d.newBadge(team.project.ID, "Build")
		listed := func(name *string) (all []string) {
			badges, _, err := d.as(nobody).ProjectBadges.ListProjectBadges(team.project.PathWithNamespace, &gitlab.ListProjectBadgesOptions{Name: name})
			Expect(err).NotTo(HaveOccurred())
			for _, b := range badges {
				all = append(all, fmt.Sprint(b.Kind, " ", b.ID))
			}
			return all
		}
		own := []string{fmt.Sprint("project ", first.ID), fmt.Sprint("project ", second.ID)}
		inherited := fmt.Sprint("group ", above.Spec.ID)
		var declared v1alpha1.BadgeList
		Expect(api.List(context.Background(), &declared, client.InNamespace(above.Namespace))).To(Succeed())
		made := map[int64]time.Time{}
		for i := range declared.Items {
			made[declared.Items[i].Spec.ID] = declared.Items[i].CreationTimestamp.Time
		}
		all := map[int64]string{first.ID: own[0], above.Spec.ID: inherited, second.ID: own[1]}
		var ordered []string
		for _, id := range slices.SortedFunc(maps.Keys(all), func(a, b int64) int { return cmp.Or(made[a].Compare(made[b]), cmp.Compare(a, b)) }) {
			Expect(made).To(HaveKey(id))
			ordered = append(ordered, all[id])
		}
		Expect(listed(nil)).To(Equal(ordered), "by when they were made, and those of one second by their ids")
		Expect(listed(gitlab.Ptr("Build"))).To(Equal(own))
		Expect(listed(gitlab.Ptr("build"))).To(Equal([]string{inherited}))
		Expect(listed(gitlab.Ptr("BUILD"))).To(BeEmpty())
		badges, _, err := d.as(nobody).ProjectBadges.ListProjectBadges(team.project.ID, &gitlab.ListProjectBadgesOptions{Name: gitlab.Ptr("build")})
		Expect(err).NotTo(HaveOccurred())
		Expect(badges[0].RenderedLinkURL).To(Equal("https://ci.example.com/" + team.project.Path))
		Expect(badges[0].RenderedImageURL).To(Equal("https://" + team.group.Path + ".example.com/%{unknown}.svg"))

		const missing = `404 {"message":"404 Not found"}`
		c := d.as(maintainer).ProjectBadges
		_, r, err := c.GetProjectBadge(team.project.ID, above.Spec.ID)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(missing))
		_, r, err = c.EditProjectBadge(team.project.ID, above.Spec.ID, &gitlab.EditProjectBadgeOptions{})
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(missing))
		r, err = c.DeleteProjectBadge(team.project.ID, above.Spec.ID)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(missing))
	})

	It("can be previewed, without an id and a kind", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		preview, r, err := d.as(maintainer).ProjectBadges.PreviewProjectBadge(team.project.PathWithNamespace, &gitlab.ProjectBadgePreviewOptions{
			LinkURL: gitlab.Ptr("https://a/%{project_path}"), ImageURL: gitlab.Ptr("https://a/?%{default_branch}&%{commit_sha}"),
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(200))
		Expect(preview.RenderedLinkURL).To(Equal("https://a/" + team.project.PathWithNamespace))
		Expect(answered(r)).To(Equal(`200 {"name":null,"link_url":"https://a/%{project_path}","image_url":"https://a/?%{default_branch}&%{commit_sha}",` +
			`"rendered_link_url":"https://a/` + team.project.PathWithNamespace + `","rendered_image_url":"https://a/?main&%{commit_sha}"}`))
	})

	It("are removed only if they have not changed, when the client asks for that", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		made := d.newBadge(team.project.ID, "Build")
		r, err := d.as(maintainer).ProjectBadges.DeleteProjectBadge(team.project.ID, made.ID, gitlab.WithHeader("If-Unmodified-Since", "Sat, 01 Jan 2000 00:00:00 GMT"))
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`412 {"message":"412 Precondition Failed"}`))
	})
})
