package conformance

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

var _ = throughEachDoor("Labels of groups", func(d *door) {
	var team team
	BeforeEach(func() { team = d.newTeam(gitlab.PrivateVisibility) })

	It("are created, read, changed, subscribed to and removed, by id and by title", func() {
		c := d.as(developer).GroupLabels
		for _, id := range []any{team.group.ID, team.group.FullPath} {
			made, r, err := c.CreateGroupLabel(id, &gitlab.CreateGroupLabelOptions{
				Name: gitlab.Ptr(" type::bug & more "), Color: gitlab.Ptr("red"), Description: gitlab.Ptr("Something is **wrong**"),
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(And(HavePrefix("201 "), ContainSubstring(`"description_html":"Something is <strong>wrong</strong>"`),
				Not(ContainSubstring("priority")), Not(ContainSubstring("is_project_label"))))
			Expect(*made).To(Equal(gitlab.GroupLabel{
				ID: made.ID, Name: "type::bug & more", Color: "#FF0000", TextColor: "#FFFFFF", Description: "Something is **wrong**",
			}))
			_, r, err = c.CreateGroupLabel(id, &gitlab.CreateGroupLabelOptions{Name: gitlab.Ptr("type::bug & more"), Color: gitlab.Ptr("red")})
			Expect(err).To(HaveOccurred())
			Expect(answered(r)).To(Equal(`409 {"message":"Label already exists"}`))
			for _, key := range []any{made.ID, made.Name} {
				got, _, err := d.as(guest).GroupLabels.GetGroupLabel(id, key)
				Expect(err).NotTo(HaveOccurred())
				Expect(got).To(Equal(made))
				subscribed, r, err := d.as(guest).GroupLabels.SubscribeToGroupLabel(id, key)
				Expect(err).NotTo(HaveOccurred())
				Expect(r.StatusCode).To(Equal(201))
				Expect(subscribed.Subscribed).To(BeTrue())
				_, r, _ = d.as(guest).GroupLabels.SubscribeToGroupLabel(id, key)
				Expect(answered(r)).To(Equal("304"))
				r, err = d.as(guest).GroupLabels.UnsubscribeFromGroupLabel(id, key)
				Expect(err).NotTo(HaveOccurred())
				Expect(r.StatusCode).To(Equal(201))
			}
			changed, _, err := c.UpdateGroupLabel(id, made.Name, &gitlab.UpdateGroupLabelOptions{NewName: gitlab.Ptr("defect"), Color: gitlab.Ptr("#fff")})
			Expect(err).NotTo(HaveOccurred())
			Expect([]string{changed.Name, changed.Color, changed.TextColor}).To(Equal([]string{"defect", "#fff", "#1F1E24"}))
			again, _, err := c.UpdateGroupLabel(id, nil, &gitlab.UpdateGroupLabelOptions{Name: gitlab.Ptr("defect"), Description: gitlab.Ptr("")})
			Expect(err).NotTo(HaveOccurred())
			Expect(again.Description).To(BeEmpty())
			r, err = c.DeleteGroupLabel(id, made.ID, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(Equal("204"))
			_, _, err = c.CreateGroupLabel(id, &gitlab.CreateGroupLabelOptions{Name: gitlab.Ptr("old"), Color: gitlab.Ptr("red")})
			Expect(err).NotTo(HaveOccurred())
			r, err = c.DeleteGroupLabel(id, nil, &gitlab.DeleteGroupLabelOptions{Name: gitlab.Ptr("old")})
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(Equal("204"))
			_, r, err = c.GetGroupLabel(id, made.ID)
			Expect(err).To(MatchError(gitlab.ErrNotFound))
			Expect(answered(r)).To(Equal(`404 {"message":"404 Label Not Found"}`))
		}
		_, r, err := d.as(guest).GroupLabels.CreateGroupLabel(team.group.ID, &gitlab.CreateGroupLabelOptions{Name: gitlab.Ptr("new"), Color: gitlab.Ptr("red")})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`))
	})

	It("hold in projects and subgroups, and cannot be changed there", func() {
		below := d.newGroup(owner, team.group, gitlab.PrivateVisibility)
		for group, title := range map[int64]string{team.group.ID: "above", below.ID: "below"} {
			_, _, err := d.as(developer).GroupLabels.CreateGroupLabel(group, &gitlab.CreateGroupLabelOptions{Name: &title, Color: gitlab.Ptr("red")})
			Expect(err).NotTo(HaveOccurred())
		}
		d.newLabel(team.project.ID, "own")
		names := func(group int64, o gitlab.ListGroupLabelsOptions) (all []string) {
			GinkgoHelper()
			listed, _, err := d.as(guest).GroupLabels.ListGroupLabels(group, &o)
			Expect(err).NotTo(HaveOccurred())
			for _, l := range listed {
				all = append(all, l.Name)
			}
			return all
		}
		yes, no := gitlab.Ptr(true), gitlab.Ptr(false)
		Expect(names(team.group.ID, gitlab.ListGroupLabelsOptions{})).To(Equal([]string{"above"}))
		Expect(names(team.group.ID, gitlab.ListGroupLabelsOptions{IncludeDescendantGroups: yes})).To(Equal([]string{"above", "below"}))
		Expect(names(team.group.ID, gitlab.ListGroupLabelsOptions{OnlyGroupLabels: no})).To(Equal([]string{"above", "own"}))
		Expect(names(below.ID, gitlab.ListGroupLabelsOptions{})).To(Equal([]string{"above", "below"}))
		Expect(names(below.ID, gitlab.ListGroupLabelsOptions{IncludeAncestorGroups: no})).To(Equal([]string{"below"}))
		Expect(names(below.ID, gitlab.ListGroupLabelsOptions{Search: gitlab.Ptr("ABO")})).To(Equal([]string{"above"}))
		_, r, err := d.as(guest).GroupLabels.ListGroupLabels(below.ID, &gitlab.ListGroupLabelsOptions{WithCounts: yes})
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(ContainSubstring(`"open_issues_count":0,"closed_issues_count":0,"open_merge_requests_count":0`))
		seen, _, err := d.as(guest).Labels.GetLabel(team.project.ID, "above")
		Expect(err).NotTo(HaveOccurred())
		Expect(seen.IsProjectLabel).To(BeFalse())
		_, r, err = d.as(owner).GroupLabels.UpdateGroupLabel(below.ID, "above", &gitlab.UpdateGroupLabelOptions{Color: gitlab.Ptr("blue")})
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(`404 {"message":"404 Label Not Found"}`))
	})
})

var _ = throughEachDoor("Badges of groups", func(d *door) {
	It("are added, read, previewed, changed and removed by owners", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		c := d.as(owner).GroupBadges
		const link, image = "https://ci.example.com/%{project_path}", "https://ci.example.com/%{default_branch}.svg"
		for _, id := range []any{team.group.ID, team.group.FullPath} {
			made, r, err := c.AddGroupBadge(id, &gitlab.AddGroupBadgeOptions{LinkURL: gitlab.Ptr(link), ImageURL: gitlab.Ptr(image), Name: gitlab.Ptr("Build")})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(201))
			Expect(made).To(Equal(&gitlab.GroupBadge{
				ID: made.ID, Name: "Build", Kind: gitlab.GroupBadgeKind, LinkURL: link, ImageURL: image,
				RenderedLinkURL: "https://ci.example.com/" + team.project.PathWithNamespace, RenderedImageURL: "https://ci.example.com/main.svg",
			}))
			got, _, err := d.as(guest).GroupBadges.GetGroupBadge(id, made.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(made))
			listed, _, err := d.as(guest).GroupBadges.ListGroupBadges(id, &gitlab.ListGroupBadgesOptions{Name: gitlab.Ptr("Build")})
			Expect(err).NotTo(HaveOccurred())
			Expect(listed).To(HaveExactElements(Equal(made)))
			inProject, _, err := d.as(guest).ProjectBadges.ListProjectBadges(team.project.ID, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(inProject).To(HaveExactElements(And(HaveField("ID", made.ID), HaveField("Kind", "group"))))
			changed, _, err := c.EditGroupBadge(id, made.ID, &gitlab.EditGroupBadgeOptions{Name: gitlab.Ptr("Other")})
			Expect(err).NotTo(HaveOccurred())
			Expect(changed.Name).To(Equal("Other"))
			preview, r, err := c.PreviewGroupBadge(id, &gitlab.GroupBadgePreviewOptions{LinkURL: gitlab.Ptr(link), ImageURL: gitlab.Ptr(image)})
			Expect(err).NotTo(HaveOccurred())
			Expect(preview.RenderedImageURL).To(Equal("https://ci.example.com/main.svg"))
			Expect(answered(r)).NotTo(ContainSubstring(`"kind"`))
			r, err = c.DeleteGroupBadge(id, made.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(Equal("204"))
			_, r, err = c.GetGroupBadge(id, made.ID)
			Expect(err).To(MatchError(gitlab.ErrNotFound))
			Expect(answered(r)).To(Equal(`404 {"message":"404 Not found"}`))
		}
		_, r, err := d.as(maintainer).GroupBadges.AddGroupBadge(team.group.ID, &gitlab.AddGroupBadgeOptions{LinkURL: gitlab.Ptr(link), ImageURL: gitlab.Ptr(image)})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`))
	})
})

var _ = throughEachDoor("Protected branches of groups", func(d *door) {
	It("are created, read, changed and removed by owners, and hold in the projects below", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		c := d.as(owner).GroupProtectedBranches
		for _, id := range []any{team.group.ID, team.group.FullPath} {
			made, r, err := c.ProtectRepositoryBranches(id, &gitlab.ProtectGroupRepositoryBranchesOptions{
				Name: gitlab.Ptr("release/*"), PushAccessLevel: gitlab.Ptr(gitlab.NoPermissions),
				AllowedToMerge: &[]*gitlab.GroupBranchPermissionOptions{{UserID: &developer.id}, {GroupID: &team.group.ID}},
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(And(HavePrefix("201 "), ContainSubstring(`"inherited":false`)))
			Expect(made.PushAccessLevels).To(HaveExactElements(HaveField("AccessLevelDescription", "No one")))
			Expect(made.MergeAccessLevels).To(HaveExactElements(HaveField("UserID", developer.id), HaveField("GroupID", team.group.ID)))
			got, _, err := c.GetProtectedBranch(id, "release/*")
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(made))
			listed, _, err := c.ListProtectedBranches(id, &gitlab.ListGroupProtectedBranchesOptions{Search: gitlab.Ptr("LEAS")})
			Expect(err).NotTo(HaveOccurred())
			Expect(listed).To(HaveExactElements(Equal(made)))
			inherited := send(d.as(developer), fmt.Sprintf("GET projects/%d/protected_branches/release%%2F%%2A", team.project.ID), "")
			Expect(answered(inherited)).To(And(HavePrefix("200 "), ContainSubstring(`"inherited":true`), ContainSubstring(fmt.Sprintf(`"id":%d,`, made.ID))))
			_, r, err = d.as(maintainer).Branches.CreateBranch(team.project.ID, &gitlab.CreateBranchOptions{Branch: gitlab.Ptr("release/1"), Ref: gitlab.Ptr("main")})
			Expect(err).To(HaveOccurred())
			Expect(r.StatusCode).NotTo(Equal(201), "nobody pushes to it")

			changed, _, err := c.UpdateProtectedBranch(id, "release/*", &gitlab.UpdateGroupProtectedBranchOptions{
				AllowForcePush: gitlab.Ptr(true),
				AllowedToMerge: &[]*gitlab.GroupBranchPermissionOptions{{ID: &made.MergeAccessLevels[0].ID, Destroy: gitlab.Ptr(true)}},
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(changed.AllowForcePush).To(BeTrue())
			Expect(changed.MergeAccessLevels).To(HaveExactElements(HaveField("GroupID", team.group.ID)))
			r, err = c.UnprotectRepositoryBranches(id, "release/*")
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(Equal("204"))
			_, r, err = c.GetProtectedBranch(id, "release/*")
			Expect(err).To(MatchError(gitlab.ErrNotFound))
			Expect(answered(r)).To(Equal(`404 {"message":"404 Not found"}`))
		}
		_, r, err := d.as(maintainer).GroupProtectedBranches.ListProtectedBranches(team.group.ID, nil)
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`))
	})
})
