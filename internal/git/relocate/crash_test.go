package relocate_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/relocate"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
	"github.com/forgeplane/forgeplane/test/seed"
	"github.com/forgeplane/forgeplane/test/soak"
)

// These are set if this executable runs as a process that moves two repositories and is killed: at which point, at which of the times that
// it is reached, where the repositories are, and whether the switch fails.
const pointEnv, timeEnv, fromEnv, toEnv, failEnv = "FORGEPLANE_TEST_POINT", "FORGEPLANE_TEST_TIME", "FORGEPLANE_TEST_FROM", "FORGEPLANE_TEST_TO", "FORGEPLANE_TEST_FAIL"

// repositories are the names of the repositories in both storages, and liveFile is the file of the destination that says that it is live.
var repositories = []string{"a.git", "a.wiki.git"}

const liveFile = "live"

// removeEnv is set if this executable runs as a process that removes a retired repository.
const removeEnv = "FORGEPLANE_TEST_REMOVE"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(pointEnv) != "":
		fmt.Fprintln(os.Stderr, "it was not killed:", dieMoving(context.Background()))
		os.Exit(1)
	case os.Getenv(removeEnv) != "":
		if err := removeRetired(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		os.Exit(m.Run())
	}
}

// removeRetired removes a repository, and writes a line to stdout when it begins with that.
func removeRetired(ctx context.Context) error {
	e, err := git.NewEngine(ctx, git.Options{})
	if err != nil {
		return err
	}
	r, err := e.Repository(os.Getenv(fromEnv), repositories[0])
	if err != nil {
		return err
	}
	return r.RemoveRetiredIf(ctx, "one", func(context.Context) error {
		_, err := fmt.Fprintln(os.Stdout, "removing")
		return err
	})
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

func TestRemoveRetired_endsAfterKills(t *testing.T) {
	g, c := NewWithT(t), gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	executable, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	chance := rand.New(rand.NewPCG(seed.Value(), 1))
	// whole is the duration of a removal that is not killed, which the first one is.
	var whole time.Duration
	hit := 0
	for round := range soak.Times(2, 100) + 1 {
		from, to, e := t.TempDir(), t.TempDir(), gittest.NewEngine(t)
		moved, err := pairsIn(e, from, to)
		g.Expect(err).NotTo(HaveOccurred())
		p := moved[0]
		g.Expect(p.From.Init(t.Context(), git.InitOptions{})).To(Succeed())
		c.Git(t, "push", "--quiet", "--mirror", p.From.Dir())
		before := shown(t, p.From)
		g.Expect(relocate.Move(t.Context(), pairs(p), options())).To(Succeed())
		for n := range 2000 { // so that the removal takes a while
			g.Expect(os.WriteFile(filepath.Join(p.From.Dir(), "objects/pack", fmt.Sprint(n)), nil, 0o644)).To(Succeed())
		}

		cmd := exec.CommandContext(t.Context(), executable)
		cmd.Env, cmd.Stderr = append(os.Environ(), removeEnv+"=yes", fromEnv+"="+from), os.Stderr
		out, err := cmd.StdoutPipe()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cmd.Start()).To(Succeed())
		g.Expect(bufio.NewReader(out).ReadString('\n')).To(Equal("removing\n"))
		begun := time.Now()
		if round > 0 {
			<-time.After(time.Duration(chance.Float64() * float64(whole)))
			g.Expect(cmd.Process.Kill()).To(Succeed())
		}
		err = cmd.Wait()
		if round == 0 {
			g.Expect(err).NotTo(HaveOccurred())
			whole = time.Since(begun)
		} else if gittest.Exists(p.From.Dir()) || gittest.Exists(p.From.Dir()+".trash") {
			hit++
		}

		g.Expect(p.From.RemoveRetired(t.Context(), "one")).To(Succeed())
		nothingLeft(t, p.From)
		g.Expect(shown(t, p.To)).To(Equal(before))
		writable(t, c, p.To)
	}
	t.Logf("%d removals were interrupted", hit)
}
