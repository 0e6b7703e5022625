package conformance

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

var _ = throughEachDoor("Epics", func(d *door) {
	var team team
	BeforeEach(func() { team = d.newTeam(gitlab.PrivateVisibility) })

	It("are created, read, changed and removed", func() {
		d.newLabel(team.project.ID, "bug")
		_, err := d.as(maintainer).Labels.PromoteLabel(team.project.ID, "bug")
		Expect(err).NotTo(HaveOccurred())
		c := d.as(developer).Epics
		made, r, err := c.CreateEpic(team.group.ID, &gitlab.CreateEpicOptions{
			Title: gitlab.Ptr("Search"), Description: gitlab.Ptr("Fast"), Labels: &gitlab.LabelOptions{"bug", "unknown"},
			StartDateIsFixed: gitlab.Ptr(true), StartDateFixed: inJune(1), DueDateIsFixed: gitlab.Ptr(true), DueDateFixed: inJune(30),
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(made.Author).To(HaveField("ID", developer.id))
		Expect(*made).To(Equal(gitlab.Epic{
			ID: made.ID, IID: 1, GroupID: team.group.ID, Title: "Search", Description: "Fast", State: "opened", Labels: []string{"bug"}, Author: made.Author,
			WebURL: team.group.WebURL + "/-/epics/1", URL: "/groups/" + team.group.FullPath + "/-/epics/1",
			StartDate: inJune(1), StartDateIsFixed: true, StartDateFixed: inJune(1), DueDate: inJune(30), DueDateIsFixed: true, DueDateFixed: inJune(30),
			CreatedAt: made.CreatedAt, UpdatedAt: made.CreatedAt,
		}))
		for _, id := range []any{team.group.ID, team.group.FullPath} {
			got, _, err := d.as(guest).Epics.GetEpic(id, made.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(made))
		}
		closed, r, err := c.UpdateEpic(team.group.ID, made.ID, &gitlab.UpdateEpicOptions{
			Title: gitlab.Ptr("Find"), RemoveLabels: &gitlab.LabelOptions{"bug"}, DueDateFixed: gitlab.Ptr(gitlab.ISOTime{}), StateEvent: gitlab.Ptr("close"),
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(200))
		Expect(closed).To(And(HaveField("Title", "Find"), HaveField("State", "closed"), HaveField("Labels", BeEmpty()), HaveField("DueDate", BeNil()),
			HaveField("ClosedAt", Not(BeNil())), HaveField("UserNotesCount", BeZero())))
		reopened, _, err := c.UpdateEpic(team.group.ID, made.ID, &gitlab.UpdateEpicOptions{StateEvent: gitlab.Ptr("reopen"), AddLabels: &gitlab.LabelOptions{"bug"}})
		Expect(err).NotTo(HaveOccurred())
		Expect(reopened).To(And(HaveField("State", "opened"), HaveField("Labels", HaveExactElements("bug")), HaveField("ClosedAt", BeNil())))

		r, err = c.DeleteEpic(team.group.ID, made.ID)
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`))
		r, err = d.as(owner).Epics.DeleteEpic(team.group.ID, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
		_, r, err = c.GetEpic(team.group.ID, made.ID)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(`404 {"message":"404 Epic Not Found"}`))
	})

	It("are listed by filters, without the confidential ones of others", func() {
		add := func(title string, confidential bool) *gitlab.Epic {
			GinkgoHelper()
			e, _, err := d.as(developer).Epics.CreateEpic(team.group.ID, &gitlab.CreateEpicOptions{Title: &title, Confidential: &confidential})
			Expect(err).NotTo(HaveOccurred())
			return e
		}
		first, second, secret := add("First", false), add("Second", false), add("Secret", true)
		list := func(p *person, o gitlab.ListGroupEpicsOptions) []*gitlab.Epic {
			GinkgoHelper()
			listed, _, err := d.as(p).Epics.ListGroupEpics(team.group.ID, &o)
			Expect(err).NotTo(HaveOccurred())
			return listed
		}
		Expect(list(guest, gitlab.ListGroupEpicsOptions{})).To(HaveExactElements(second, first))
		Expect(list(developer, gitlab.ListGroupEpicsOptions{})).To(HaveExactElements(secret, second, first))
		Expect(list(guest, gitlab.ListGroupEpicsOptions{
			AuthorID: &developer.id, State: gitlab.Ptr("opened"), Search: gitlab.Ptr("FIRST"), OrderBy: gitlab.Ptr("title"), Sort: gitlab.Ptr("asc"),
			CreatedAfter: first.CreatedAt, UpdatedBefore: gitlab.Ptr(second.UpdatedAt.Add(time.Second)), // the client sends whole seconds
		})).To(HaveExactElements(first))
		_, r, err := d.as(guest).Epics.GetEpic(team.group.ID, secret.ID)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(`404 {"message":"404 Epic Not Found"}`))
	})
})
