package githttp_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/githttp"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/audit/audittest"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/role"
)

// audited logs the pushes to a forge, and returns the lines of the log.
func (f *forge) audited(t *testing.T) *audittest.Lines {
	t.Helper()
	lines := audittest.Open(t)
	at := audit.At{Door: audit.Git, Address: func(r *http.Request) string { return r.RemoteAddr }, Writes: githttp.Writes}
	f.Config.Handler = lines.Handler(at, f.Config.Handler)
	return lines
}

// events waits until all answers are complete, and returns the lines without the values that differ from run to run.
func (f *forge) events(lines *audittest.Lines) []audit.Event {
	f.Close()
	all := lines.Events()
	for i := range all {
		all[i].Time, all[i].Address, all[i].Peer, all[i].Request = all[i].Time.UTC().Truncate(1<<62), "", "", ""
	}
	return all
}

func TestAudit_logsEveryPushAndNoReads(t *testing.T) {
	g := NewWithT(t)
	f, p, c := seeded(t, "sha1")
	p.rules = []protection.Rule{protect("main", role.Maintainer)}
	p.public = true
	lines := f.audited(t)
	first := c.Git(t, "rev-parse", "HEAD")
	c.Git(t, "fetch", "--quiet", "origin")
	c.Git(t, "branch", "topic")
	c.Git(t, "push", "--quiet", "origin", "topic")
	second := c.Commit(t, "README.md", "Changed\n")
	c.Refused(t, "push", "--quiet", "origin", "main", "HEAD:refs/heads/other")
	c.Refused(t, "push", "--quiet", f.url(reporter, "group/project"), "main")
	c.Refused(t, "push", "--quiet", f.url("unknown", "group/project"), "main")
	c.Refused(t, "push", "--quiet", f.url(stranger, "group/nothing"), "main")
	f.set(func() { p.readOnly = "It is archived." })
	c.Refused(t, "push", "--quiet", "origin", "topic")

	const zero = "0000000000000000000000000000000000000000"
	target, refused := "/group/project.git/git-receive-pack", "/group/project.git/info/refs"
	all := f.events(lines)
	g.Expect(all).To(HaveLen(6))
	push := func(target string, status int, result audit.Result) audit.Event {
		return audit.Event{Door: audit.Git, Action: "push", Target: target, Status: status, Result: result, Time: all[0].Time}
	}
	made := push(target, 200, audit.Done)
	made.Refs = []audit.Ref{{Ref: update.Ref{Name: "refs/heads/topic", Old: zero, New: first}, Result: audit.Done}}
	g.Expect(all[0]).To(Equal(made))

	g.Expect(all[1].Result).To(Equal(audit.Refused))
	g.Expect(all[1].Reason).To(ContainSubstring("The push is refused"))
	g.Expect(all[1].Refs).To(HaveLen(2))
	g.Expect(all[1].Refs[0]).To(And(HaveField("Name", "refs/heads/main"), HaveField("Old", first), HaveField("New", second),
		HaveField("Result", audit.Refused), HaveField("Reason", ContainSubstring("main"))))
	g.Expect(all[1].Refs[1]).To(And(HaveField("Name", "refs/heads/other"), HaveField("Reason", ContainSubstring("another update"))))

	g.Expect(all[2]).To(Equal(push(refused, 403, audit.Refused)))
	g.Expect(all[3]).To(Equal(push(refused, 401, audit.Refused)))
	g.Expect(all[4]).To(Equal(push("/group/nothing.git/info/refs", 404, audit.Refused)))
	g.Expect(all[5]).To(And(HaveField("Result", audit.Refused), HaveField("Status", 200), HaveField("Reason", "It is archived.")))
	for _, secret := range []string{developer, reporter, "unknown"} {
		g.Expect(fmt.Sprint(all)).NotTo(ContainSubstring("whoever:" + secret))
	}
}

func TestAudit_shortensPushOfManyRefs(t *testing.T) {
	g := NewWithT(t)
	f, _, c := seeded(t, "sha1")
	lines := f.audited(t)
	const many = 300
	id := c.Git(t, "rev-parse", "HEAD")
	f.pushMany(t, many, id)
	digest := sha256.New()
	for i := range many {
		fmt.Fprintf(digest, "%s %s refs/heads/many/%03d/%02d\n", strings.Repeat("0", 40), id, i/100, i%100)
	}
	rest := &audit.Rest{Refs: many - 100, Done: many - 100, SHA256: hex.EncodeToString(digest.Sum(nil))}
	all := f.events(lines)
	g.Expect(all).To(HaveLen(4))
	for _, e := range all {
		g.Expect(e).To(And(HaveField("Result", audit.Done), HaveField("Refs", HaveLen(25)), HaveField("Rest", Equal(rest))))
	}
}

func TestPush_publishesAndRecordsOnlyUpdatedRefs(t *testing.T) {
	t.Parallel() // it mostly waits
	g := NewWithT(t)
	f, p, c := seeded(t, "sha1")
	lines := f.audited(t)
	c.Git(t, "branch", "locked")
	c.Git(t, "branch", "free")
	// The lock of the ref is held, as if another git process were writing it.
	if err := os.WriteFile(filepath.Join(p.repository.Dir(), "refs", "heads", "locked.lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.Refused(t, "push", "--quiet", "origin", "locked", "free")
	all := f.events(lines)
	g.Expect(all).To(HaveLen(1))
	g.Expect(all[0].Result).To(Equal(audit.Failed))
	results := map[string]audit.Result{}
	for _, r := range all[0].Refs {
		results[strings.TrimPrefix(r.Name, "refs/heads/")] = r.Result
	}
	g.Expect(results).To(Equal(map[string]audit.Result{"locked": audit.Failed, "free": audit.Done}))
	f.mu.Lock()
	defer f.mu.Unlock()
	g.Expect(f.pushed[p.name]).To(And(ContainElement(HaveField("Name", "refs/heads/free")), Not(ContainElement(HaveField("Name", "refs/heads/locked")))))
}

func TestAudit_logsPushThatGitRefused(t *testing.T) {
	g := NewWithT(t)
	f, _, c := seeded(t, "sha1")
	lines := f.audited(t)
	header := http.Header{"Content-Type": {"application/x-git-receive-pack-request"}}
	head := c.Git(t, "rev-parse", "HEAD")
	line := head + " " + strings.Repeat("1", 40) + " refs/heads/main\x00report-status"
	damaged := fmt.Sprintf("%04x%s", len(line)+4, line) + "0000PACKdamaged"
	f.do(t, http.MethodPost, "/group/project.git/git-receive-pack", developer, header, damaged)
	f.do(t, http.MethodPost, "/group/project.git/git-receive-pack", developer, header, "0000") // git sends this to check whether it must sign in
	f.do(t, http.MethodPost, "/group/project.git/git-receive-pack", "", header, damaged)
	all := f.events(lines)
	g.Expect(all).To(HaveLen(1))
	g.Expect(all[0]).To(And(HaveField("Result", audit.Refused), HaveField("Reason", ContainSubstring("Git did not accept")), HaveField("Refs", BeEmpty())))
}
