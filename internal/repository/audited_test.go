package repository_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/audit/audittest"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// handled returns the handle of a controller on a repository that exists.
func handled(t *testing.T) (*shop, *repository.Handle, *audittest.Lines) {
	t.Helper()
	s, lines := newShop(t, "sha1"), audittest.Open(t)
	h, err := s.repos.Audited(lines.Log).Of(t.Context(), s.project)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return s, h, lines
}

func TestHandle_logsEachWriteOnce(t *testing.T) {
	g := NewWithT(t)
	s, h, lines := handled(t)
	ctx := audit.WithReason(audit.For(t.Context(), s.project), audit.Event{Reason: "a test"})
	g.Expect(h.Remove(ctx)).To(Succeed())
	g.Expect(h.Remove(ctx)).To(Succeed(), "nothing is there")
	for range 2 {
		g.Expect(h.Init(ctx, git.InitOptions{})).To(Succeed())
	}
	g.Expect(h.Import(ctx, transfer.ImportOptions{URL: "https://git.example.com/a.git"})).To(Succeed(), "there is a repository")
	g.Expect(h.Move(ctx, h)).To(Succeed(), "it is there")
	g.Expect(h.SetHead(ctx, "next")).To(Succeed())
	g.Expect(h.SetHead(ctx, "..")).NotTo(Succeed())
	g.Expect(h.RemoveUnused(ctx)).To(BeTrue())
	about := audit.Object{Kind: "Project", Namespace: "acme", Name: "web", ID: 7, UID: "web"}
	line := func(action, reason string, result audit.Result, refs ...audit.Ref) any {
		return And(HaveField("Door", audit.Controller), HaveField("Controller", "Project"), HaveField("About", HaveValue(Equal(about))),
			HaveField("Action", action), HaveField("Reason", reason), HaveField("Result", result), HaveField("Refs", Equal(refs)))
	}
	g.Expect(lines.Events()).To(HaveExactElements(
		line("destroy", "a test", audit.Done), line("init", "a test", audit.Done),
		line("set-head", "a test", audit.Done, audit.Ref{Ref: update.Ref{Name: "HEAD", New: "refs/heads/next"}, Result: audit.Done}),
		line("set-head", "a test", audit.Failed, audit.Ref{Ref: update.Ref{Name: "HEAD", New: "refs/heads/.."}, Result: audit.Failed}),
		line("destroy", "there is neither a ref nor an object in it", audit.Done),
	))
}

func TestHandle_movesAndRemovesWikiAndDesigns(t *testing.T) {
	g := NewWithT(t)
	s, h, lines := handled(t)
	next := s.project.DeepCopy()
	next.Name = "next"
	all := func(p *v1alpha1.Project) []*git.Repository {
		repos, err := s.repos.All(t.Context(), p)
		g.Expect(err).NotTo(HaveOccurred())
		return repos
	}
	for _, repo := range all(s.project) {
		g.Expect(repo.Init(t.Context(), git.InitOptions{})).To(Succeed())
	}
	g.Expect(h.RemoveUnused(t.Context())).To(BeFalse(), "there is a wiki")
	to, err := s.repos.Audited(lines.Log).Of(t.Context(), next)
	g.Expect(err).NotTo(HaveOccurred())
	for range 2 {
		g.Expect(h.Move(t.Context(), to)).To(Succeed())
	}
	for i, repo := range all(next) {
		g.Expect(repo.Check()).To(Succeed())
		g.Expect(all(s.project)[i].Check()).To(MatchError(git.ErrNotFound))
	}
	g.Expect(to.Remove(t.Context())).To(Succeed())
	for _, repo := range all(next) {
		g.Expect(repo.Check()).To(MatchError(git.ErrNotFound))
	}
	g.Expect(lines.Events()).To(HaveExactElements(HaveField("Action", "move"), HaveField("Action", "destroy")))
}

func TestHandle_logsFailedImportWithoutCredentials(t *testing.T) {
	g := NewWithT(t)
	_, h, lines := handled(t)
	g.Expect(h.Remove(t.Context())).To(Succeed())
	g.Expect(h.Import(t.Context(), transfer.ImportOptions{URL: "ssh://mirror:correct-horse@git.example.com/a.git?token=correct-horse#correct-horse"})).NotTo(Succeed())
	g.Expect(lines.Events()).To(ContainElement(And(
		HaveField("Action", "import"), HaveField("Result", audit.Failed), HaveField("Target", "ssh://git.example.com/a.git"),
	)))
	g.Expect(string(lines.Text())).NotTo(ContainSubstring("correct-horse"))
}

func TestHandle_logsFormerProjectOfRetainedRepository(t *testing.T) {
	g := NewWithT(t)
	s, _, lines := handled(t)
	s.project.Status.FullPath = "acme/web"
	retained := repository.NewRetained(s.project, "n", "acme/web", s.project.CreationTimestamp.Time)
	h, err := s.repos.Audited(lines.Log).OfRetained(t.Context(), retained)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(h.Remove(audit.WithReason(t.Context(), audit.Event{Action: "purge"}))).To(Succeed())
	g.Expect(lines.Events()).To(ConsistOf(And(HaveField("Action", "purge"), HaveField("About", HaveValue(Equal(
		audit.Object{Kind: "Project", Namespace: "acme", Name: "web", ID: 7, UID: "web", Path: "acme/web"},
	))))))
}
