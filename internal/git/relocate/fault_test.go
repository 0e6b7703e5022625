package relocate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/relocate"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
)

var errRefused = errors.New("refused")

// at returns options that call do at a point.
func at(point string, do func()) relocate.Options {
	o := options()
	o.Reached = func(now string) {
		if now == point {
			do()
		}
	}
	return o
}

func TestMove_isUndoneIfTheSwitchFails(t *testing.T) {
	g := NewWithT(t)
	s := opened(t, "sha1")
	wiki := place(t, s.client)
	o := options()
	o.Switch = func(context.Context) error { return errRefused }
	g.Expect(relocate.Move(t.Context(), []relocate.Pair{s.pair, wiki}, o)).To(MatchError(errRefused))
	untouched(t, s)
	nothingLeft(t, wiki.To)
	writable(t, s.client, wiki.From)
	o.By, o.Switch = "two", now
	g.Expect(relocate.Move(t.Context(), []relocate.Pair{s.pair, wiki}, o)).To(Succeed())
}

func TestMove_isUndoneIfItsContextEnds(t *testing.T) {
	for _, point := range []string{relocate.PointStaged, relocate.PointCopied, relocate.PointClosed, relocate.PointPlaced, relocate.PointRetired, relocate.PointSwitching} {
		t.Run(point, func(t *testing.T) {
			g := NewWithT(t)
			s := opened(t, "sha1")
			ctx, cancel := context.WithCancel(t.Context())
			o := at(point, cancel)
			o.Switch = func(context.Context) error {
				t.Error("it switches")
				return nil
			}
			g.Expect(relocate.Move(ctx, pairs(s.pair), o)).To(MatchError(context.Canceled))
			untouched(t, s)
		})
	}
}

func TestMove_leavesEverythingIfTheOutcomeIsUnknown(t *testing.T) {
	g := NewWithT(t)
	s := opened(t, "sha1")
	o := options()
	o.Switch = func(context.Context) error { return fmt.Errorf("no answer: %w", relocate.ErrUndecided) }
	g.Expect(relocate.Move(t.Context(), pairs(s.pair), o)).To(MatchError(relocate.ErrUndecided))
	g.Expect(s.pair.From.RetiredBy()).To(Equal("one"))
	g.Expect(s.pair.To.Check()).To(Succeed())
	o.By = "two"
	g.Expect(relocate.Move(t.Context(), pairs(s.pair), o)).NotTo(Succeed())
	g.Expect(s.pair.From.RetiredBy()).To(Equal("one"), "another attempt changes nothing")

	no := func(context.Context) error { return errRefused }
	g.Expect(relocate.Undo(t.Context(), pairs(s.pair), no)).To(MatchError(errRefused))
	g.Expect(s.pair.To.Check()).To(Succeed())
	for range 2 {
		g.Expect(relocate.Undo(t.Context(), pairs(s.pair), now)).To(Succeed())
	}
	untouched(t, s)
}

func TestUndo_failsWhileAnAttemptIsAlive(t *testing.T) {
	for _, point := range []string{relocate.PointClosed, relocate.PointPlaced, relocate.PointRetired, relocate.PointSwitching, relocate.PointSwitched} {
		t.Run(point, func(t *testing.T) {
			g := NewWithT(t)
			s := opened(t, "sha1")
			confirmed := func(context.Context) error {
				t.Error("it asks")
				return nil
			}
			o := at(point, func() {
				g.Expect(relocate.Undo(t.Context(), pairs(s.pair), confirmed)).To(MatchError(git.ErrClosed))
			})
			g.Expect(relocate.Move(t.Context(), pairs(s.pair), o)).To(Succeed())
			writable(t, s.client, s.pair.To)
		})
	}
}

// An attempt that still copies does not count as alive: nothing depends on it.
func TestUndo_makesAnAttemptFailThatStillCopies(t *testing.T) {
	g := NewWithT(t)
	s := opened(t, "sha1")
	o := at(relocate.PointSynced, func() { g.Expect(relocate.Undo(t.Context(), pairs(s.pair), now)).To(Succeed()) })
	g.Expect(relocate.Move(t.Context(), pairs(s.pair), o)).NotTo(Succeed())
	untouched(t, s)
}

func TestUndo_keepsACopyWithoutASource(t *testing.T) {
	g := NewWithT(t)
	s := opened(t, "sha1")
	g.Expect(relocate.Move(t.Context(), pairs(s.pair), options())).To(Succeed())
	g.Expect(s.pair.From.RemoveRetired(t.Context(), "one")).To(Succeed())
	g.Expect(relocate.Undo(t.Context(), pairs(s.pair), now)).NotTo(Succeed())
	writable(t, s.client, s.pair.To)
}

func TestUndo_reinstatesTheSourceIfTheOtherStorageIsMissing(t *testing.T) {
	g := NewWithT(t)
	s := opened(t, "sha1")
	o := options()
	o.Switch = func(context.Context) error { return relocate.ErrUndecided }
	g.Expect(relocate.Move(t.Context(), pairs(s.pair), o)).To(MatchError(relocate.ErrUndecided))
	storage := strings.TrimSuffix(s.pair.To.Dir(), "/a/b.git")
	g.Expect(os.Rename(storage, storage+"-away")).To(Succeed())
	g.Expect(relocate.Undo(t.Context(), pairs(s.pair), now)).To(MatchError(git.ErrStorageMissing))
	writable(t, s.client, s.pair.From)
	g.Expect(os.Rename(storage+"-away", storage)).To(Succeed())
	g.Expect(relocate.Undo(t.Context(), pairs(s.pair), now)).To(Succeed())
	untouched(t, s)
}

func TestMove_waitsForWritesUpToALimit(t *testing.T) {
	g := NewWithT(t)
	s := opened(t, "sha1")
	_, end, err := s.pair.From.BeginWrite(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	o := options()
	o.Drain = 50 * time.Millisecond
	g.Expect(relocate.Move(t.Context(), pairs(s.pair), o)).To(MatchError(git.ErrBusy))
	end()
	untouched(t, s)
}

func TestMove_ofOneRepositoryTwiceAtOnce(t *testing.T) {
	g := NewWithT(t)
	s := opened(t, "sha1")
	elsewhere := relocate.Pair{From: s.pair.From, To: gittest.Repository(t, gittest.NewEngine(t), t.TempDir(), "a/b.git")}
	second := options()
	second.By = "two"
	for _, point := range []string{relocate.PointClosed, relocate.PointRetired} {
		for _, to := range []relocate.Pair{s.pair, elsewhere} {
			o := at(point, func() {
				g.Expect(relocate.Move(t.Context(), pairs(to), second)).To(Or(MatchError(git.ErrClosed), MatchError(ContainSubstring("already something"))))
			})
			o.Switch = func(context.Context) error { return errRefused }
			g.Expect(relocate.Move(t.Context(), pairs(s.pair), o)).To(MatchError(errRefused))
			untouched(t, s)
			nothingLeft(t, elsewhere.To)
		}
	}
	// The second overtakes the first one.
	o := at(relocate.PointSynced, func() { g.Expect(relocate.Move(t.Context(), pairs(s.pair), second)).To(Succeed()) })
	g.Expect(relocate.Move(t.Context(), pairs(s.pair), o)).To(MatchError(git.ErrClosed))
	g.Expect(s.pair.From.RetiredBy()).To(Equal("two"))
	writable(t, s.client, s.pair.To)
	tidy(t, s.pair.To)
}

func TestMove_refusesABadName(t *testing.T) {
	s := opened(t, "sha1")
	for _, by := range []string{"", "..", "a/b", "A", strings.Repeat("a", 101)} {
		o := options()
		o.By = by
		NewWithT(t).Expect(relocate.Move(t.Context(), pairs(s.pair), o)).NotTo(Succeed())
	}
	untouched(t, s)
}

func TestMove_ofADamagedRepository(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, s *shop){
		"an object is missing": func(t *testing.T, s *shop) {
			NewWithT(t).Expect(os.Remove(filepath.Join(s.pair.From.Dir(), "objects", s.head[:2], s.head[2:]))).To(Succeed())
		},
		"an older object is missing": func(t *testing.T, s *shop) {
			id := s.client.Git(t, "rev-parse", "HEAD~2:a")
			NewWithT(t).Expect(os.Remove(filepath.Join(s.pair.From.Dir(), "objects", id[:2], id[2:]))).To(Succeed())
		},
		"a ref is damaged": func(t *testing.T, s *shop) {
			NewWithT(t).Expect(os.WriteFile(filepath.Join(s.pair.From.Dir(), "refs/heads/main"), []byte("x"), 0o644)).To(Succeed())
		},
		"its objects are elsewhere": func(t *testing.T, s *shop) {
			NewWithT(t).Expect(os.MkdirAll(filepath.Join(s.pair.From.Dir(), "objects/info"), 0o755)).To(Succeed())
			NewWithT(t).Expect(os.WriteFile(filepath.Join(s.pair.From.Dir(), "objects/info/alternates"), []byte("/x\n"), 0o644)).To(Succeed())
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := opened(t, "sha1")
			damage(t, s)
			before := files(t, s.pair.From.Dir())
			g.Expect(relocate.Move(t.Context(), pairs(s.pair), options())).NotTo(Succeed())
			nothingLeft(t, s.pair.To)
			g.Expect(files(t, s.pair.From.Dir())).To(Equal(before))
			_, end, err := s.pair.From.BeginWrite(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			end()
		})
	}
}

// A push is damaged after everything before it was checked.
func TestMove_verifiesWhatCameLast(t *testing.T) {
	g := NewWithT(t)
	s := opened(t, "sha1")
	o := at(relocate.PointSynced, func() {
		id := s.client.Commit(t, "b", "new")
		s.client.Git(t, "push", "--quiet", s.pair.From.Dir(), "main")
		blob := s.client.Git(t, "rev-parse", id+":b")
		g.Expect(os.Remove(filepath.Join(s.pair.From.Dir(), "objects", blob[:2], blob[2:]))).To(Succeed())
	})
	g.Expect(relocate.Move(t.Context(), pairs(s.pair), o)).To(MatchError(ContainSubstring("verifying")))
	nothingLeft(t, s.pair.To)
	g.Expect(s.pair.From.Closed()).To(BeFalse())
}

// files lists the files of a repository, except those of its fence.
func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !git.Bound(entry.Name()) {
			content, err := os.ReadFile(path)
			all = append(all, path+string(content))
			return err
		}
		return err
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return all
}

func TestMove_toAMissingStorage(t *testing.T) {
	g := NewWithT(t)
	s := opened(t, "sha1")
	storage := strings.TrimSuffix(s.pair.To.Dir(), "/a/b.git")
	g.Expect(os.RemoveAll(storage)).To(Succeed())
	g.Expect(relocate.Move(t.Context(), pairs(s.pair), options())).To(MatchError(git.ErrStorageMissing))
	g.Expect(storage).NotTo(BeAnExistingFile())
	writable(t, s.client, s.pair.From)
}

func TestMove_toAStorageThatVanishes(t *testing.T) {
	for _, point := range []string{relocate.PointStaged, relocate.PointSynced, relocate.PointClosed, relocate.PointFlushed, relocate.PointRetired} {
		t.Run(point, func(t *testing.T) {
			g := NewWithT(t)
			s := opened(t, "sha1")
			storage := strings.TrimSuffix(s.pair.To.Dir(), "/a/b.git")
			o := at(point, func() {
				s.client.Commit(t, "b", "new")
				s.client.Git(t, "push", "--quiet", s.pair.From.Dir(), "main")
				g.Expect(os.RemoveAll(storage)).To(Succeed())
			})
			o.Switch = func(context.Context) error { return errRefused }
			g.Expect(relocate.Move(t.Context(), pairs(s.pair), o)).To(Or(MatchError(git.ErrStorageMissing), MatchError(errRefused)))
			g.Expect(storage).NotTo(BeAnExistingFile())
			writable(t, s.client, s.pair.From)
		})
	}
}

func TestMove_toAPlaceThatIsTaken(t *testing.T) {
	g := NewWithT(t)
	s := opened(t, "sha1")
	o := at(relocate.PointFlushed, func() { g.Expect(s.pair.To.Init(t.Context(), git.InitOptions{})).To(Succeed()) })
	g.Expect(relocate.Move(t.Context(), pairs(s.pair), o)).NotTo(Succeed())
	g.Expect(s.pair.To.Empty()).To(BeTrue())
	writable(t, s.client, s.pair.From)
	g.Expect(relocate.Move(t.Context(), pairs(s.pair), options())).To(MatchError(ContainSubstring("already something")))
	g.Expect(s.pair.To.Empty()).To(BeTrue())
}

func TestMove_toAFullDisk(t *testing.T) {
	g := NewWithT(t)
	s := opened(t, "sha1")
	s.pair.To = gittest.Repository(t, s.pair.From.Engine(), gittest.Mount(t, "size=1m"), "a/b.git")
	s.client.Commit(t, "large", gittest.Incompressible(2<<20))
	s.client.Git(t, "push", "--quiet", s.pair.From.Dir(), "main")
	g.Expect(relocate.Move(t.Context(), pairs(s.pair), options())).To(MatchError(syscall.ENOSPC))
	untouched(t, s)
}

// TestMove_fromAFullDisk is the usual reason for a move.
func TestMove_fromAFullDisk(t *testing.T) {
	g := NewWithT(t)
	s := opened(t, "sha1")
	full := gittest.Mount(t, "size=1m")
	from := gittest.Repository(t, s.pair.From.Engine(), full, "a/b.git")
	g.Expect(os.MkdirAll(filepath.Dir(from.Dir()), 0o755)).To(Succeed())
	s.client.Git(t, "clone", "--quiet", "--mirror", s.pair.From.Dir(), from.Dir())
	s.pair.From = from
	want := shown(t, from)
	filler, err := os.Create(filepath.Join(full, "filler"))
	g.Expect(err).NotTo(HaveOccurred())
	_, err = filler.Write(make([]byte, 2<<20))
	g.Expect(err).To(MatchError(syscall.ENOSPC))
	g.Expect(filler.Close()).To(Succeed())

	g.Expect(relocate.Move(t.Context(), pairs(s.pair), options())).To(Succeed())
	g.Expect(shown(t, s.pair.To)).To(Equal(want))
	g.Expect(upkeep.Fsck(t.Context(), s.pair.To, true)).To(Succeed())
	g.Expect(s.pair.From.RemoveRetired(t.Context(), "one")).To(Succeed())
	g.Expect(from.Dir()).NotTo(BeADirectory())
}

func TestMove_toADiskThatBecomesFull(t *testing.T) {
	g := NewWithT(t)
	s := opened(t, "sha1")
	storage := gittest.Mount(t, "size=1m")
	s.pair.To = gittest.Repository(t, s.pair.From.Engine(), storage, "a/b.git")
	o := at(relocate.PointSynced, func() {
		s.client.Commit(t, "large", gittest.Incompressible(2<<20))
		s.client.Git(t, "push", "--quiet", s.pair.From.Dir(), "main")
	})
	g.Expect(relocate.Move(t.Context(), pairs(s.pair), o)).To(MatchError(syscall.ENOSPC))
	untouched(t, s)
}

func TestMove_toAReadOnlyStorage(t *testing.T) {
	g := NewWithT(t)
	s := opened(t, "sha1")
	s.pair.To = gittest.Repository(t, s.pair.From.Engine(), gittest.Mount(t, "ro,size=1m"), "a/b.git")
	g.Expect(relocate.Move(t.Context(), pairs(s.pair), options())).To(MatchError(syscall.EROFS))
	untouched(t, s)
}
