package conformance

import (
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

var _ = throughEachDoor("Draft notes", func(d *door) {
	const missing = `404 {"message":"404 Not found"}`
	var (
		team team
		m    *gitlab.MergeRequest
		p, i int64
	)
	BeforeEach(func() {
		team = d.newTeam(gitlab.PublicVisibility)
		m = d.newReview(team)
		p, i = team.project.ID, m.IID
	})

	// draft creates a draft note of a person.
	draft := func(who *person, o gitlab.CreateDraftNoteOptions) *gitlab.DraftNote {
		GinkgoHelper()
		made, r, err := d.as(who).DraftNotes.CreateDraftNote(p, i, &o)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(http.StatusCreated))
		return made
	}
	at := func(line int64) *gitlab.PositionOptions {
		return &gitlab.PositionOptions{
			BaseSHA: &m.DiffRefs.BaseSha, StartSHA: &m.DiffRefs.StartSha, HeadSHA: &m.DiffRefs.HeadSha, PositionType: gitlab.Ptr("text"),
			OldPath: gitlab.Ptr("topic.md"), NewPath: gitlab.Ptr("topic.md"), NewLine: &line,
		}
	}

	It("are created, read, listed, changed and deleted by their authors, and hidden from all others", func() {
		c := d.as(guest).DraftNotes
		made := draft(guest, gitlab.CreateDraftNoteOptions{Note: gitlab.Ptr("Größe **eins** 😀"), CommitID: &m.SHA, Position: at(1)})
		Expect(*made).To(And(
			HaveField("AuthorID", guest.id), HaveField("MergeRequestID", m.ID), HaveField("Note", "Größe **eins** 😀"), HaveField("CommitID", m.SHA),
			HaveField("DiscussionID", ""), HaveField("ResolveDiscussion", false), HaveField("LineCode", HaveSuffix("_0_1")),
			HaveField("Position", HaveValue(And(HaveField("NewPath", "topic.md"), HaveField("NewLine", int64(1)), HaveField("PositionType", "text")))),
		))
		got, _, err := c.GetDraftNote(p, i, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(Equal(made))
		changed, r, err := c.UpdateDraftNote(p, i, made.ID, &gitlab.UpdateDraftNoteOptions{Note: gitlab.Ptr("two")})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(http.StatusOK))
		Expect(changed.Note).To(Equal("two"))
		same, _, err := c.UpdateDraftNote(p, i, made.ID, &gitlab.UpdateDraftNoteOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(same).To(Equal(changed))
		for range 20 {
			draft(guest, gitlab.CreateDraftNoteOptions{Note: gitlab.Ptr("more")})
		}
		for page, want := range map[int64]int{0: 21, 2: 1} {
			listed, _, err := c.ListDraftNotes(p, i, &gitlab.ListDraftNotesOptions{ListOptions: gitlab.ListOptions{Page: page}})
			Expect(err).NotTo(HaveOccurred())
			Expect(listed).To(HaveLen(want))
		}

		one := fmt.Sprintf("projects/%d/merge_requests/%d/draft_notes/%d", p, i, made.ID)
		for _, request := range []string{"GET " + one, "PUT " + one, "DELETE " + one, "PUT " + one + "/publish"} {
			Expect(answered(send(d.as(owner), request, ""))).To(Equal(missing), request)
			Expect(answered(send(d.as(nobody), request, ""))).To(Equal(`401 {"message":"401 Unauthorized"}`), request)
		}
		listed, _, err := d.as(owner).DraftNotes.ListDraftNotes(p, i, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(listed).To(BeEmpty())
		r, err = c.DeleteDraftNote(p, i, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
		_, r, err = c.GetDraftNote(p, i, made.ID)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(missing))
	})

	It("become notes and discussions when they are published", func() {
		thread, _, err := d.as(guest).Discussions.CreateMergeRequestDiscussion(p, i, &gitlab.CreateMergeRequestDiscussionOptions{Body: gitlab.Ptr("Why?")})
		Expect(err).NotTo(HaveOccurred())
		c := d.as(developer).DraftNotes
		single := draft(developer, gitlab.CreateDraftNoteOptions{Note: gitlab.Ptr("single")})
		draft(developer, gitlab.CreateDraftNoteOptions{Note: gitlab.Ptr("line"), Position: at(1), CommitID: &m.SHA})
		draft(developer, gitlab.CreateDraftNoteOptions{Note: gitlab.Ptr("reply"), InReplyToDiscussionID: &thread.ID, ResolveDiscussion: gitlab.Ptr(true)})
		draft(guest, gitlab.CreateDraftNoteOptions{Note: gitlab.Ptr("of the guest")})
		r, err := c.PublishDraftNote(p, i, single.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
		r, err = c.PublishDraftNote(p, i, single.ID)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(missing))
		for range 2 {
			r, err = c.PublishAllDraftNotes(p, i)
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(Equal("204"))
		}
		discussions, _, err := d.as(nobody).Discussions.ListMergeRequestDiscussions(p, i, nil)
		Expect(err).NotTo(HaveOccurred())
		by := HaveField("Author.ID", developer.id)
		Expect(discussions).To(ConsistOf(
			And(HaveField("ID", thread.ID), HaveField("Notes", HaveExactElements(
				HaveField("Body", "Why?"), And(by, HaveField("Body", "reply"), HaveField("Resolved", true), HaveField("ResolvedBy.ID", developer.id)),
			))),
			And(HaveField("IndividualNote", true), HaveField("Notes", HaveExactElements(And(by, HaveField("Body", "single"))))),
			And(HaveField("IndividualNote", false), HaveField("Notes", HaveExactElements(
				And(by, HaveField("Body", "line"), HaveField("Type", gitlab.DiffNote), HaveField("Position.NewLine", int64(1)), HaveField("CommitID", m.SHA)),
			))),
		))
	})

	It("cannot be published after their discussion is gone", func() {
		thread, _, err := d.as(guest).Discussions.CreateMergeRequestDiscussion(p, i, &gitlab.CreateMergeRequestDiscussionOptions{Body: gitlab.Ptr("Why?")})
		Expect(err).NotTo(HaveOccurred())
		made := draft(developer, gitlab.CreateDraftNoteOptions{Note: gitlab.Ptr("reply"), InReplyToDiscussionID: &thread.ID})
		_, err = d.as(guest).Discussions.DeleteMergeRequestDiscussionNote(p, i, thread.ID, thread.Notes[0].ID)
		Expect(err).NotTo(HaveOccurred())
		r, err := d.as(developer).DraftNotes.PublishAllDraftNotes(p, i)
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(fmt.Sprintf(`400 {"message":{"base":["Draft note %d: Thread to reply to cannot be found"]}}`, made.ID)))
		_, r, err = d.as(developer).DraftNotes.CreateDraftNote(p, i, &gitlab.CreateDraftNoteOptions{Note: gitlab.Ptr("again"), InReplyToDiscussionID: &thread.ID})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`400 {"message":{"base":["Thread to reply to cannot be found"]}}`))
	})
})
