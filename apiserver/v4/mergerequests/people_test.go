package mergerequests_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/note"
)

// note writes a note on a merge request of acme/web.
func (w writeWorld) note(on asked, by string) {
	w.t.Helper()
	n := note.Note{
		In: w.ProjectRow(20), On: database.Item{Kind: mergerequest.Kind, ID: on.ID}, Body: "Good", Author: w.UserRow(by),
	}
	if err := w.Activity.Notes.Create(w.t.Context(), &n); err != nil {
		w.t.Fatal(err)
	}
}

func TestSubscription_followsFromPartUnlessChosen(t *testing.T) {
	g, w := NewWithT(t), newWriteWorld(t)
	m := w.ask("search")
	w.done("dev", "PUT "+oneWeb, `{"assignee_ids":[4],"reviewer_ids":[2]}`)
	w.note(m, "otto")
	for as, want := range map[string]bool{"dev": true, "gus": true, "mary": true, "otto": true, "root": false, "": false} {
		got := w.done(as, "GET "+oneWeb, "").Subscribed
		g.Expect(got).To(Equal(want), as)
		if as == "" {
			continue
		}
		on, off := "POST "+oneWeb+"/subscribe", "POST "+oneWeb+"/unsubscribe"
		if !want {
			on, off = off, on
		}
		g.Expect(w.As(as, on, "").String()).To(Equal("304"), as)
		a := w.As(as, off, "")
		g.Expect(a.Code).To(Equal(201), a.Body)
		g.Expect(familytest.Decode[asked](t, a).Subscribed).To(Equal(!want), as)
		g.Expect(w.As(as, off, "").String()).To(Equal("304"), as)
		g.Expect(w.done(as, on, "").Subscribed).To(Equal(want), as)
	}
	g.Expect(w.As("", "POST "+oneWeb+"/subscribe", "").Code).To(Equal(401))
}

func TestParticipants_includeAuthorAssigneesAndWriters(t *testing.T) {
	g, w := NewWithT(t), newWriteWorld(t)
	m := w.ask("search")
	w.done("dev", "PUT "+oneWeb, `{"assignee_ids":[4,3],"reviewer_ids":[2]}`)
	w.note(m, "otto")
	w.note(m, "gus")
	get := func(query string) []askedUser {
		t.Helper()
		a := w.As("", "GET "+oneWeb+"/participants"+query, "")
		g.Expect(a.Code).To(Equal(200), a.Body)
		return familytest.Decode[[]askedUser](t, a)
	}
	g.Expect(get("")).To(Equal([]askedUser{{"dev"}, {"gus"}, {"mary"}, {"otto"}}))
	g.Expect(get("?per_page=3&page=2")).To(Equal([]askedUser{{"otto"}}))
}

func TestReviewers_haveApprovedOrNot(t *testing.T) {
	g, w := NewWithT(t), newWriteWorld(t)
	m := w.ask("search")
	w.done("dev", "PUT "+oneWeb, `{"reviewer_ids":[4,2,3]}`)
	for _, by := range []string{"mary", "dev"} { // the approval of the author does not count
		g.Expect(w.Activity.MergeRequests.Approve(t.Context(), m.ID, w.UserRow(by))).To(BeTrue())
	}
	type reviewer struct {
		User      askedUser
		State     string
		CreatedAt *string `json:"created_at"`
	}
	g.Expect(familytest.Decode[[]reviewer](t, w.As("", "GET "+oneWeb+"/reviewers", ""))).To(ConsistOf(
		reviewer{User: askedUser{"dev"}, State: "unreviewed"}, reviewer{User: askedUser{"gus"}, State: "unreviewed"}, reviewer{User: askedUser{"mary"}, State: "approved"}))
}

func TestFirstContribution_isTrueForStrangerBeforeMerge(t *testing.T) {
	g, w := NewWithT(t), newWriteWorld(t)
	g.Expect(w.fromFork("").First).To(BeTrue())
	g.Expect(w.ask("search").First).To(BeFalse())
	w.merge(1)
	g.Expect(w.done("otto", "POST /projects/22/merge_requests", `{"title":"More","source_branch":"more","target_branch":"main","target_project_id":20}`).First).To(BeFalse())
}

func TestTimes_areEstimatedAndSpent(t *testing.T) {
	g, w := NewWithT(t), newWriteWorld(t)
	w.ask("search")
	const invalid = `400 {"error":"duration is invalid"}`
	stats := func(estimate, spent int, humanEstimate, humanSpent string) string {
		return fmt.Sprintf(`{"time_estimate":%d,"total_time_spent":%d,"human_time_estimate":%s,"human_total_time_spent":%s}`, estimate, spent, humanEstimate, humanSpent)
	}
	for _, tt := range []struct{ as, path, body, want string }{
		{"dev", "/time_estimate", `{"duration":"3h30m"}`, `200 ` + stats(12600, 0, `"3h 30m"`, "null")},
		{"dev", "/add_spent_time", `{"duration":"1w","summary":"all of it"}`, `201 ` + stats(12600, 144000, `"3h 30m"`, `"1w"`)},
		{"dev", "/add_spent_time", `{"duration":"-1d"}`, `201 ` + stats(12600, 115200, `"3h 30m"`, `"4d"`)},
		{"dev", "/add_spent_time", `{"duration":"-1w"}`, `400 {"message":{"base":["Time to subtract exceeds the total time spent"]}}`},
		{"dev", "/add_spent_time", `{"duration":"0h"}`, invalid},
		{"dev", "/add_spent_time", `{"duration":"soon"}`, invalid},
		{"dev", "/time_estimate", `{"duration":"-1h"}`, invalid},
		{"dev", "/time_estimate", `{}`, `400 {"error":"duration is missing"}`},
		{"gus", "/time_estimate", `{"duration":"1h"}`, `403 {"message":"403 Forbidden"}`},
		{"dev", "/reset_spent_time", ``, `200 ` + stats(12600, 0, `"3h 30m"`, "null")},
		{"dev", "/reset_time_estimate", ``, `200 ` + stats(0, 0, "null", "null")},
	} {
		got := w.As(tt.as, "POST "+oneWeb+tt.path, tt.body)
		g.Expect(got.String()).To(Equal(tt.want), "%+v", tt)
	}
	w.done("dev", "POST "+oneWeb+"/time_estimate", `{"duration":"2d"}`)
	g.Expect(w.As("", "GET "+oneWeb+"/time_stats", "").String()).To(Equal("200 " + stats(57600, 0, `"2d"`, "null")))
	g.Expect(w.As("", "GET "+oneWeb, "").Body).To(ContainSubstring(`"human_time_estimate":"2d"`))
}
