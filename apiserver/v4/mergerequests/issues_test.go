package mergerequests_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/issue"
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
