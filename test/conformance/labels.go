package conformance

import (
	"fmt"
	"io"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

// newLabel creates a red label in a project.
func (d *door) newLabel(project any, title string) *gitlab.Label {
	GinkgoHelper()
	l, r, err := d.as(maintainer).Labels.CreateLabel(project, &gitlab.CreateLabelOptions{Name: &title, Color: gitlab.Ptr("red")})
	if err != nil {
		Fail(title + ": " + answered(r))
	}
	Expect(r.StatusCode).To(Equal(201))
	return l
}

// titles are titles that clients, proxies and servers often handle wrongly.
var titles = []string{
	"bug", "type::bug", "a b & c", "a/b", "50%", "100%25", "%2F", "a+b", "große Ändérung", "名前 😀", "a;b", "#1", "?", "a?b=c", "(x)", "<b>", "'\"", ".", "..", "a.b", "Bug",
}

var _ = throughEachDoor("Labels", func(d *door) {
	var team team
	BeforeEach(func() { team = d.newTeam(gitlab.PrivateVisibility) })

	It("are created, read, changed and removed", d.again(), func() {
		c := d.as(developer).Labels
		for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			made, r, err := c.CreateLabel(id, &gitlab.CreateLabelOptions{
				Name: gitlab.Ptr(" bug "), Color: gitlab.Ptr("#d9534F"), Description: gitlab.Ptr("Something is **wrong**"), Priority: gitlab.NewNullableWithValue[int64](0),
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(201))
			Expect(answered(r)).To(ContainSubstring(`"description_html":"Something is <strong>wrong</strong>"`))
			Expect(*made).To(Equal(gitlab.Label{
				ID: made.ID, Name: "bug", Color: "#d9534F", TextColor: "#FFFFFF", Description: "Something is **wrong**",
				Priority: gitlab.NewNullableWithValue[int64](0), IsProjectLabel: true,
			}))
			Expect(made.ID).NotTo(BeZero())
			for _, key := range []any{made.ID, "bug"} {
				got, _, err := d.as(guest).Labels.GetLabel(id, key)
				Expect(err).NotTo(HaveOccurred())
				Expect(got).To(Equal(made))
			}
			changed, r, err := c.UpdateLabel(id, made.ID, &gitlab.UpdateLabelOptions{
				NewName: gitlab.Ptr("defect"), Color: gitlab.Ptr("WHITE"), Description: gitlab.Ptr(""), Priority: gitlab.NewNullNullable[int64](),
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(200))
			Expect(answered(r)).To(And(ContainSubstring(`"description":null,"description_html":""`), ContainSubstring(`"priority":null`)))
			Expect([]string{changed.Name, changed.Color, changed.TextColor}).To(Equal([]string{"defect", "#FFFFFF", "#1F1E24"}))
			again, _, err := c.UpdateLabel(id, "defect", &gitlab.UpdateLabelOptions{Priority: gitlab.NewNullableWithValue[int64](3)})
			Expect(err).NotTo(HaveOccurred())
			Expect(again.Priority).To(Equal(gitlab.NewNullableWithValue[int64](3)))
			Expect(again.Color).To(Equal("#FFFFFF"))
			listed, _, err := c.ListLabels(id, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(listed).To(HaveExactElements(Equal(again)))

			r, err = c.DeleteLabel(id, made.ID, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(Equal("204"))
			_, r, err = c.GetLabel(id, made.ID)
			Expect(err).To(MatchError(gitlab.ErrNotFound))
			Expect(answered(r)).To(Equal(`404 {"message":"404 Label Not Found"}`))
		}
	})

	It("are named in a parameter by the older forms of requests", func() {
		p := team.project.ID
		made := d.newLabel(p, "old")
		changed, _, err := d.as(developer).Labels.UpdateLabel(p, nil, &gitlab.UpdateLabelOptions{Name: gitlab.Ptr("old"), NewName: gitlab.Ptr("older")})
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.ID).To(Equal(made.ID))
		Expect(changed.Name).To(Equal("older"))
		r := send(d.as(developer), fmt.Sprintf("PUT projects/%d/labels", p), fmt.Sprintf(`{"label_id":%d,"color":"#fff"}`, made.ID))
		Expect(answered(r)).To(And(HavePrefix("200"), ContainSubstring(`"color":"#fff"`)))
		r, err = d.as(developer).Labels.DeleteLabel(p, nil, &gitlab.DeleteLabelOptions{Name: gitlab.Ptr("older")})
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
		second := d.newLabel(p, "second")
		Expect(answered(send(d.as(developer), fmt.Sprintf("DELETE projects/%d/labels?label_id=%d", p, second.ID), ""))).To(Equal("204"))
		d.newLabel(p, "third")
		r = send(d.as(maintainer), fmt.Sprintf("PUT projects/%d/labels/promote", p), `{"name":"third"}`)
		Expect(answered(r)).To(And(HavePrefix("200"), ContainSubstring(`"name":"third"`)))
	})

	It("are listed by title, with those of the groups above", d.again(), func() {
		below := d.newGroup(owner, team.group, gitlab.PrivateVisibility)
		project := d.newProject(below.ID, gitlab.PrivateVisibility)
		for of, title := range map[int64]string{team.project.ID: "above", project.ID: "middle"} {
			d.newLabel(of, title)
			_, err := d.as(maintainer).Labels.PromoteLabel(of, title)
			Expect(err).NotTo(HaveOccurred())
		}
		d.newLabel(project.ID, "own")
		_, _, err := d.as(maintainer).Labels.UpdateLabel(project.ID, "own", &gitlab.UpdateLabelOptions{Description: gitlab.Ptr("in the MIDDLE")})
		Expect(err).NotTo(HaveOccurred())
		names := func(o gitlab.ListLabelsOptions) (all []string) {
			GinkgoHelper()
			listed, _, err := d.as(guest).Labels.ListLabels(project.ID, &o)
			Expect(err).NotTo(HaveOccurred())
			for _, l := range listed {
				Expect(l.IsProjectLabel).To(Equal(l.Name == "own"))
				all = append(all, l.Name)
			}
			return all
		}
		Expect(names(gitlab.ListLabelsOptions{})).To(Equal([]string{"above", "middle", "own"}))
		Expect(names(gitlab.ListLabelsOptions{IncludeAncestorGroups: gitlab.Ptr(false)})).To(Equal([]string{"middle", "own"}))
		Expect(names(gitlab.ListLabelsOptions{Search: gitlab.Ptr("Middle")})).To(Equal([]string{"middle", "own"}))
		_, r, err := d.as(guest).Labels.ListLabels(project.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).NotTo(ContainSubstring("_count"))
		_, r, err = d.as(guest).Labels.ListLabels(project.ID, &gitlab.ListLabelsOptions{WithCounts: gitlab.Ptr(true)})
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(ContainSubstring(`"open_issues_count":0,"closed_issues_count":0,"open_merge_requests_count":0`))
		Expect(answered(send(d.as(guest), fmt.Sprintf("GET projects/%d/labels/above?include_ancestor_groups=false", project.ID), ""))).To(
			Equal(`404 {"message":"404 Label Not Found"}`))
	})

	It("of groups have a priority in each project, and can be changed by those who can change the group", func() {
		p := team.project.ID
		l := d.newLabel(p, "shared")
		_, err := d.as(developer).Labels.PromoteLabel(p, l.ID)
		Expect(err).NotTo(HaveOccurred())
		_, _, err = d.as(root).ProjectMembers.AddProjectMember(p, &gitlab.AddProjectMemberOptions{
			UserID: outsider.id, AccessLevel: gitlab.Ptr(gitlab.MaintainerPermissions),
		})
		Expect(err).NotTo(HaveOccurred())
		c := d.as(outsider).Labels
		for _, priority := range []gitlab.Nullable[int64]{gitlab.NewNullableWithValue[int64](5), gitlab.NewNullableWithValue[int64](0), gitlab.NewNullNullable[int64]()} {
			changed, _, err := c.UpdateLabel(p, l.ID, &gitlab.UpdateLabelOptions{Priority: priority})
			Expect(err).NotTo(HaveOccurred())
			Expect(changed.Priority).To(Equal(priority))
			Expect(changed.IsProjectLabel).To(BeFalse())
			got, _, err := c.GetLabel(p, "shared")
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(changed))
		}
		for _, tt := range []struct{ method, body string }{{"PUT", `{"color":"blue"}`}, {"PUT", `{"priority":1,"new_name":"x"}`}, {"DELETE", ""}} {
			r := send(d.as(outsider), fmt.Sprintf("%s projects/%d/labels/%d", tt.method, p, l.ID), tt.body)
			Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`), tt.method+tt.body)
		}
		changed, _, err := d.as(developer).Labels.UpdateLabel(p, l.ID, &gitlab.UpdateLabelOptions{Color: gitlab.Ptr("blue")})
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.Color).To(Equal("#0000FF"))
		_, err = d.as(developer).Labels.DeleteLabel(p, l.ID, nil)
		Expect(err).NotTo(HaveOccurred())
	})

	It("keep their id when they are promoted, and replace labels of the same title in sibling projects", d.again(), func() {
		other := d.newProject(team.group.ID, gitlab.PrivateVisibility)
		l, sibling := d.newLabel(team.project.ID, "both"), d.newLabel(other.ID, "both")
		_, _, err := d.as(guest).Labels.SubscribeToLabel(other.ID, sibling.ID)
		Expect(err).NotTo(HaveOccurred())
		_, _, err = d.as(developer).Labels.UpdateLabel(other.ID, "both", &gitlab.UpdateLabelOptions{Priority: gitlab.NewNullableWithValue[int64](7)})
		Expect(err).NotTo(HaveOccurred())
		r, err := d.as(developer).Labels.PromoteLabel(team.project.PathWithNamespace, "both")
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal(fmt.Sprintf(`200 {"id":%d,"name":"both","description":null,"description_html":"","color":"#FF0000",`+
			`"open_issues_count":0,"closed_issues_count":0,"open_merge_requests_count":0,"subscribed":false}`, l.ID)))
		for _, p := range []int64{team.project.ID, other.ID} {
			listed, _, err := d.as(guest).Labels.ListLabels(p, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(listed).To(HaveExactElements(And(HaveField("ID", l.ID), HaveField("IsProjectLabel", false), HaveField("Subscribed", true))))
		}
		got, _, err := d.as(developer).Labels.GetLabel(other.ID, l.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Priority).To(Equal(gitlab.NewNullableWithValue[int64](7)))
		_, r, err = d.as(developer).Labels.CreateLabel(other.ID, &gitlab.CreateLabelOptions{Name: gitlab.Ptr("both"), Color: gitlab.Ptr("red")})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`409 {"message":"Label already exists"}`))
		r, err = d.as(developer).Labels.PromoteLabel(other.ID, "both")
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`400 {"message":"Failed to promote project label to group label"}`))
	})

	It("of personal projects cannot be promoted", d.again(), func() {
		p, _, err := d.as(owner).Projects.CreateProject(&gitlab.CreateProjectOptions{Name: gitlab.Ptr(fresh("mine"))})
		Expect(err).NotTo(HaveOccurred())
		_, _, err = d.as(owner).Labels.CreateLabel(p.ID, &gitlab.CreateLabelOptions{Name: gitlab.Ptr("own"), Color: gitlab.Ptr("#000")})
		Expect(err).NotTo(HaveOccurred())
		r, err := d.as(owner).Labels.PromoteLabel(p.ID, "own")
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`400 {"message":"Failed to promote project label to group label"}`))
	})

	It("can be subscribed to, once by each user", func() {
		p := team.project.ID
		l := d.newLabel(p, "news")
		subscribed := func(who *person) bool {
			GinkgoHelper()
			got, _, err := d.as(who).Labels.GetLabel(p, l.ID)
			Expect(err).NotTo(HaveOccurred())
			listed, _, err := d.as(who).Labels.ListLabels(p, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(listed[0].Subscribed).To(Equal(got.Subscribed))
			return got.Subscribed
		}
		c := d.as(guest).Labels
		for _, key := range []any{l.ID, "news"} {
			is, r, err := c.SubscribeToLabel(p, key)
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(201))
			Expect(is.Subscribed).To(BeTrue())
			Expect(subscribed(guest)).To(BeTrue())
			Expect(subscribed(owner)).To(BeFalse())
			// The client reads a body, which a response with the status 304 cannot have.
			_, r, err = c.SubscribeToLabel(p, key)
			Expect(err).To(MatchError(io.EOF))
			Expect(answered(r)).To(Equal("304"))

			r, err = c.UnsubscribeFromLabel(p, key)
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(And(HavePrefix("201"), ContainSubstring(`"subscribed":false`)))
			Expect(subscribed(guest)).To(BeFalse())
			r, err = c.UnsubscribeFromLabel(p, key)
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(Equal("304"))
		}
	})

	It("can have unusual titles", d.again(), func() {
		for _, title := range titles {
			for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
				made := d.newLabel(id, title)
				Expect(made.Name).To(Equal(title))
				got, r, err := d.as(guest).Labels.GetLabel(id, title)
				if err != nil {
					Fail(title + ": " + answered(r))
				}
				Expect(got).To(Equal(made))
				_, _, err = d.as(developer).Labels.UpdateLabel(id, title, &gitlab.UpdateLabelOptions{Description: &title})
				Expect(err).NotTo(HaveOccurred(), title)
				found, _, err := d.as(guest).Labels.ListLabels(id, &gitlab.ListLabelsOptions{Search: &title})
				Expect(err).NotTo(HaveOccurred(), title)
				Expect(found).To(ContainElement(HaveField("ID", made.ID)))
				_, _, err = d.as(guest).Labels.SubscribeToLabel(id, title)
				Expect(err).NotTo(HaveOccurred(), title)
				_, err = d.as(developer).Labels.DeleteLabel(id, title, nil)
				Expect(err).NotTo(HaveOccurred(), title)
			}
		}
	})
})
