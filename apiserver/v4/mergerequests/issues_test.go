package mergerequests_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/note"
	"github.com/forgeplane/forgeplane/internal/stateevent"
)

func TestClosedBy_listsMergeRequestsThatMentionIssue(t *testing.T) {
	g, w := NewWithT(t), newWriteWorld(t)
	web := &v1alpha1.Project{}
	w.Refer(web, "acme/web")
	in := database.Subject{Kind: database.KindProject, ID: 20, UID: web.UID}
	for _, confidential := range []bool{false, true} {
		g.Expect(w.Activity.Issues.Create(t.Context(), &issue.Issue{In: in, Title: "Slow", Type: "issue", Author: w.UserRow("mary"), Confidential: confidential})).To(Succeed())
	}
	for n, description := range []string{"Closes #1, #2", "See #1", "fixes acme/web#1"} {
		w.ask(fmt.Sprint("search-", n))
		w.done("dev", fmt.Sprintf("PUT %s/%d", toWeb, n+1), fmt.Sprintf(`{"description":%q}`, description))
	}
	list := func(as, path string) (iids []int64) {
		t.Helper()
		a := w.As(as, "GET /projects/20/issues/"+path, "")
		g.Expect(a.Code).To(Equal(200), a.Body)
		for _, m := range familytest.Decode[[]asked](t, a) {
			iids = append(iids, m.IID)
		}
		return iids
	}
	g.Expect(list("", "1/closed_by")).To(Equal([]int64{1}))
	g.Expect(list("", "1/related_merge_requests")).To(Equal([]int64{1, 2}))
	g.Expect(list("", "1/related_merge_requests?per_page=1&page=2")).To(Equal([]int64{2}))
	g.Expect(list("dev", "2/closed_by")).To(Equal([]int64{1}))
	g.Expect(w.As("otto", "GET /projects/20/issues/2/closed_by", "").Code).To(Equal(404), "confidential")
	w.done("dev", "PUT "+oneWeb, `{"description":"Nothing"}`)
	g.Expect(list("", "1/closed_by")).To(BeEmpty())

	web.Spec.Features.Repository = v1alpha1.FeatureDisabled
	g.Expect(w.Client.Update(t.Context(), web)).To(Succeed())
	g.Expect(list("dev", "1/related_merge_requests")).To(BeEmpty(), "without a repository")
}

// issue makes an open issue of web.
func (w gitWorld) issue() issue.Issue {
	w.t.Helper()
	i := issue.Issue{In: w.ProjectRow(20), Title: "Broken", Author: w.UserRow("rita")}
	if err := w.Activity.Issues.Create(w.t.Context(), &i); err != nil {
		w.t.Fatal(err)
	}
	return i
}

// reread returns an issue as it is now.
func (w gitWorld) reread(i issue.Issue) issue.Issue {
	w.t.Helper()
	now, err := w.Activity.Issues.WithID(w.t.Context(), i.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return now
}

func TestMerge_closesIssuesOnDefaultBranch(t *testing.T) {
	closing := func(m *mergerequest.MergeRequest) { m.Description = "Fixes #2, #1 and #99. See #3." }
	for name, merge := range map[string]struct {
		into string
		do   func(w gitWorld, m mergerequest.MergeRequest)
		by   string // the user who closes the issues; empty if they stay open
	}{
		"merged": {"main", func(w gitWorld, m mergerequest.MergeRequest) {
			w.done("dora", "PUT /projects/20/merge_requests/1/merge", "")
		}, "dora"},
		"merged by a push": {"main", func(w gitWorld, m mergerequest.MergeRequest) {
			w.get(m)
			w.pushes(1, map[string]string{"main": w.head("topic")})
		}, "mary"},
		"merged into another": {"stable", func(w gitWorld, m mergerequest.MergeRequest) {
			w.done("dora", "PUT /projects/20/merge_requests/1/merge", "")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, w := NewWithT(t), newGitWorld(t, branched(t))
			first, second, mentioned := w.issue(), w.issue(), w.issue()
			_, err := w.Activity.Issues.Update(t.Context(), second.In.UID, second.IID, func(i *issue.Issue) error {
				i.Close(w.UserRow("rita"), w.Clock.Now())
				return nil
			})
			g.Expect(err).NotTo(HaveOccurred())
			m := w.request(20, "topic", merge.into, closing)
			merge.do(w, m)
			g.Expect(w.read(m).State).To(Equal(mergerequest.Merged))
			g.Expect(w.reread(mentioned).State).To(Equal(issue.Opened))
			g.Expect(w.reread(second).Closer).To(Equal(w.UserRow("rita")), "it was closed before")
			events, _, err := w.Activity.StateEvents.List(t.Context(), first.Item(), 0, 10)
			g.Expect(err).NotTo(HaveOccurred())
			if merge.by == "" {
				g.Expect(w.reread(first).State).To(Equal(issue.Opened))
				g.Expect(events).To(BeEmpty())
				return
			}
			g.Expect(w.reread(first)).To(And(HaveField("State", issue.Closed), HaveField("Closer", w.UserRow(merge.by)), HaveField("ClosedAt", Not(BeZero()))))
			g.Expect(events).To(ConsistOf(And(HaveField("State", stateevent.Closed), HaveField("MergeRequestID", m.ID), HaveField("User", w.UserRow(merge.by)))))
			notes, _, err := w.Activity.Notes.List(t.Context(), first.Item(), note.Query{Kinds: note.System, Limit: 10})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(notes).To(ConsistOf(HaveField("Body", "closed via merge request !1")))
		})
	}
}
