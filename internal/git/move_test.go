package git_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/refs"
)

func TestMove_leavesTheRepositoryAtOnePlace(t *testing.T) {
	g := NewWithT(t)
	e, storage := gittest.NewEngine(t), t.TempDir()
	from, to := gittest.Repository(t, e, storage, "aa/from.git"), gittest.Repository(t, e, storage, "bb/to.git")
	g.Expect(from.Move(t.Context(), to)).To(MatchError(git.ErrNotFound), "at neither place")
	g.Expect(from.Move(t.Context(), from)).To(MatchError(git.ErrNotFound))
	g.Expect(from.Init(t.Context(), git.InitOptions{DefaultBranch: "trunk"})).To(Succeed())
	g.Expect(from.Move(t.Context(), to)).To(Succeed())
	g.Expect(from.Check()).To(MatchError(git.ErrNotFound))
	g.Expect(refs.ReadHead(t.Context(), to)).To(HaveField("Branch", "trunk"))
	g.Expect(from.Move(t.Context(), to)).To(Succeed(), "it is there already")
	g.Expect(to.Move(t.Context(), to)).To(Succeed())
	g.Expect(from.Init(t.Context(), git.InitOptions{})).To(Succeed())
	g.Expect(from.Move(t.Context(), to)).To(MatchError(ContainSubstring("already exists")))
	g.Expect(refs.ReadHead(t.Context(), to)).To(HaveField("Branch", "trunk"), "nothing is replaced")
}
