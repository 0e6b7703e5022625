package mergerequests_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/mergerequests"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// advance adds a commit to a branch of web, with the files of a revision.
func (w gitWorld) advance(branch, files string) {
	w.t.Helper()
	w.web.Git(w.t, "update-ref", "refs/heads/"+branch, w.web.Git(w.t, "commit-tree", "-p", branch, "-m", "Advance", w.head(files+"^{tree}")))
}

func TestGet_countsDivergedCommits(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	m := w.request(20, "topic", "main")
	w.advance("main", "main")
	w.advance("main", "main")
	g.Expect(w.get(m).DivergedCommitsCount).To(BeNil())
	d := w.done("rita", "GET /projects/20/merge_requests/1?include_diverged_commits_count=true&include_rebase_in_progress=true", "")
	g.Expect(*d.DivergedCommitsCount).To(Equal(2))
	g.Expect(*d.RebaseInProgress).To(BeFalse())
}

func TestWrite_countsDivergedCommits(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	w.advance("main", "main")
	a := w.As("dora", "POST /projects/20/merge_requests", `{"title":"Add","source_branch":"topic","target_branch":"main"}`)
	g.Expect(a.Code).To(Equal(201), a.Body)
	g.Expect(familytest.Decode[mergerequests.Detailed](t, a).DivergedCommitsCount).To(HaveValue(Equal(1)))
	g.Expect(w.done("dora", "PUT /projects/20/merge_requests/1", `{"title":"Mend"}`).DivergedCommitsCount).To(HaveValue(Equal(1)))
}

func TestMergeRef_isCommitOfMerge(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	w.request(20, "topic", "main")
	a := w.As("rita", "GET /projects/20/merge_requests/1/merge_ref", "")
	g.Expect(a.Body).To(MatchJSON(`{"commit_id":"` + w.head("refs/merge-requests/1/merge") + `"}`))
	w.advance("main", "rival")
	g.Expect(w.As("rita", "GET /projects/20/merge_requests/1/merge_ref", "").String()).To(Equal(`400 {"message":"Merge request is not mergeable"}`))
}

func TestRebase_rewritesSourceBranch(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	m := w.request(20, "topic", "main")
	w.advance("main", "main")
	was := w.head("topic")
	g.Expect(w.As("dora", "PUT /projects/20/merge_requests/1/rebase", "").String()).To(Equal(`202 {"rebase_in_progress":true}`))
	g.Expect(w.web.Git(t, "log", "--format=%s by %an and %cn", "main..topic")).To(Equal(
		"Change \"topic\" by Ann Author and dora\nChange \"topic\" by Ann Author and dora"))
	g.Expect(w.head("topic^{tree}")).To(Equal(w.head(was + "^{tree}")))
	g.Expect(w.head("topic~2")).To(Equal(w.head("main")))
	g.Expect(*w.get(m).SHA).To(Equal(w.head("topic")))

	w.advance("main", "rival")
	head := w.head("topic")
	g.Expect(w.As("dora", "PUT /projects/20/merge_requests/1/rebase", "").Code).To(Equal(202))
	g.Expect(*w.get(m).MergeError).To(ContainSubstring("resolve all conflicts"))
	g.Expect(w.head("topic")).To(Equal(head))
}

func TestRebase_isRefused(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	w.request(20, "stable", "main")
	w.request(21, "stable", "main")
	w.request(20, "gone", "main")
	w.request(20, "topic", "main", func(m *mergerequest.MergeRequest) { m.Squash = true })
	for request, want := range map[string]string{
		"PUT /projects/20/merge_requests/1/rebase": `403 {"message":"403 Forbidden - Cannot push to source branch"`,
		"PUT /projects/20/merge_requests/3/rebase": `403 {"message":"403 Forbidden - Source branch does not exist"`,
	} {
		g.Expect(w.As("dora", request, "").String()).To(HavePrefix(want), request)
	}
	for as, iid := range map[string]int{"rita": 4, "pia": 2} {
		g.Expect(w.As(as, fmt.Sprintf("PUT /projects/20/merge_requests/%d/rebase", iid), "").Code).To(Equal(403), as)
	}
}

func TestRebase_rewritesSourceBranchInFork(t *testing.T) {
	for as, collaboration := range map[string]bool{"dora": false, "pia": true} { // dora can push to the fork, pia can merge into main
		t.Run(as, func(t *testing.T) {
			g, w := NewWithT(t), newGitWorld(t, branched(t))
			m := w.request(21, "topic", "main", func(m *mergerequest.MergeRequest) { m.AllowCollaboration = collaboration })
			w.advance("main", "main")
			g.Expect(w.As(as, "PUT /projects/20/merge_requests/1/rebase", "").String()).To(Equal(`202 {"rebase_in_progress":true}`))
			g.Expect(w.fork.Git(t, "rev-parse", "topic~2")).To(Equal(w.head("main")))
			g.Expect(w.fork.Git(t, "log", "-1", "--format=%cn", "topic")).To(Equal(as))
			g.Expect(*w.get(m).SHA).To(Equal(w.fork.Git(t, "rev-parse", "topic")))
		})
	}
}

func TestRebase_showsWhyItFailed(t *testing.T) {
	c := branched(t)
	message := filepath.Join(t.TempDir(), "message")
	NewWithT(t).Expect(os.WriteFile(message, bytes.Repeat([]byte("long\n"), object.MaxCommit/16), 0o644)).To(Succeed())
	c.Git(t, "update-ref", "refs/heads/long", c.Git(t, "commit-tree", "-p", "main", "-F", message, "topic^{tree}"))
	g, w := NewWithT(t), newGitWorld(t, c)
	m := w.request(20, "long", "main")
	w.advance("main", "main")
	head := w.head("long")
	g.Expect(w.As("dora", "PUT /projects/20/merge_requests/1/rebase", "").Code).To(Equal(202))
	g.Expect(*w.get(m).MergeError).To(Equal("Rebase failed: the commit is too large. Rebase locally, then push the branch."))
	g.Expect(w.head("long")).To(Equal(head))
}
