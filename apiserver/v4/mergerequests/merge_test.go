package mergerequests_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/mergerequests"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/mergecheck"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

func TestMerge_mergesBranches(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	m := w.request(20, "topic", "main")
	main, topic := w.head("main"), w.head("topic")
	d := w.done("dora", "PUT /projects/20/merge_requests/1/merge", `{"sha":"`+topic+`"}`)
	g.Expect(d.State).To(Equal(mergerequest.Merged))
	g.Expect(d.MergeUser.Username).To(Equal("dora"))
	g.Expect(*d.MergeCommitSHA).To(Equal(w.head("main")))
	g.Expect(d.SquashCommitSHA).To(BeNil())
	g.Expect(time.Time(d.MergedAt)).NotTo(BeZero())
	g.Expect(w.web.Git(t, "log", "-1", "--format=%P %cn %an %B", "main")).To(Equal(
		main + " " + topic + " dora dora Merge branch 'topic' into 'main'\n\nAdd topic\n\nSee merge request acme/web!1"))
	g.Expect(w.head("main^{tree}")).To(Equal(w.head("topic^{tree}")))
	g.Expect(w.notes(m)).To(Equal([]string{"merged"}))
	g.Expect(w.head("topic")).To(Equal(topic))
	g.Expect(w.merge("dora", m, "").Code).To(Equal(405), "merged already")
	w.web.Git(t, "fsck", "--strict")
}

func TestMerge_squashes(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	w.request(20, "topic", "main", func(m *mergerequest.MergeRequest) { m.Squash = true })
	main := w.head("main")
	d := w.done("dora", "PUT /projects/20/merge_requests/1/merge", `{"squash_commit_message":"One","merge_commit_message":"Two"}`)
	g.Expect(w.web.Git(t, "log", "--topo-order", "--format=%H %P %s", "main")).To(Equal(fmt.Sprintf("%s %s %s Two\n%[3]s %[2]s One\n%[2]s  Change \"a\"",
		*d.MergeCommitSHA, main, *d.SquashCommitSHA)))
	g.Expect(w.web.Git(t, "show", "main:topic")).To(Equal("topic again"))
}

func TestSquashOption_decidesOverMergeRequest(t *testing.T) {
	w := newGitWorld(t, branched(t))
	for n, tt := range []struct {
		option               v1alpha1.SquashOption
		made, merged         string
		asked, shown, squash bool
	}{
		{v1alpha1.SquashDefaultOff, "", "", false, false, false},
		{v1alpha1.SquashDefaultOff, "", `{"squash":true}`, false, false, true},
		{v1alpha1.SquashDefaultOn, "", "", true, true, true},
		{v1alpha1.SquashDefaultOn, `,"squash":false`, "", false, false, false},
		{v1alpha1.SquashAlways, `,"squash":false`, `{"squash":false}`, false, true, true},
		{v1alpha1.SquashNever, `,"squash":true`, `{"squash":true}`, true, false, false},
	} {
		t.Run(string(tt.option)+tt.made+tt.merged, func(t *testing.T) {
			g := NewWithT(t)
			w.configure(func(s *v1alpha1.MergeRequests) { s.Squash = tt.option })
			w.web.Git(t, "branch", fmt.Sprint("into-", n), "main")
			made := w.As("dora", "POST /projects/20/merge_requests", fmt.Sprintf(`{"title":"x","source_branch":"topic","target_branch":"into-%d"%s}`, n, tt.made))
			g.Expect(familytest.Decode[mergerequests.Detailed](t, made).MergeRequest).To(And(
				HaveField("Squash", tt.asked), HaveField("SquashOnMerge", tt.shown)))
			d := w.done("dora", fmt.Sprintf("PUT /projects/20/merge_requests/%d/merge", n+1), tt.merged)
			g.Expect(d.SquashCommitSHA != nil).To(Equal(tt.squash))
		})
	}
}

func TestMerge_isRefused(t *testing.T) {
	w := newGitWorld(t, branched(t))
	topic := w.request(20, "topic", "main")
	rival := w.request(20, "rival", "main")
	draft := w.request(20, "rival", "stable", func(m *mergerequest.MergeRequest) { m.Title = "Draft: x" })
	gone := w.request(20, "gone", "main")
	nowhere := w.request(20, "topic", "gone")
	closed := w.request(20, "topic", "closed")
	empty := w.request(20, "stable", "main")
	w.web.Git(t, "update-ref", "refs/heads/ahead", w.web.Git(t, "commit-tree", "-p", "main", "-m", "x", w.head("rival^{tree}")))
	conflict := w.request(20, "topic", "ahead")
	w.web.Git(t, "update-ref", "refs/heads/rules", "ahead")
	unapproved := w.request(20, "topic", "rules", func(m *mergerequest.MergeRequest) { m.ApprovalsRequired = 1 })
	refs := w.web.Git(t, "for-each-ref", "refs/heads")
	for name, tt := range map[string]struct {
		as   string
		m    mergerequest.MergeRequest
		body string
		want string
	}{
		"unknown":            {"dora", mergerequest.MergeRequest{IID: 99}, "", `404 {"message":"404 Not found"}`},
		"anonymous":          {"", topic, "", "401 "},
		"Reporter":           {"rita", topic, "", `401 {"message":"401 Unauthorized`},
		"protected target":   {"dora", closed, "", `401 {"message":"401 Unauthorized`},
		"draft":              {"dora", draft, "", `405 {"message":"405 Method Not Allowed"`},
		"no source":          {"dora", gone, "", `405 {"message":"405 Method Not Allowed"`},
		"no target":          {"dora", nowhere, "", `405 {"message":"405 Method Not Allowed"`},
		"pipeline":           {"dora", topic, `{"merge_when_pipeline_succeeds":true}`, `405 {"message":"405 Method Not Allowed"`},
		"auto merge":         {"dora", topic, `{"auto_merge":true}`, `405 {"message":"405 Method Not Allowed"`},
		"conflicts":          {"dora", conflict, `{"sha":"no"}`, `422 {"message":"Branch cannot be merged"`},
		"not approved":       {"dora", unapproved, "", `405 {"message":"405 Method Not Allowed"`},
		"nothing":            {"dora", empty, "", `422 {"message":"Branch cannot be merged"`},
		"another head":       {"dora", rival, `{"sha":"no"}`, `409 {"message":"SHA does not match HEAD of source branch: ` + w.head("rival")},
		"draft, another one": {"dora", draft, `{"sha":"no"}`, `405 `},
	} {
		t.Run(name, func(t *testing.T) {
			if got := w.merge(tt.as, tt.m, tt.body).String(); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	if now := w.web.Git(t, "for-each-ref", "refs/heads"); now != refs {
		t.Errorf("the branches are\n%s, and were\n%s", now, refs)
	}
	if err := w.Activity.MergeRequests.Lock(t.Context(), w.read(topic), mergerequest.Plan{}); err != nil {
		t.Errorf("a refused merge leaves the merge request %s: %v", w.read(topic).State, err)
	}
}

func TestMerge_obeysProtectionOfTarget(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	m, other := w.request(20, "topic", "stable"), w.request(20, "topic", "closed")
	g.Expect(w.merge("dora", m, "").Code).To(Equal(200), "Developers merge into it")
	g.Expect(w.get(other).User.CanMerge).To(BeFalse())
	g.Expect(w.done("dora", "GET /projects/20/merge_requests/2", "").User.CanMerge).To(BeFalse())
	g.Expect(w.done("mary", "GET /projects/20/merge_requests/2", "").User.CanMerge).To(BeTrue())
	g.Expect(w.merge("mary", other, "").Code).To(Equal(200))
}

func TestMerge_isRefusedIfCodeOwnersAreUnreadable(t *testing.T) {
	g, w := NewWithT(t), newOwnedWorld(t, "topic @mary\n")
	m, was, owners := w.request(20, "topic", owned(0)), w.head(owned(0)), w.head(owned(0)+":CODEOWNERS")
	g.Expect(os.Remove(filepath.Join(w.web.Dir, "objects", owners[:2], owners[2:]))).To(Succeed())
	g.Expect(w.merge("mary", m, "").Code).To(Equal(500))
	g.Expect(w.head(owned(0))).To(Equal(was))
	g.Expect(w.read(m)).To(And(HaveField("State", mergerequest.Opened), HaveField("MergeError", HavePrefix("The server could not check"))))
}

func TestMerge_removesSourceBranch(t *testing.T) {
	w := newGitWorld(t, branched(t))
	w.web.Git(t, "branch", "third", "topic")
	w.web.Git(t, "update-ref", "refs/heads/stable", w.web.Git(t, "commit-tree", "-p", "main", "-m", "x", w.head("main^{tree}")))
	for _, tt := range []struct {
		from, into string
		declared   bool
		body       string
		remains    bool
	}{
		{"topic", "main", false, `{"should_remove_source_branch":true}`, false},
		{"rival", "closed", true, "", false},
		{"third", "closed", true, `{"should_remove_source_branch":false}`, true},
		{"main", "third", false, `{"should_remove_source_branch":true}`, true},
		{"stable", "main", false, `{"should_remove_source_branch":true}`, true},
	} {
		m := w.request(20, tt.from, tt.into, func(m *mergerequest.MergeRequest) { m.RemoveSourceBranch = tt.declared })
		if a := w.merge("mary", m, tt.body); a.Code != 200 && tt.from != "third" {
			t.Errorf("%s: %s", tt.from, a)
		}
		if _, err := w.web.Try("rev-parse", "--verify", "refs/heads/"+tt.from); (err == nil) != tt.remains {
			t.Errorf("%s remains: %v", tt.from, err == nil)
		}
	}
}

func TestMerge_removesSourceBranchInFork(t *testing.T) {
	w := newGitWorld(t, branched(t))
	for name, tt := range map[string]struct {
		as       string
		author   string // dora if empty
		declared bool
		remains  bool
	}{
		"merger-can-push-there":    {as: "dora"},
		"author-asks-and-cannot":   {as: "dora", author: "pia", declared: true},
		"merger-cannot-push-there": {as: "pia", remains: true},
		"author-asks-and-can":      {as: "pia", declared: true},
	} {
		t.Run(name, func(t *testing.T) {
			w.fork.Git(t, "update-ref", "refs/heads/"+name, w.fork.Git(t, "commit-tree", "-p", "main", "-m", name, w.head("main^{tree}")))
			m := w.request(21, name, "main", func(m *mergerequest.MergeRequest) {
				m.RemoveSourceBranch, m.Author = tt.declared, w.UserRow(cmp.Or(tt.author, "dora"))
			})
			if a := w.merge(tt.as, m, `{"should_remove_source_branch":true}`); a.Code != 200 {
				t.Fatal(a)
			}
			if _, err := w.fork.Try("rev-parse", "--verify", "refs/heads/"+name); (err == nil) != tt.remains {
				t.Errorf("the source branch remains: %t", err == nil)
			}
		})
	}
}

func TestMerge_removesSourceBranchAfterCrash(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	w.web.Git(t, "branch", "third", "rival")
	yes := true
	for _, tt := range []struct {
		from     string
		plan     mergerequest.Plan
		declared bool
		remains  bool
	}{
		{"topic", mergerequest.Plan{Merger: w.UserRow("dora"), RemoveSource: &yes}, false, false},
		{"rival", mergerequest.Plan{Merger: w.UserRow("rita"), RemoveSource: &yes}, false, true}, // demoted meanwhile
		{"third", mergerequest.Plan{Merger: w.UserRow("dora")}, true, false},
	} {
		m := w.request(20, tt.from, "main", func(m *mergerequest.MergeRequest) { m.RemoveSourceBranch = tt.declared })
		w.get(m)
		tt.plan.Commit = w.web.Git(t, "commit-tree", "-p", "main", "-p", tt.from, "-m", "x", w.head(tt.from+"^{tree}"))
		g.Expect(w.Activity.MergeRequests.Lock(t.Context(), w.read(m), tt.plan)).To(Succeed())
		w.web.Git(t, "update-ref", "refs/heads/main", tt.plan.Commit)
		g.Expect(w.get(m).State).To(Equal(mergerequest.Merged), tt.from)
		_, err := w.web.Try("rev-parse", "--verify", "refs/heads/"+tt.from)
		g.Expect(err == nil).To(Equal(tt.remains), tt.from)
	}
}

func TestMerge_losesNoConcurrentMerge(t *testing.T) {
	c := branched(t)
	for i := range 10 {
		c.Git(t, "checkout", "--quiet", "-b", fmt.Sprint("b", i), "main")
		c.Commit(t, fmt.Sprint("file", i), "1\n")
	}
	w := newGitWorld(t, c)
	all := make([]mergerequest.MergeRequest, 10)
	for i := range all {
		all[i] = w.request(20, fmt.Sprint("b", i), "main")
	}
	var wait sync.WaitGroup
	answers := make([]familytest.Answer, len(all))
	for i, m := range all {
		wait.Go(func() { answers[i] = w.merge("dora", m, "") })
	}
	wait.Wait()
	files, merged := strings.Fields(w.web.Git(t, "ls-tree", "--name-only", "main")), 0
	for i, a := range answers {
		there := strings.Contains(" "+strings.Join(files, " ")+" ", fmt.Sprintf(" file%d ", i))
		switch now := w.read(all[i]); {
		case a.Code == 200 && there && now.State == mergerequest.Merged:
			merged++
		case a.Code == 422 && !there && now.State == mergerequest.Opened:
		default:
			t.Errorf("%d: %s; in main: %t; %s", i, a, there, now.State)
		}
	}
	if got := w.web.Git(t, "rev-list", "--count", "--first-parent", "main"); merged == 0 || got != fmt.Sprint(1+merged) {
		t.Errorf("%d were merged, and main has %s commits", merged, got)
	}
	w.web.Git(t, "fsck", "--strict")
}

// The rows of a project go when the project is deleted.
func TestMerge_missesMergeRequestThatIsGone(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	m := w.request(20, "topic", "main")
	w.Refs = ref.NewUpdater(w.Guard, w.Repositories, func(change.Event) {
		g.Expect(w.Activity.Database.Write(t.Context(), "deleting", func(ctx context.Context, db bun.IDB) error {
			_, err := db.NewDelete().Model((*mergerequest.MergeRequest)(nil)).Where("id = ?", m.ID).Exec(ctx)
			return err
		})).To(Succeed())
	})
	w.Serve(mergerequests.New(w.Kit).Table())
	g.Expect(w.merge("dora", m, "").String()).To(Equal(`404 {"message":"404 Not found"}`))
}

// A process can end between the change of the branch and that of the row, or before both.
func TestMerge_isFinishedOrUndoneAfterCrash(t *testing.T) {
	for name, inGit := range map[string]bool{"after git": true, "before git": false} {
		t.Run(name, func(t *testing.T) {
			g, w := NewWithT(t), newGitWorld(t, branched(t))
			m := w.request(20, "topic", "main")
			g.Expect(w.get(m).DetailedMergeStatus).To(Equal("mergeable"))
			was := w.head("main")
			planned := w.web.Git(t, "commit-tree", "-p", was, "-p", "topic", "-m", "x", w.head("topic^{tree}"))
			g.Expect(w.Activity.MergeRequests.Lock(t.Context(), w.read(m), mergerequest.Plan{Commit: planned, Merger: m.Author, RemoveSource: &inGit})).To(Succeed())
			if inGit {
				w.web.Git(t, "update-ref", "refs/heads/main", planned)
				d := w.get(m)
				g.Expect(d.State).To(Equal(mergerequest.Merged))
				g.Expect(*d.MergeCommitSHA).To(Equal(planned))
				g.Expect(d.MergeUser.Username).To(Equal("dora"))
				g.Expect(w.get(m).State).To(Equal(mergerequest.Merged))
				g.Expect(w.notes(m)).To(Equal([]string{"merged"}))
				g.Expect(w.lines.Events()).To(HaveExactElements(And(
					HaveField("Action", "remove-source"), HaveField("Result", audit.Done), HaveField("User.Username", "dora"), HaveField("About.Path", "acme/web"),
					HaveField("Refs", HaveExactElements(HaveField("Name", "refs/heads/topic"))),
				)))
				return
			}
			g.Expect(w.get(m).State).To(Equal(mergerequest.Locked))
			w.Clock.SetTime(w.Clock.Now().Add(3 * time.Minute))
			_, end, err := w.store.BeginWrite(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			time.AfterFunc(100*time.Millisecond, end) // the merge could still happen until then
			d := w.get(m)
			g.Expect(d.State).To(Equal(mergerequest.Opened))
			g.Expect(*d.MergeError).To(ContainSubstring("interrupted"))
			g.Expect(w.head("main")).To(Equal(was))
			g.Expect(w.notes(m)).To(BeEmpty())
			g.Expect(w.merge("dora", m, "").Code).To(Equal(200))
		})
	}
}

func TestMerge_isResumedInBackgroundAfterCrash(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	m, other := w.request(20, "topic", "main"), w.request(20, "rival", "main")
	g.Expect(w.merge("dora", m, "").Code).To(Equal(200))
	g.Expect(w.Tasks).To(ContainElement(HaveField("Key", "1 resume")))
	resume := func(m mergerequest.MergeRequest) error {
		task, _ := mergecheck.Resume(m.ID, fair.Namespace("acme"))
		return w.Work[mergecheck.QueueName].Run(t.Context(), job.Attempt{Task: task}, nil)
	}
	g.Expect(resume(m)).To(Succeed(), "there is nothing to do")
	g.Expect(w.Activity.MergeRequests.Lock(t.Context(), w.read(other), mergerequest.Plan{Commit: w.head("rival"), Merger: other.Author})).To(Succeed())
	g.Expect(resume(other)).To(MatchError(mergerequest.ErrLocked), "the merge can still happen")
	w.Clock.SetTime(w.Clock.Now().Add(3 * time.Minute))
	g.Expect(resume(other)).To(Succeed())
	g.Expect(w.read(other)).To(And(HaveField("State", mergerequest.Opened), HaveField("MergeError", ContainSubstring("interrupted"))))
}

func TestMerge_staysLockedWhileOutcomeIsUnknown(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	m := w.request(20, "topic", "main")
	was, lock := w.head("main"), filepath.Join(w.web.Dir, "refs/heads/main.lock") // as a git that was killed leaves it
	g.Expect(os.WriteFile(lock, nil, 0o644)).To(Succeed())
	g.Expect(w.merge("dora", m, "").Code).To(Equal(500))
	g.Expect(w.get(m).State).To(Equal(mergerequest.Locked))
	g.Expect(w.merge("dora", m, "").Code).To(Equal(405))
	g.Expect(os.Remove(lock)).To(Succeed())
	w.Clock.SetTime(w.Clock.Now().Add(3 * time.Minute))
	g.Expect(w.get(m).State).To(Equal(mergerequest.Opened))
	g.Expect(w.head("main")).To(Equal(was))
	g.Expect(w.merge("dora", m, "").Code).To(Equal(200))
}
