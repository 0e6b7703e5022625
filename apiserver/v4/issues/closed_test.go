package issues_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

func TestClosesIssues_showsThoseThatCallerSees(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.create("rita", `{"title":"One"}`)
	w.create("rita", `{"title":"Secret","confidential":true}`)
	w.create("rita", `{"title":"Three"}`)
	in := place[*v1alpha1.Project](w, database.KindProject, 20)
	m := mergerequest.MergeRequest{
		In: in, Source: in, SourceBranch: "mend", TargetBranch: "main", Title: "Mend", Description: "Fixes #2, #1. Closes #9. See #3.", Author: w.user("rita"),
	}
	g.Expect(w.Activity.MergeRequests.Create(t.Context(), &m)).To(Succeed())
	const path = "/projects/20/merge_requests/1/closes_issues"
	g.Expect(w.iids("rita", path)).To(Equal("[1 2]"))
	g.Expect(w.iids("", path)).To(Equal("[1]"))
	g.Expect(w.iids("rita", path+"?per_page=1&page=2")).To(Equal("[2]"))
}
