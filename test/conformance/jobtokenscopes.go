package conformance

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// allow lets the job tokens of a project into another project.
func (d *door) allow(project any, target int64) {
	GinkgoHelper()
	_, r, err := d.as(maintainer).JobTokenScope.AddProjectToJobScopeAllowList(project, &gitlab.JobTokenInboundAllowOptions{TargetProjectID: &target})
	Expect(err).NotTo(HaveOccurred())
	Expect(r.StatusCode).To(Equal(201))
}

var _ = throughEachDoor("Job token scopes", func(d *door) {
	It("are restricted by default", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		c := d.as(maintainer).JobTokenScope
		for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			for _, enabled := range []bool{false, true} {
				r, err := c.PatchProjectJobTokenAccessSettings(id, &gitlab.PatchProjectJobTokenAccessSettingsOptions{Enabled: enabled})
				Expect(err).NotTo(HaveOccurred())
				Expect(answered(r)).To(Equal("204"))
				got, r, err := c.GetProjectJobTokenAccessSettings(id)
				Expect(err).NotTo(HaveOccurred())
				Expect(got.InboundEnabled).To(Equal(enabled))
				Expect(answered(r)).To(Equal(fmt.Sprintf(`200 {"inbound_enabled":%t,"outbound_enabled":false}`, enabled)))
			}
		}
		untouched := d.newProject(team.group.ID, gitlab.PrivateVisibility)
		got, _, err := c.GetProjectJobTokenAccessSettings(untouched.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.InboundEnabled).To(BeTrue())
	})

	It("have a list of groups, which can be added, shown and removed", func() {
		team, abroad := d.newTeam(gitlab.PrivateVisibility), d.newTeam(gitlab.PublicVisibility)
		c := d.as(maintainer).JobTokenScope
		added, r, err := c.AddGroupToJobTokenAllowlist(team.project.ID, &gitlab.AddGroupToJobTokenAllowlistOptions{TargetGroupID: &abroad.group.ID})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(added).To(Equal(&gitlab.JobTokenAllowlistItem{SourceProjectID: team.project.ID, TargetGroupID: abroad.group.ID}))
		listed, _, err := c.GetJobTokenAllowlistGroups(team.project.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(listed).To(HaveExactElements(And(HaveField("ID", abroad.group.ID), HaveField("FullPath", abroad.group.FullPath), HaveField("WebURL", abroad.group.WebURL))))
		r, err = c.RemoveGroupFromJobTokenAllowlist(team.project.ID, abroad.group.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(204))
		_, err = c.RemoveGroupFromJobTokenAllowlist(team.project.ID, abroad.group.ID)
		Expect(err).To(MatchError(HaveSuffix("400 {message: 400 Bad request - Target group is not in the job token scope}")))
	})

	It("have a list of other projects, which can be added, shown and removed", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		other := d.newProject(team.group.ID, gitlab.PrivateVisibility)
		abroad := d.newTeam(gitlab.PublicVisibility).project
		c := d.as(maintainer).JobTokenScope
		for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			added, r, err := c.AddProjectToJobScopeAllowList(id, &gitlab.JobTokenInboundAllowOptions{TargetProjectID: &other.ID})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(201))
			Expect(added).To(Equal(&gitlab.JobTokenInboundAllowItem{SourceProjectID: team.project.ID, TargetProjectID: other.ID}))
			d.allow(id, abroad.ID)
			_, r, err = c.AddProjectToJobScopeAllowList(id, &gitlab.JobTokenInboundAllowOptions{TargetProjectID: &other.ID})
			Expect(err).To(MatchError(HaveSuffix("400 {message: 400 Bad request - Target project is already in the job token scope}")))
			Expect(r.StatusCode).To(Equal(400))

			listed, r, err := c.GetProjectJobTokenInboundAllowList(id, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(listed).To(HaveLen(2))
			shown := listed[0]
			Expect(shown.ID).To(Equal(other.ID))
			Expect(shown.Name).To(Equal(other.Name))
			Expect(shown.NameWithNamespace).To(Equal(other.NameWithNamespace))
			Expect(shown.Path).To(Equal(other.Path))
			Expect(shown.PathWithNamespace).To(Equal(other.PathWithNamespace))
			Expect(shown.CreatedAt.Equal(*other.CreatedAt)).To(BeTrue())
			Expect(shown.LastActivityAt.Equal(*other.LastActivityAt)).To(BeTrue())
			Expect(shown.DefaultBranch).To(Equal("main"))
			Expect(shown.Topics).To(BeEmpty())
			Expect(answered(r)).To(ContainSubstring(`"tag_list":[],"topics":[]`))
			Expect(shown.HTTPURLToRepo).To(Equal(other.HTTPURLToRepo))
			Expect(shown.WebURL).To(Equal(other.WebURL))
			Expect(shown.StarCount).To(BeZero())
			Expect(shown.Namespace).To(Equal(other.Namespace))
			Expect(listed[1].ID).To(Equal(abroad.ID))

			r, err = c.RemoveProjectFromJobScopeAllowList(id, other.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(Equal("204"))
			r, err = c.RemoveProjectFromJobScopeAllowList(id, other.ID)
			Expect(err).To(HaveOccurred())
			Expect(answered(r)).To(Equal(`400 {"message":"400 Bad request - Target project is not in the job token scope"}`))
			_, err = c.RemoveProjectFromJobScopeAllowList(id, abroad.ID)
			Expect(err).NotTo(HaveOccurred())
			listed, _, err = c.GetProjectJobTokenInboundAllowList(id, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(listed).To(BeEmpty())
		}
	})

	It("accept at most 100 projects", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		listed, one, more := d.newProject(team.group.ID, gitlab.PrivateVisibility), d.newProject(team.group.ID, gitlab.PrivateVisibility), d.newProject(team.group.ID, gitlab.PrivateVisibility)
		d.allow(team.project.ID, listed.ID)
		// Most of them lead nowhere. Entries by path can do so later, and entries by id never will.
		fill := func(entry func(n int64) v1alpha1.Reference) {
			scope := jobTokenScope(team.project.ID)
			before := scope.DeepCopy()
			scope.Spec.Allowlist = nil
			for n := range int64(99) {
				scope.Spec.Allowlist = append(scope.Spec.Allowlist, v1alpha1.AllowlistEntry{ProjectRef: entry(n)})
			}
			Expect(api.Patch(context.Background(), scope, client.MergeFrom(before))).To(Succeed())
			Eventually(func(g Gomega) {
				all, _, err := d.as(maintainer).JobTokenScope.GetProjectJobTokenInboundAllowList(team.project.ID, nil)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(all).To(BeEmpty())
				g.Expect(jobTokenScope(team.project.ID).OwnerReferences).To(BeEmpty(), "it is declared now")
			}).WithPolling(polling).Should(Succeed())
		}
		fill(func(n int64) v1alpha1.Reference {
			return v1alpha1.Reference{Path: fmt.Sprintf("nowhere/project-%d", n)}
		})
		d.allow(team.project.ID, one.ID)
		_, r, err := d.as(maintainer).JobTokenScope.AddProjectToJobScopeAllowList(team.project.ID, &gitlab.JobTokenInboundAllowOptions{TargetProjectID: &more.ID})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`400 {"message":"400 Bad request - The job token scope has 100 projects, and cannot have more"}`))
		fill(func(n int64) v1alpha1.Reference { return v1alpha1.Reference{ID: 1<<40 + n} })
		d.allow(team.project.ID, one.ID)
		d.allow(team.project.ID, more.ID)
	})
})

// jobTokenScope is the object that was created for a project over REST.
func jobTokenScope(project int64) *v1alpha1.JobTokenScope {
	GinkgoHelper()
	ctx := context.Background()
	var projects v1alpha1.ProjectList
	var scopes v1alpha1.JobTokenScopeList
	Expect(api.List(ctx, &projects)).To(Succeed())
	Expect(api.List(ctx, &scopes)).To(Succeed())
	for _, p := range projects.Items {
		for i, s := range scopes.Items {
			if p.Spec.ID == project && s.Namespace == p.Namespace && s.Spec.ProjectRef.Name == p.Name {
				return &scopes.Items[i]
			}
		}
	}
	Fail(fmt.Sprintf("there is no job token scope of project %d", project))
	return nil
}
