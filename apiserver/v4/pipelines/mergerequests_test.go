package pipelines_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/pipelines"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// openFrom creates a merge request from the branch work of web into a project.
func (w world) openFrom(into int64, branch string, labels ...database.Label) {
	w.t.Helper()
	m := mergerequest.MergeRequest{
		In: w.ProjectRow(into), Source: w.ProjectRow(20), SourceBranch: "work", TargetBranch: branch, Title: "Work", Author: w.UserRow("dora"), Labels: labels,
	}
	w.Expect(w.Activity.MergeRequests.Create(w.t.Context(), &m)).To(Succeed())
}

// pushWork pushes a commit with a configuration to the branch work.
func (w world) pushWork(message, configuration string) {
	w.t.Helper()
	sha := w.commit(message, configuration)
	w.web.Git(w.t, "update-ref", "refs/heads/work", sha)
	w.pushes(update.Ref{Name: "refs/heads/work", New: sha})
}

func (w world) list() []pipelines.Pipeline {
	w.t.Helper()
	return familytest.Decode[[]pipelines.Pipeline](w.t, w.As("rita", "GET /projects/20/pipelines?sort=asc", ""))
}

func TestRules_preferMergeRequestToItsBranch(t *testing.T) {
	const configuration = `
workflow:
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
    - if: $CI_COMMIT_BRANCH && $CI_OPEN_MERGE_REQUESTS
      when: never
    - if: $CI_COMMIT_BRANCH
build: {script: make}
`
	w := newWorld(t)
	w.pushWork("one", configuration)
	w.openFrom(20, "main")
	w.pushWork("two", configuration)
	w.Expect(w.list()).To(HaveExactElements(HaveField("Source", "push"), HaveField("Source", "merge_request_event")))
}

func TestRules_knowMergeRequestsAndLabels(t *testing.T) {
	const configuration = `
workflow: {name: "$CI_PIPELINE_SOURCE $CI_OPEN_MERGE_REQUESTS, labels: $CI_MERGE_REQUEST_LABELS"}
build: {script: make, rules: [{when: always}]}
`
	label := func(title string, id int64) *v1alpha1.Label {
		return &v1alpha1.Label{
			ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: title},
			Spec:       v1alpha1.LabelSpec{ID: id, Title: title, Color: "red", ProjectRef: &v1alpha1.Reference{Name: "web"}},
		}
	}
	bug, docs := label("bug", 40), label("docs", 41)
	w := newWorld(t, bug, docs, familytest.Group("hidden", "hidden", 32, "", v1alpha1.VisibilityPrivate),
		familytest.Project("hidden", "secret", 33, "hidden", v1alpha1.VisibilityPrivate))
	w.openFrom(33, "main")
	w.openFrom(20, "main", database.Label{ID: 41, UID: docs.UID}, database.Label{ID: 40, UID: bug.UID})
	w.openFrom(20, "topic")
	w.pushWork("one", configuration)
	const open = "acme/web!1,acme/web!2, labels: "
	w.Expect(w.list()).To(HaveExactElements(HaveField("Name", HaveValue(Equal("push "+open))), HaveField("Name", HaveValue(Equal("merge_request_event "+open))),
		HaveField("Name", HaveValue(Equal("merge_request_event "+open+"bug,docs"))), HaveField("Name", HaveValue(Equal("merge_request_event "+open)))))
}
