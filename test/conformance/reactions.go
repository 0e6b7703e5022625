package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

var _ = throughEachDoor("Emoji reactions", func(d *door) {
	thumb := &gitlab.CreateAwardEmojiOptions{Name: "+1"}

	It("are given to issues and their notes, read and taken back", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		is, c := newItems(team), d.as(guest).AwardEmoji
		project, iid, noteID := team.project.PathWithNamespace, is.issue.IID, is.onIssue.ID
		for _, to := range []struct {
			kind   string
			id     int64
			create func() (*gitlab.AwardEmoji, *gitlab.Response, error)
			get    func(id int64) (*gitlab.AwardEmoji, *gitlab.Response, error)
			list   func() ([]*gitlab.AwardEmoji, *gitlab.Response, error)
			remove func(id int64) (*gitlab.Response, error)
		}{
			{
				"Issue", is.issue.ID,
				func() (*gitlab.AwardEmoji, *gitlab.Response, error) {
					return c.CreateIssueAwardEmoji(project, iid, thumb)
				},
				func(id int64) (*gitlab.AwardEmoji, *gitlab.Response, error) {
					return c.GetIssueAwardEmoji(project, iid, id)
				},
				func() ([]*gitlab.AwardEmoji, *gitlab.Response, error) {
					return c.ListIssueAwardEmoji(project, iid, nil)
				},
				func(id int64) (*gitlab.Response, error) { return c.DeleteIssueAwardEmoji(project, iid, id) },
			},
			{
				"Note", noteID,
				func() (*gitlab.AwardEmoji, *gitlab.Response, error) {
					return c.CreateIssuesAwardEmojiOnNote(project, iid, noteID, thumb)
				},
				func(id int64) (*gitlab.AwardEmoji, *gitlab.Response, error) {
					return c.GetIssuesAwardEmojiOnNote(project, iid, noteID, id)
				},
				func() ([]*gitlab.AwardEmoji, *gitlab.Response, error) {
					return c.ListIssuesAwardEmojiOnNote(project, iid, noteID, nil)
				},
				func(id int64) (*gitlab.Response, error) {
					return c.DeleteIssuesAwardEmojiOnNote(project, iid, noteID, id)
				},
			},
		} {
			made, r, err := to.create()
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(http.StatusCreated))
			Expect(made.ID).NotTo(BeZero())
			Expect(made.Name).To(Equal("thumbsup"))
			Expect(made.User).To(And(HaveField("ID", guest.id), HaveField("Username", "guest")))
			Expect(made.CreatedAt).To(HaveValue(BeTemporally("~", time.Now(), time.Minute)))
			Expect(made.UpdatedAt).To(Equal(made.CreatedAt))
			Expect(made.AwardableID).To(Equal(to.id))
			Expect(made.AwardableType).To(Equal(to.kind))
			_, r, err = to.create()
			Expect(err).To(MatchError(gitlab.ErrNotFound))
			Expect(answered(r)).To(Equal(`404 {"message":"404 Award Emoji Name has already been taken Not Found"}`))

			got, _, err := to.get(made.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(made))
			listed, _, err := to.list()
			Expect(err).NotTo(HaveOccurred())
			Expect(listed).To(HaveExactElements(Equal(made)))

			r, err = to.remove(made.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(Equal("204"))
			_, r, err = to.get(made.ID)
			Expect(err).To(MatchError(gitlab.ErrNotFound))
			Expect(answered(r)).To(Equal(`404 {"message":"404 Not found"}`))
		}
	})

	It("are given to epics and their notes, read and taken back", func() {
		team := d.newTeam(gitlab.PublicVisibility)
		is := newItems(team)
		for path, id := range map[string]int64{is.epicPath(): is.epic.ID, fmt.Sprintf("%s/notes/%d", is.epicPath(), is.onEpic.ID): is.onEpic.ID} {
			path += "/award_emoji"
			r := send(d.as(guest), "POST "+path, `{"name":"tada"}`)
			Expect(r.StatusCode).To(Equal(http.StatusCreated))
			var made gitlab.AwardEmoji
			Expect(json.Unmarshal([]byte(r.Body.(*kept).text), &made)).To(Succeed())
			Expect(made).To(And(HaveField("Name", "tada"), HaveField("AwardableID", id)))
			one := fmt.Sprintf("%s/%d", path, made.ID)
			Expect(d.get(one).Body.(*kept).text).To(MatchJSON(r.Body.(*kept).text))
			Expect(d.get(path).Body.(*kept).text).To(MatchJSON("[" + r.Body.(*kept).text + "]"))
			Expect(answered(send(d.as(owner), "DELETE "+one, ""))).To(Equal(`401 {"message":"401 Unauthorized"}`))
			Expect(answered(send(d.as(guest), "DELETE "+one, ""))).To(Equal("204"))
		}
	})

	It("can be given by everybody who sees the item, and taken back by the giver and administrators", d.again(), func() {
		open, hidden := d.newTeam(gitlab.PublicVisibility), d.newTeam(gitlab.PrivateVisibility)
		shown, secret := newItems(open), newItems(hidden)
		given, _, err := d.as(outsider).AwardEmoji.CreateIssueAwardEmoji(open.project.ID, shown.issue.IID, thumb)
		Expect(err).NotTo(HaveOccurred())
		seen := fmt.Sprintf("projects/%d/issues/%d/award_emoji", open.project.ID, shown.issue.IID)
		unseen := fmt.Sprintf("projects/%d/issues/%d/award_emoji", hidden.project.ID, secret.issue.IID)
		const signIn, noProject = `401 {"message":"401 Unauthorized"}`, `404 {"message":"404 Project Not Found"}`
		for _, tt := range []struct {
			as                  *person
			request, body, want string
		}{
			{nobody, "POST " + seen, `{"name":"tada"}`, signIn},
			{nobody, fmt.Sprintf("DELETE %s/%d", seen, given.ID), "", signIn},
			{nobody, "GET " + unseen, "", noProject},
			{nobody, "POST " + unseen, `{"name":"tada"}`, noProject},
			{outsider, "POST " + unseen, `{"name":"tada"}`, noProject},
			{outsider, "DELETE " + unseen + "/1", "", noProject},
			{guest, "POST " + seen, `{}`, `400 {"error":"name is missing"}`},
			{guest, "POST " + seen, `{"name":"unheard-of"}`, `404 {"message":"404 Award Emoji Name is not a valid emoji name Not Found"}`},
			{guest, fmt.Sprintf("DELETE %s/9999", seen), "", `404 {"message":"404 Not found"}`},
			{owner, fmt.Sprintf("DELETE %s/%d", seen, given.ID), "", signIn},
			{root, fmt.Sprintf("DELETE %s/%d", seen, given.ID), "", "204"},
		} {
			Expect(answered(send(d.as(tt.as), tt.request, tt.body))).To(Equal(tt.want), "%s as %s", tt.request, tt.as.name)
		}
	})
})
