package crash

import (
	cryptorand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/soak"
)

// rounds is the number of rounds: Forgeplane is killed alone and together with what it has started, in turn.
var rounds = soak.Times(2, 40)

const (
	// files and fileSize make the imported repository so large that an import is likely to be interrupted.
	files    = 200
	fileSize = 20 << 10
)

// A round creates a project, imports another one and deletes the projects of the previous round, while clients push. It kills Forgeplane at a
// random moment: alone in odd rounds, and with every process that it has started in even rounds. The moments come from Ginkgo's seed, which Ginkgo
// prints first.
var _ = Describe("Forgeplane, killed in the middle of its work", Ordered, func() {
	var chance *rand.Rand
	var importURL string
	var pushers []*pusher
	var chest *kept
	var whole time.Duration // the duration of a round without interruptions
	hit := map[string]int{}

	begin := func(round int) {
		GinkgoHelper()
		shard := []string{"left", "right"}[round%2]
		create(project(made(round), shard))
		create(project(imported(round), shard).ImportedFrom(importURL))
	}

	BeforeAll(func() {
		seed := uint64(GinkgoRandomSeed()) //nolint:gosec // any number can be a seed
		chance = rand.New(rand.NewPCG(seed, seed))
		importURL = "file://" + newSource()
		machine.shard("left")
		machine.shard("right")
		create(project("busy-left", "left"))
		create(project("busy-right", "right"))
		expectAllReady("busy-left", "busy-right")
		for i, name := range []string{"busy-left", "busy-right", "busy-left"} {
			pushers = append(pushers, newPusher(&machine.server, fmt.Sprintf("line-%d", i), name))
		}
		chest = newKept("chest", "left")
		begun := time.Now()
		begin(0)
		expectAllReady("busy-left", "busy-right", "chest", made(0), imported(0))
		whole = time.Since(begun)
	})

	for round := 1; round <= rounds; round++ {
		It(fmt.Sprintf("comes back whole, time %d of %d", round, rounds), func() {
			crowd := work(pushers)
			// Early moments are more likely, because most of the work happens then.
			moment := time.Duration(chance.Float64() * chance.Float64() * float64(whole))
			elapsed := time.After(moment)
			begin(round)
			chest.toggle()
			remove(made(round-1), imported(round-1))
			<-elapsed
			how := "alone"
			if machine.kill(); round%2 == 0 {
				how = "with all that it had started"
				machine.killWorkers()
				// The age of a lock is the only sign that it has lost its holder.
				machine.ageLocks()
			}
			cut := len(crowd.join())
			state := append(interrupted(round), chest.interrupted()...)
			for _, what := range state {
				hit[what]++
			}
			hit["a push"] += cut
			started := machine.start()
			begun := time.Now()
			expectAllReady(append(chest.declared(), made(round), imported(round), "busy-left", "busy-right")...)
			ready := time.Since(begun)
			chest.expectKept()
			expectWhole(pushers)
			AddReportEntry(fmt.Sprintf("killed %s after %s, in the middle of %q and %d pushes; started in %s, all Ready %s later", how,
				moment.Round(time.Millisecond), state, cut, started.Round(time.Millisecond), ready.Round(time.Millisecond)),
				ReportEntryVisibilityAlways)
		})
	}

	AfterAll(func() { reportHits(hit, "a creation", "an import", "a deletion", "a push") })
})

// reportHits puts into the report which kinds of work were interrupted, and how often. The many rounds of "make soak" must interrupt each of the
// wanted kinds at least once.
func reportHits[K ~string](hit map[K]int, wanted ...K) {
	GinkgoHelper()
	AddReportEntry(fmt.Sprintf("interrupted: %v", hit), ReportEntryVisibilityAlways)
	if soak.Running() {
		for _, kind := range wanted {
			Expect(hit).To(HaveKeyWithValue(kind, BeNumerically(">", 0)))
		}
	}
}

func made(round int) string     { return fmt.Sprintf("made-%d", round) }
func imported(round int) string { return fmt.Sprintf("imported-%d", round) }

// newSource creates a repository to import.
func newSource() string {
	GinkgoHelper()
	shell := admin.As("somebody", "")
	shell.Dir = shell.Space()
	shell.Git("init", "--quiet", "--initial-branch=main")
	for i := range files {
		Expect(os.WriteFile(filepath.Join(shell.Dir, fmt.Sprint(i)), []byte(noise(fileSize)), 0o644)).To(Succeed())
	}
	shell.Git("add", ".")
	shell.Git("commit", "--quiet", "--message", "Everything")
	return shell.Dir
}

// noise returns different random bytes each time, which cannot be compressed.
func noise(size int) string {
	content := make([]byte, size)
	_, _ = cryptorand.Read(content)
	return string(content)
}

// interrupted returns the work of a round that had not finished.
func interrupted(round int) (what []string) {
	GinkgoHelper()
	if !isReady(read(made(round))) {
		what = append(what, "a creation")
	}
	if !isReady(read(imported(round))) {
		what = append(what, "an import")
	}
	if read(made(round-1)) != nil || read(imported(round-1)) != nil {
		what = append(what, "a deletion")
	}
	return what
}
