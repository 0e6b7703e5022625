package mergerequests_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/mergerequests"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
	"github.com/forgeplane/forgeplane/internal/mergecheck"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

func TestRefresh_recordsVersionsAndMergeability(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	m := w.request(20, "topic", "main")
	main, topic := w.head("main"), w.head("topic")
	d := w.get(m)
	g.Expect(*d.SHA).To(Equal(topic))
	g.Expect(*d.DiffRefs).To(And(HaveField("BaseSHA", main), HaveField("HeadSHA", topic), HaveField("StartSHA", main)))
	g.Expect(*d.ChangesCount).To(Equal("1"))
	g.Expect(d.DetailedMergeStatus).To(Equal("mergeable"))
	g.Expect(w.head("refs/merge-requests/1/head")).To(Equal(topic))
	g.Expect(w.web.Git(t, "log", "-1", "--format=%P %T", "refs/merge-requests/1/merge")).To(Equal(main + " " + topic + " " + w.head("topic^{tree}")))
	g.Expect(w.read(m).PreparedAt).NotTo(BeZero())

	// A change of the target branch is checked, but is not a version.
	ahead := w.web.Git(t, "commit-tree", "-p", main, "-m", "x", w.head("rival^{tree}"))
	w.web.Git(t, "update-ref", "refs/heads/main", ahead)
	d = w.get(m)
	g.Expect(d.DetailedMergeStatus).To(Equal("broken_status"))
	g.Expect(d.HasConflicts).To(BeTrue())
	g.Expect(w.web.Try("rev-parse", "--verify", "--quiet", "refs/merge-requests/1/merge")).Error().To(HaveOccurred())
	w.web.Git(t, "update-ref", "refs/heads/main", main)
	g.Expect(w.get(m).DetailedMergeStatus).To(Equal("mergeable"))

	// A push is a version. A rewritten head is kept.
	w.web.Git(t, "update-ref", "refs/heads/topic", "topic~1")
	g.Expect(*w.get(m).SHA).To(Equal(w.head("topic")))
	_, n, err := w.Activity.MergeRequests.Versions(t.Context(), m.ID, 0, 10)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(n).To(Equal(2))

	// The commits stay while the branch is away, and when the repository is collected.
	kept := w.head("topic")
	w.web.Git(t, "update-ref", "-d", "refs/heads/topic")
	g.Expect(w.get(m).DetailedMergeStatus).To(Equal("unchecked"))
	w.web.Git(t, "gc", "--quiet", "--prune=now")
	g.Expect(w.head("refs/merge-requests/1/head")).To(Equal(kept))
	w.web.Git(t, "update-ref", "refs/heads/topic", kept)
	g.Expect(w.get(m).DetailedMergeStatus).To(Equal("mergeable"))
}

func TestRefresh_precedesApprovalsOfRulesAndReviewers(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	m := w.request(20, "topic", "main", func(m *mergerequest.MergeRequest) { m.Reviewers = []database.User{w.UserRow("mary")} })
	g.Expect(w.Activity.MergeRequests.SaveApprovalRule(t.Context(), &mergerequest.ApprovalRule{MergeRequestID: m.ID, Name: "All", Required: 1})).To(Succeed())
	for path, approved := range map[string]string{
		"approval_state": `"approved":true`, "approval_rules": `"approved":true`, "approval_rules/1": `"approved":true`, "reviewers": `"state":"approved"`,
	} {
		g.Expect(w.As("mary", "POST /projects/20/merge_requests/1/approve", "").Code).To(Equal(201))
		g.Expect(w.As("rita", "GET /projects/20/merge_requests/1/"+path, "").Body).To(ContainSubstring(approved), path)
		w.advance("topic", "topic")
		g.Expect(w.As("rita", "GET /projects/20/merge_requests/1/"+path, "").Body).NotTo(ContainSubstring(approved), path)
	}
}

func TestRefresh_startsNoGitIfNothingMoved(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	for _, m := range []mergerequest.MergeRequest{
		w.request(20, "topic", "main"), w.request(20, "gone", "main"), w.request(20, "stable", "main"), w.request(21, "topic", "main"),
	} {
		w.get(m)
		count := func() (all []int) {
			for _, command := range []string{"merge-tree", "update-ref", "unpack-objects", "index-pack", "pack-objects", "merge-base", "diff-tree"} {
				all = append(all, w.starts(command))
			}
			return all
		}
		before, was := count(), w.read(m)
		w.get(m)
		g.Expect(count()).To(Equal(before), m.SourceBranch)
		g.Expect(w.read(m)).To(Equal(was))
	}
	g.Expect(w.starts("merge-tree")).To(BeNumerically(">", 0))
}

func TestRefresh_bringsCommitsOfFork(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	id := w.fork.Git(t, "commit-tree", "-p", "topic", "-m", "Only in the fork", w.fork.Write(t, "tree", ""))
	w.fork.Git(t, "update-ref", "refs/heads/ours", id)
	m := w.request(21, "ours", "main")
	d := w.get(m)
	g.Expect(*d.SHA).To(Equal(id))
	g.Expect(d.DetailedMergeStatus).To(Equal("mergeable"))
	g.Expect(w.head("refs/merge-requests/1/head")).To(Equal(id))

	// The target project needs nothing of the fork.
	g.Expect(w.merge("dora", m, "").Code).To(Equal(200))
	g.Expect(os.RemoveAll(w.fork.Dir)).To(Succeed())
	g.Expect(w.web.Git(t, "fsck", "--strict", "--full")).NotTo(ContainSubstring("missing"))
	g.Expect(w.web.Git(t, "rev-list", "main")).To(ContainSubstring(id))
}

func TestRefresh_leavesReadOnlyRepository(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	m := w.request(20, "topic", "main")
	open, err := w.store.Close(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.get(m).DetailedMergeStatus).To(Equal("unchecked"))
	g.Expect(w.merge("dora", m, "").Code).To(Equal(405))
	open()
	g.Expect(w.get(m).DetailedMergeStatus).To(Equal("mergeable"))
}

func TestRefs_areKeptAndCanBeFetched(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	m := w.request(20, "topic", "main")
	w.get(m)
	topic := w.head("topic")
	w.web.Git(t, "update-ref", "-d", "refs/heads/topic")
	g.Expect(upkeep.Maintain(t.Context(), w.store)).To(Succeed())
	c := gittest.New(t, "sha1")
	c.Git(t, "fetch", "--quiet", w.web.Dir, "refs/merge-requests/1/head")
	g.Expect(c.Git(t, "rev-parse", "FETCH_HEAD")).To(Equal(topic))
	g.Expect(strings.Fields(c.Git(t, "ls-remote", w.web.Dir, "refs/merge-requests/*"))).To(ContainElement("refs/merge-requests/1/merge"))
}

// meanwhile calls do while git waits at the start of a subcommand for a request, and returns the answer to the request.
func (w gitWorld) meanwhile(as, request, subcommand string, do func()) familytest.Answer {
	w.t.Helper()
	release, before := gittest.Hold(w.t, w.binary, subcommand), w.starts(subcommand)
	answer := make(chan familytest.Answer, 1)
	go func() { answer <- w.As(as, request, "") }()
	g := NewWithT(w.t)
	g.Eventually(w.starts).WithArguments(subcommand).Should(BeNumerically(">", before))
	do()
	release()
	return <-answer
}

func TestRefresh_isNotFoundAfterDeletion(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	for i, request := range []string{"GET /projects/20/merge_requests/1", "PUT /projects/20/merge_requests/2/merge", "PUT /projects/20/merge_requests/3/rebase"} {
		m := w.request(20, "topic", "main")
		subcommand := "merge-tree"
		if i == 2 { // its refresh has nothing to do
			w.get(m)
			w.advance("main", "main")
			w.get(m)
			subcommand = "update-ref"
		}
		a := w.meanwhile("dora", request, subcommand, func() { g.Expect(w.Activity.MergeRequests.Delete(t.Context(), m.ID)).To(Succeed()) })
		g.Expect(a.String()).To(Equal(`404 {"message":"404 Not found"}`), request)
		if subcommand == "merge-tree" { // the check comes after the deletion
			g.Expect(w.kept()).To(BeEmpty(), request)
		}
	}
}

func TestRefresh_restoresRefs(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	m := w.request(20, "topic", "main")
	const head, merge = "refs/merge-requests/1/head", "refs/merge-requests/1/merge"
	w.get(m)
	topic, merged, was := w.head("topic"), w.head(merge), w.read(m)
	for _, change := range [][]string{{"-d", head}, {"-d", merge}, {head, "main"}} {
		w.web.Git(t, append([]string{"update-ref"}, change...)...)
		w.get(m)
		g.Expect(w.head(head)).To(Equal(topic), "%s", change)
		g.Expect(w.head(merge)).To(Equal(merged), "%s", change)
	}
	g.Expect(w.read(m)).To(Equal(was))
	w.advance("main", "rival")
	w.get(m)
	w.web.Git(t, "update-ref", merge, merged)
	w.get(m)
	g.Expect(w.web.Try("rev-parse", "--verify", "--quiet", merge)).Error().To(HaveOccurred())
}

// kept returns the refs of all merge requests.
func (w gitWorld) kept() string {
	w.t.Helper()
	return w.web.Git(w.t, "for-each-ref", "--format=%(refname)", "refs/merge-requests")
}

func TestDelete_deletesRefs(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	w.request(20, "gone", "main")
	w.request(20, "rival", "main")
	m := w.request(20, "topic", "main")
	w.get(m)
	g.Expect(w.kept()).To(Equal("refs/merge-requests/3/head\nrefs/merge-requests/3/merge"))
	for _, iid := range []string{"1", "3"} { // the first one has no refs
		g.Expect(w.As("olga", "DELETE /projects/20/merge_requests/"+iid, "").Code).To(Equal(204))
	}
	g.Expect(w.kept()).To(BeEmpty())

	// A repository that takes no writes does not hold back the deletion.
	open, err := w.store.Close(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	defer open()
	g.Expect(w.As("olga", "DELETE /projects/20/merge_requests/2", "").Code).To(Equal(204))
}

func TestRefresh_isSharedByConcurrentRequests(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	m := w.request(20, "topic", "main")
	release := gittest.Hold(t, w.binary, "merge-tree")
	answers := make(chan familytest.Answer, 5)
	for range cap(answers) {
		go func() { answers <- w.As("rita", "GET /projects/20/merge_requests/1", "") }()
	}
	started := func() int { return w.starts("merge-tree") }
	g.Eventually(started).Should(Equal(1))
	g.Consistently(started).WithTimeout(time.Second).Should(Equal(1))
	release()
	for range cap(answers) {
		a := <-answers
		g.Expect(a.Code).To(Equal(200))
		g.Expect(familytest.Decode[mergerequests.Detailed](t, a).DetailedMergeStatus).To(Equal("mergeable"))
	}
	g.Expect(started()).To(Equal(1))

	// A caller who leaves does not fail the others.
	w.advance("main", "main")
	checker := mergecheck.New(w.Catalog, w.Repositories, w.Activity, w.Clock)
	release = gittest.Hold(t, w.binary, "merge-tree")
	ctx, leave := context.WithCancel(t.Context())
	m = w.read(m)
	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := checker.Refresh(ctx, m)
		first <- err
	}()
	g.Eventually(started).Should(Equal(2))
	go func() {
		_, err := checker.Refresh(t.Context(), m)
		second <- err
	}()
	g.Consistently(started).WithTimeout(time.Second).Should(Equal(2))
	leave()
	g.Expect(<-first).To(MatchError(context.Canceled))
	release()
	g.Expect(<-second).To(Succeed())
	g.Expect(w.read(m).CheckedTarget).To(Equal(w.head("main")))
}

func TestOfCommit_isRememberedAndLimited(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	w.get(w.request(20, "topic", "main"))
	of := func(commit string) string {
		return "GET /projects/20/repository/commits/" + w.head(commit) + "/merge_requests"
	}
	g.Expect(w.As("rita", of("topic"), "").Body).To(ContainSubstring(`"iid":1`))
	n := w.starts("rev-list")
	g.Expect(w.As("rita", of("topic"), "").Body).To(ContainSubstring(`"iid":1`))
	g.Expect(w.starts("rev-list")).To(Equal(n))
	gittest.Hold(t, w.binary, "rev-list")
	g.Expect(w.As("rita", of("topic~1"), "").Code).To(Equal(503))
}
