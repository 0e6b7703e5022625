package notes_test

import (
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/note"
)

const onMergeRequest = " /projects/20/merge_requests/1"

// settled is a note of a discussion that can be resolved.
type settled struct {
	ID           int64
	Type         *string
	NoteableType string `json:"noteable_type"`
	NoteableIID  int64  `json:"noteable_iid"`
	Resolvable   bool
	Resolved     bool
	ResolvedAt   *string                    `json:"resolved_at"`
	ResolvedBy   *struct{ Username string } `json:"resolved_by"`
}

func TestNote_onMergeRequest(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	n := w.write(t, "otto", onMergeRequest, `{"body":"one"}`)
	one := fmt.Sprintf("%s/notes/%d", onMergeRequest, n.ID)
	g.Expect(familytest.Decode[settled](t, w.As("", "GET"+one, ""))).To(Equal(settled{ID: n.ID, NoteableType: "MergeRequest", NoteableIID: 1}))
	g.Expect(w.Activity.MergeRequests.Get(t.Context(), w.mergeRequest.In.UID, 1)).To(HaveField("Updated", BeTemporally("==", w.Clock.Now())))
	g.Expect(w.As("otto", "PUT"+one, `{"body":"two"}`).Code).To(Equal(http.StatusOK))
	g.Expect(familytest.Decode[[]said](t, w.As("", "GET"+onMergeRequest+"/notes", ""))).To(HaveExactElements(HaveField("Body", "two")))
	for _, tt := range []struct{ as, request, want string }{
		{"", "POST" + onMergeRequest + "/notes", signIn}, {"rick", "PUT" + one, forbidden}, {"rick", "DELETE" + one, forbidden}, {"otto", "DELETE" + one, "204"},
		{"otto", "GET /projects/20/merge_requests/9/notes", noNote}, {"otto", "POST /projects/20/merge_requests/9/notes", noNote},
		{"otto", "GET /projects/21/merge_requests/1/notes", `404 {"message":"404 Project Not Found"}`},
	} {
		g.Expect(w.As(tt.as, tt.request, `{"body":"x"}`).String()).To(Equal(tt.want), tt.as+" "+tt.request)
	}
}

func TestDiscussion_ofMergeRequestIsResolved(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	d := w.begin(t, "otto", onMergeRequest, "Why?")
	type resolvable struct{ Notes []settled }
	thread := onMergeRequest + "/discussions/" + d.ID
	get := func() settled { return familytest.Decode[resolvable](t, w.As("", "GET"+thread, "")).Notes[0] }
	g.Expect(get()).To(And(HaveField("Resolvable", true), HaveField("Resolved", false), HaveField("Type", HaveValue(Equal("DiscussionNote")))))
	one := fmt.Sprintf("%s/notes/%d", thread, d.Notes[0].ID)
	for _, tt := range []struct {
		as string
		is int
	}{{"", 401}, {"rick", 403}, {"dan", 200}, {"otto", 200}, {"ann", 200}} {
		for _, at := range []string{thread, one} {
			g.Expect(w.As(tt.as, "PUT"+at, `{"resolved":true}`).Code).To(Equal(tt.is), tt.as+at)
			if tt.is != 200 {
				g.Expect(get().Resolved).To(BeFalse())
				continue
			}
			g.Expect(get()).To(And(HaveField("Resolved", true), HaveField("ResolvedBy.Username", tt.as), HaveField("ResolvedAt", Not(BeNil()))))
			g.Expect(w.As("ann", "POST"+thread+"/notes", `{"body":"Because."}`).Body).To(ContainSubstring(`"resolved":true`))
			g.Expect(w.As(tt.as, "PUT"+at, `{"resolved":false}`).Code).To(Equal(200))
			g.Expect(get()).To(And(HaveField("Resolved", false), HaveField("ResolvedBy", BeNil()), HaveField("ResolvedAt", BeNil())))
		}
	}
	reply := familytest.Decode[said](t, w.As("rick", "POST"+thread+"/notes", `{"body":"Done."}`))
	g.Expect(w.As("rick", fmt.Sprintf("PUT%s/notes/%d", thread, reply.ID), `{"resolved":true}`).Code).To(Equal(403), "a reply is not enough")
	single := note.Note{In: w.mergeRequest.In, On: w.mergeRequest.Item(), Author: w.otto, Body: "single", Individual: true}
	g.Expect(w.Activity.Notes.Create(t.Context(), &single)).To(Succeed())
	g.Expect(w.As("dan", "PUT"+onMergeRequest+"/discussions/"+single.Discussion, `{"resolved":true}`).Code).To(Equal(403), "an individual note")
}

func TestLockedMergeRequest_isForMembers(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	d := w.begin(t, "otto", onMergeRequest, "Why?")
	thread := onMergeRequest + "/discussions/" + d.ID
	one := fmt.Sprintf("%s/notes/%d", thread, d.Notes[0].ID)
	_, err := w.Activity.MergeRequests.Update(t.Context(), w.mergeRequest.In.UID, 1, func(m *mergerequest.MergeRequest) error {
		m.DiscussionLocked = ptr.To(true)
		return nil
	})
	g.Expect(err).NotTo(HaveOccurred())
	for _, tt := range []struct{ request, body string }{
		{"POST" + onMergeRequest + "/notes", `{"body":"x"}`}, {"POST" + thread + "/notes", `{"body":"x"}`},
		{"PUT" + one, `{"body":"x"}`}, {"PUT" + one, `{"resolved":true}`}, {"PUT" + thread, `{"resolved":true}`}, {"DELETE" + one, ""},
	} {
		g.Expect(w.As("otto", tt.request, tt.body).String()).To(Equal(forbidden), tt.request)
	}
	g.Expect(w.As("ann", "PUT"+thread, `{"resolved":true}`).Code).To(Equal(200))
	w.write(t, "ann", onMergeRequest, `{"body":"of a member"}`)
}
