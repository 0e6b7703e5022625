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
)

const (
	rounds = 20
	// files and fileSize make the repository that is imported: an import is to take long enough to be hit.
	files    = 200
	fileSize = 20 << 10
)

// A round makes a project, imports another one and deletes those of the round before, all while clients push, and kills
// Forgeplane at a random moment: in odd rounds alone, in even rounds with every process that it has started. The moments
// come from Ginkgo's seed, which it prints first.
var _ = Describe("Forgeplane, killed in the middle of its work", Ordered, func() {
	var chance *rand.Rand
	var importURL string
	var pushers []*pusher
	var chest *kept
	var whole time.Duration // what the work of a round takes when nobody disturbs it
	hit := map[string]int{}

	begin := func(round int) {
		GinkgoHelper()
		shard := []string{"left", "right"}[round%2]
		create(project(made(round), shard))
		create(project(imported(round), shard).ImportedFrom(importURL))
	}

	BeforeAll(func() {
		seed := uint64(GinkgoRandomSeed()) //nolint:gosec // any number is a seed
		chance = rand.New(rand.NewPCG(seed, seed))
		importURL = "file://" + newSource()
		machine.shard("left")
		machine.shard("right")
		create(project("busy-left", "left"))
		create(project("busy-right", "right"))
		expectAllReady("busy-left", "busy-right")
		for i, name := range []string{"busy-left", "busy-right", "busy-left"} {
			pushers = append(pushers, newPusher(fmt.Sprintf("line-%d", i), name))
		}
		chest = newKept("chest", "left")
		begun := time.Now()
		begin(0)
		expectAllReady("busy-left", "busy-right", "chest", made(0), imported(0))
		whole = time.Since(begun)
	})

	for round := 1; round <= rounds; round++ {
		It(fmt.Sprintf("comes back whole, time %d of %d", round, rounds), func() {
			crowd := push(pushers)
			// Early moments are more likely: that is when most is under way.
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
				// Whether a lock has lost its holder only its age can tell.
				machine.ageLocks()
			}
			cut := crowd.join()
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

	It("was in the middle of each kind of work at least once", func() {
		for _, what := range []string{"a creation", "an import", "a deletion", "a push", "a retention or adoption"} {
			Expect(hit[what]).To(BeNumerically(">", 0), what)
		}
	})
})

func made(round int) string     { return fmt.Sprintf("made-%d", round) }
func imported(round int) string { return fmt.Sprintf("imported-%d", round) }

// newSource makes a repository to import.
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

// noise returns bytes that cannot be compressed, no two alike.
func noise(size int) string {
	content := make([]byte, size)
	_, _ = cryptorand.Read(content)
	return string(content)
}

// interrupted says what of a round's work had not come to its end.
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
