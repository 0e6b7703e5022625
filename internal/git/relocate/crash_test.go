package relocate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/relocate"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
)

// These are set if this executable runs as a process that moves two repositories and is killed: at which point, at which of the times that
// it is reached, where the repositories are, and whether the switch fails.
const pointEnv, timeEnv, fromEnv, toEnv, failEnv = "FORGEPLANE_TEST_POINT", "FORGEPLANE_TEST_TIME", "FORGEPLANE_TEST_FROM", "FORGEPLANE_TEST_TO", "FORGEPLANE_TEST_FAIL"

// repositories are the names of the repositories in both storages, and liveFile is the file of the destination that says that it is live.
var repositories = []string{"a.git", "a.wiki.git"}

const liveFile = "live"

func TestMain(m *testing.M) {
	if os.Getenv(pointEnv) == "" {
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, "it was not killed:", dieMoving(context.Background()))
	os.Exit(1)
}

// dieMoving moves the repositories until it kills itself.
func dieMoving(ctx context.Context) error {
	e, err := git.NewEngine(ctx, git.Options{})
	if err != nil {
		return err
	}
	moved, err := pairsIn(e, os.Getenv(fromEnv), os.Getenv(toEnv))
	if err != nil {
		return err
	}
	times, err := strconv.Atoi(os.Getenv(timeEnv))
	if err != nil {
		return err
	}
	o := relocate.Options{By: "one", Reached: func(point string) {
		if point != os.Getenv(pointEnv) {
			return
		}
		if times--; times == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			<-make(chan struct{}) // the signal takes a moment
		}
	}}
	o.Switch = func(context.Context) error {
		if os.Getenv(failEnv) != "" {
			return errors.New("refused")
		}
		return os.WriteFile(filepath.Join(os.Getenv(toEnv), liveFile), nil, 0o644)
	}
	return relocate.Move(ctx, moved, o)
}

func pairsIn(e *git.Engine, from, to string) (all []relocate.Pair, err error) {
	for _, name := range repositories {
		var p relocate.Pair
		if p.From, err = e.Repository(from, name); err != nil {
			return nil, err
		}
		if p.To, err = e.Repository(to, name); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func TestMove_leavesOneLiveCopyIfItIsKilled(t *testing.T) {
	type death struct {
		point string
		time  int
		fail  string
	}
	var deaths []death
	for _, point := range []string{
		relocate.PointStaged, relocate.PointCopied, relocate.PointChecked, relocate.PointSynced, relocate.PointClosed, relocate.PointCaughtUp,
		relocate.PointVerified, relocate.PointFlushed, relocate.PointPlaced, relocate.PointRetired,
	} {
		deaths = append(deaths, death{point, 1, ""})
	}
	for _, point := range []string{relocate.PointStaged, relocate.PointClosed, relocate.PointPlaced, relocate.PointRetired} {
		deaths = append(deaths, death{point, 2, ""})
	}
	deaths = append(deaths, death{relocate.PointSwitching, 1, ""}, death{relocate.PointSwitched, 1, ""}, death{relocate.PointOpened, 1, ""})
	for _, point := range []string{relocate.PointWithdrawn, relocate.PointReinstated, relocate.PointOpened, relocate.PointUndone} {
		deaths = append(deaths, death{point, 1, "yes"})
	}
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	c.Git(t, "tag", "v1")
	for _, d := range deaths {
		t.Run(fmt.Sprint(d.point, " ", d.time, d.fail), func(t *testing.T) {
			g := NewWithT(t)
			from, to := t.TempDir(), t.TempDir()
			e := gittest.NewEngine(t)
			moved, err := pairsIn(e, from, to)
			g.Expect(err).NotTo(HaveOccurred())
			for _, p := range moved {
				g.Expect(p.From.Init(t.Context(), git.InitOptions{})).To(Succeed())
				c.Git(t, "push", "--quiet", "--mirror", p.From.Dir())
			}
			before := shown(t, moved[0].From)

			executable, err := os.Executable()
			g.Expect(err).NotTo(HaveOccurred())
			cmd := exec.CommandContext(t.Context(), executable)
			cmd.Env = append(os.Environ(), pointEnv+"="+d.point, timeEnv+"="+strconv.Itoa(d.time), fromEnv+"="+from, toEnv+"="+to, failEnv+"="+d.fail)
			out, err := cmd.CombinedOutput()
			g.Expect(err).To(MatchError(ContainSubstring("killed")), string(out))

			switched := gittest.Exists(filepath.Join(to, liveFile))
			isLive := func(r *git.Repository) {
				g.Expect(shown(t, r)).To(Equal(before))
				g.Expect(upkeep.Fsck(t.Context(), r, true)).To(Succeed())
				writable(t, c, r)
				tidy(t, r)
			}
			if switched {
				for _, p := range moved {
					isLive(p.To)
					_, _, err := p.From.BeginWrite(t.Context())
					g.Expect(err).To(MatchError(git.ErrClosed))
					g.Expect(p.From.RemoveRetired(t.Context(), "one")).To(Succeed())
					nothingLeft(t, p.From)
				}
				return
			}
			g.Expect(relocate.Undo(t.Context(), moved, now)).To(Succeed())
			for _, p := range moved {
				isLive(p.From)
				nothingLeft(t, p.To)
			}
			o := options()
			g.Expect(relocate.Move(t.Context(), moved, o)).To(Succeed(), "the next attempt")
		})
	}
}
