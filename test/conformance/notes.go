package conformance

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

var _ = throughEachDoor("Notes", func(d *door) {
	var (
		team  team
		issue *gitlab.Issue
		epic  *gitlab.Epic
	)
	BeforeEach(func() {
		team = d.newTeam(gitlab.PublicVisibility)
		var err error
		issue, _, err = d.as(developer).Issues.CreateIssue(team.project.ID, &gitlab.CreateIssueOptions{Title: gitlab.Ptr("Broken")})
		Expect(err).NotTo(HaveOccurred())
		epic, _, err = d.as(developer).Epics.CreateEpic(team.group.ID, &gitlab.CreateEpicOptions{Title: gitlab.Ptr("Big")})
		Expect(err).NotTo(HaveOccurred())
	})

	It("on issues are created, read, listed, changed and deleted", func() {
		p, i, c := team.project.ID, issue.IID, d.as(guest).Notes
		made, r, err := c.CreateIssueNote(p, i, &gitlab.CreateIssueNoteOptions{Body: gitlab.Ptr("Größe **eins** 😀")})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(made.Author.ID).To(Equal(guest.id))
		Expect(made.CreatedAt).To(Equal(made.UpdatedAt))
		Expect(*made).To(And(
			HaveField("Body", "Größe **eins** 😀"), HaveField("Type", gitlab.NoteTypeValue("")), HaveField("NoteableType", "Issue"),
			HaveField("NoteableID", issue.ID), HaveField("NoteableIID", i), HaveField("ProjectID", p), HaveField("System", false),
		))
		got, _, err := d.as(nobody).Notes.GetIssueNote(p, i, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(Equal(made))

		changed, r, err := d.as(maintainer).Notes.UpdateIssueNote(p, i, made.ID, &gitlab.UpdateIssueNoteOptions{Body: gitlab.Ptr("two")})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(200))
		Expect(changed.Body).To(Equal("two"))
		_, r, err = d.as(developer).Notes.UpdateIssueNote(p, i, made.ID, &gitlab.UpdateIssueNoteOptions{Body: gitlab.Ptr("three")})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`))

		at := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
		_, _, err = d.as(owner).Notes.CreateIssueNote(p, i, &gitlab.CreateIssueNoteOptions{Body: gitlab.Ptr("old"), CreatedAt: &at, Internal: gitlab.Ptr(true)})
		Expect(err).NotTo(HaveOccurred())
		for who, want := range map[*person][]string{developer: {"old", "two"}, guest: {"two"}} {
			listed, r, err := d.as(who).Notes.ListIssueNotes(p, i, &gitlab.ListIssueNotesOptions{Sort: gitlab.Ptr("asc"), OrderBy: gitlab.Ptr("created_at")})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.TotalItems).To(BeEquivalentTo(len(want)))
			var bodies []string
			for _, n := range listed {
				bodies = append(bodies, n.Body)
				Expect(n.Internal).To(Equal(n.Body == "old"))
			}
			Expect(bodies).To(Equal(want))
		}

		r, err = c.DeleteIssueNote(p, i, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
		_, r, err = c.GetIssueNote(p, i, made.ID)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(`404 {"message":"404 Not found"}`))
	})

	It("on epics are created, read, listed, changed and deleted", func() {
		g, e, c := team.group.ID, epic.ID, d.as(guest).Notes
		made, _, err := c.CreateEpicNote(g, e, &gitlab.CreateEpicNoteOptions{Body: gitlab.Ptr("one")})
		Expect(err).NotTo(HaveOccurred())
		Expect(*made).To(And(HaveField("NoteableType", "Epic"), HaveField("NoteableID", epic.ID), HaveField("ProjectID", BeZero())))
		got, _, err := d.as(nobody).Notes.GetEpicNote(g, e, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(Equal(made))
		listed, _, err := d.as(nobody).Notes.ListEpicNotes(g, e, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(listed).To(HaveExactElements(Equal(made)))
		changed, _, err := c.UpdateEpicNote(g, e, made.ID, &gitlab.UpdateEpicNoteOptions{Body: gitlab.Ptr("two")})
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.Body).To(Equal("two"))
		r, err := c.DeleteEpicNote(g, e, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
	})

	It("form discussions on issues", func() {
		p, i, c := team.project.ID, issue.IID, d.as(guest).Discussions
		made, r, err := c.CreateIssueDiscussion(p, i, &gitlab.CreateIssueDiscussionOptions{Body: gitlab.Ptr("one")})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(made.ID).To(MatchRegexp("^[0-9a-f]{40}$"))
		Expect(made.IndividualNote).To(BeFalse())
		Expect(made.Notes).To(HaveExactElements(And(HaveField("Body", "one"), HaveField("Type", gitlab.DiscussionNote), HaveField("Resolvable", false))))
		reply, r, err := d.as(outsider).Discussions.AddIssueDiscussionNote(p, i, made.ID, &gitlab.AddIssueDiscussionNoteOptions{Body: gitlab.Ptr("two")})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		changed, _, err := d.as(outsider).Discussions.UpdateIssueDiscussionNote(p, i, made.ID, reply.ID, &gitlab.UpdateIssueDiscussionNoteOptions{Body: gitlab.Ptr("three")})
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.Body).To(Equal("three"))
		got, _, err := d.as(nobody).Discussions.GetIssueDiscussion(p, i, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Notes).To(HaveExactElements(Equal(made.Notes[0]), Equal(changed)))

		single, _, err := d.as(guest).Notes.CreateIssueNote(p, i, &gitlab.CreateIssueNoteOptions{Body: gitlab.Ptr("single")})
		Expect(err).NotTo(HaveOccurred())
		listed, _, err := c.ListIssueDiscussions(p, i, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(listed).To(HaveExactElements(Equal(got), And(HaveField("IndividualNote", true), HaveField("Notes", HaveExactElements(Equal(single))))))

		at := fmt.Sprintf("projects/%d/issues/%d/discussions/%s", p, i, made.ID)
		Expect(answered(send(d.as(owner), "PUT "+at, `{"resolved":true}`))).To(Equal(`403 {"message":"403 Forbidden"}`))
		Expect(answered(send(d.as(owner), fmt.Sprintf("PUT %s/notes/%d", at, reply.ID), `{"resolved":true}`))).To(
			Equal(`400 {"message":"400 Bad request - Note is not resolvable"}`))
		r, err = d.as(outsider).Discussions.DeleteIssueDiscussionNote(p, i, made.ID, reply.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
	})

	It("form discussions on epics", func() {
		g, e, c := team.group.ID, epic.ID, d.as(guest).Discussions
		made, _, err := c.CreateEpicDiscussion(g, e, &gitlab.CreateEpicDiscussionOptions{Body: gitlab.Ptr("one")})
		Expect(err).NotTo(HaveOccurred())
		reply, _, err := c.AddEpicDiscussionNote(g, e, made.ID, &gitlab.AddEpicDiscussionNoteOptions{Body: gitlab.Ptr("two")})
		Expect(err).NotTo(HaveOccurred())
		changed, _, err := c.UpdateEpicDiscussionNote(g, e, made.ID, reply.ID, &gitlab.UpdateEpicDiscussionNoteOptions{Body: gitlab.Ptr("three")})
		Expect(err).NotTo(HaveOccurred())
		got, _, err := d.as(nobody).Discussions.GetEpicDiscussion(g, e, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Notes).To(HaveExactElements(Equal(made.Notes[0]), Equal(changed)))
		listed, _, err := c.ListGroupEpicDiscussions(g, e, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(listed).To(HaveExactElements(Equal(got)))
		r, err := c.DeleteEpicDiscussionNote(g, e, made.ID, reply.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
	})

	It("need an account, and membership while the issue is locked", func() {
		at := fmt.Sprintf("projects/%d/issues/%d/notes", team.project.ID, issue.IID)
		Expect(answered(send(d.as(nobody), "POST "+at, `{"body":"x"}`))).To(Equal(`401 {"message":"401 Unauthorized"}`))
		Expect(answered(send(d.as(outsider), "POST "+at, `{}`))).To(Equal(`400 {"error":"body is missing"}`))
		Expect(answered(send(d.as(outsider), "POST "+at, `{"body":" "}`))).To(Equal(`400 {"message":{"note":["can't be blank"]}}`))
		_, _, err := d.as(developer).Issues.UpdateIssue(team.project.ID, issue.IID, &gitlab.UpdateIssueOptions{DiscussionLocked: gitlab.Ptr(true)})
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(send(d.as(outsider), "POST "+at, `{"body":"x"}`))).To(Equal(`403 {"message":"403 Forbidden"}`))
		Expect(answered(send(d.as(guest), "POST "+at, `{"body":"x"}`))).To(HavePrefix("201 "))
	})
})
