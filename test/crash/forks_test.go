package crash

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// forkRound is a round in which forks begin while their origin is pushed to, loses old garbage, and perhaps is deleted.
type forkRound struct {
	origin *origin
	// whole has all branches of the origin, and part has one.
	whole, part string
	// deletes reports whether the origin is deleted.
	deletes bool
	// known is the number of pushes that the origin had accepted before the forks were declared.
	known int
}

func newForkRound(number int, importURL string) *forkRound {
	GinkgoHelper()
	r := &forkRound{
		origin: newOrigin(fmt.Sprintf("origin-%d", number), importURL), deletes: number%4 >= 2,
		whole: fmt.Sprintf("whole-%d", number), part: fmt.Sprintf("part-%d", number),
	}
	r.known = len(r.origin.pusher.commits)
	return r
}

// begin starts all work of the round. The moment of the deletion is a part of the given duration.
func (r *forkRound) begin(token string, moment time.Duration) {
	GinkgoHelper()
	r.origin.maintain(token)
	origin := v1alpha1.Reference{Name: r.origin.name}
	create(project(r.whole, "forks").ForkOf(origin))
	create(project(r.part, "forks").ForkOf(origin, r.origin.pusher.name))
	if r.deletes {
		<-time.After(moment)
		remove(r.origin.name)
	}
}

// interrupted returns the work of the round that has not finished.
func (r *forkRound) interrupted() (what []string) {
	GinkgoHelper()
	for _, name := range []string{r.whole, r.part} {
		if !isReady(read(name)) {
			what = append(what, "a fork")
		}
	}
	switch exists := read(r.origin.name) != nil; {
	case r.deletes && exists:
		what = append(what, "a deletion")
	case exists && r.origin.hasGarbage():
		what = append(what, "maintenance")
	}
	return what
}

// settle waits until the work of the round is done, and returns the forks that began. If the origin is deleted, a fork can be too late, and says so.
func (r *forkRound) settle() (forks []string) {
	GinkgoHelper()
	if r.deletes {
		Eventually(read).WithArguments(r.origin.name).WithPolling(polling).Should(BeNil())
	}
	for _, name := range []string{r.whole, r.part} {
		var ready metav1.Condition
		Eventually(func() bool {
			p := read(name)
			ready = condition(p, p.Status.CommonStatus)
			return isReady(p) || r.deletes && ready.Reason == v1alpha1.ReasonReferenceNotFound
		}).WithPolling(polling).Should(BeTrue(), func() string { return name + ": " + ready.Message })
		if ready.Status == metav1.ConditionTrue {
			forks = append(forks, name)
			continue
		}
		Expect(ready.Message).To(HavePrefix("forkOf: project " + r.origin.name + ": "))
		expectRemoved(name)
	}
	return forks
}

// expectFork expects that a fork has the branches that it was declared with, and exactly the objects that these need.
func (r *forkRound) expectFork(name string) {
	GinkgoHelper()
	directory, refs, p := directoryOf(name), refsOf(name), r.origin.pusher
	Expect(admin.Git("--git-dir="+directory, "fsck", "--full", "--strict", "--unreachable", "--no-progress")).To(BeEmpty(), directory)
	Expect(filepath.Join(directory, "objects/info/alternates")).NotTo(BeAnExistingFile())
	if name == r.part {
		Expect(refs).To(HaveLen(1))
	} else {
		Expect(refs).To(HaveKeyWithValue("refs/heads/beside", r.origin.beside))
		for number := range r.known {
			Expect(refs).To(HaveKeyWithValue(p.single(number), p.commits[number]))
		}
	}
	Expect(slices.Index(p.commits, refs[p.line()])).To(BeNumerically(">=", r.known-1), "the branch is at least as new as the declaration of the fork")
}

// A round declares forks of a project, one with all its branches and one with a single branch. Meanwhile, a client pushes to the project, and its
// maintenance packs it and removes garbage; in some rounds the project is deleted at a random moment. Forgeplane is killed like in rounds_test.go.
var _ = Describe("Forgeplane, killed in the middle of forks", Ordered, func() {
	var chance *rand.Rand
	var importURL, token string
	var whole time.Duration // the duration of a round without interruptions
	hit := map[string]int{}

	BeforeAll(func() {
		seed := uint64(GinkgoRandomSeed()) //nolint:gosec // any number can be a seed
		chance = rand.New(rand.NewPCG(seed, seed))
		importURL = "file://" + newSource()
		machine.shard("forks")
		admin.Apply(maxByREST)
		admin.WaitReady("accesstoken/max-rest")
		DeferCleanup(func() { admin.DoWith(maxByREST, "kubectl", "delete", "--filename=-") })
		token = tokenOf("max-rest")
		r := newForkRound(0, importURL)
		begun := time.Now()
		r.begin(token, 0)
		Expect(r.settle()).To(HaveLen(2))
		Eventually(r.origin.hasGarbage).WithPolling(polling).Should(BeFalse())
		whole = time.Since(begun)
		expectRemoved(r.origin.name, r.whole, r.part)
	})

	rounds := (rounds + 1) / 2 // they take longer than those of other specs
	for number := 1; number <= rounds; number++ {
		It(fmt.Sprintf("leaves whole forks that need nothing of their origin, time %d of %d", number, rounds), func() {
			r := newForkRound(number, importURL)
			crowd := work([]*pusher{r.origin.pusher})
			moment := time.Duration(chance.Float64() * float64(whole))
			elapsed := time.After(moment)
			r.begin(token, time.Duration(chance.Float64()*float64(moment)))
			<-elapsed
			how := "alone"
			if machine.kill(); number%2 == 0 {
				how = "with all that it had started"
				machine.killWorkers()
			}
			crowd.join()
			state := r.interrupted()
			for _, what := range state {
				hit[what]++
			}
			machine.start()
			forks := r.settle()
			AddReportEntry(fmt.Sprintf("killed %s after %s, in the middle of %q; the forks %q began", how,
				moment.Round(time.Millisecond), state, forks), ReportEntryVisibilityAlways)

			for _, name := range forks {
				r.expectFork(name)
			}
			Eventually(machine.orphans).WithPolling(polling).Should(BeEmpty(), "processes that outlived Forgeplane")
			machine.ageLocks() // git itself rarely leaves one when it is interrupted
			if !r.deletes {
				r.origin.expectMaintained(token)
			}
			Eventually(machine.locks).WithPolling(polling).Should(BeEmpty())
			expectOneRepositoryEach()
			r.expectIndependent(forks)
		})
	}

	AfterAll(func() { reportHits(hit) })
})

// expectIndependent expects that the garbage collection of each side, and the deletion of the origin, take nothing from the forks. It removes all of
// them.
func (r *forkRound) expectIndependent(forks []string) {
	GinkgoHelper()
	kept := map[string]map[string]string{}
	for _, name := range forks {
		kept[name] = refsOf(name)
	}
	expectKept := func() {
		GinkgoHelper()
		for name, refs := range kept {
			expectIntact(directoryOf(name))
			Expect(refsOf(name)).To(Equal(refs))
		}
	}
	if !r.deletes {
		source := directoryOf(r.origin.name)
		for ref := range refsOf(r.origin.name) {
			if ref != "refs/heads/main" {
				admin.Git("--git-dir="+source, "update-ref", "-d", ref)
			}
		}
		collect(source)
		expectIntact(source)
		expectKept()
		expectRemoved(r.origin.name)
		Expect(source).NotTo(BeADirectory())
	}
	for _, name := range forks {
		collect(directoryOf(name))
	}
	expectKept()
	expectRemoved(forks...)
}

// expectIntact expects that a repository has every object that its refs need. Maintenance removes files of objects that it has packed, which git
// fsck would miss.
func expectIntact(directory string) {
	GinkgoHelper()
	defer lockMaintenance(directory)()
	Expect(admin.Git("--git-dir="+directory, "fsck", "--full", "--strict", "--no-dangling", "--no-progress")).To(BeEmpty(), directory)
}

// collect removes all objects that no ref of a repository needs. Forgeplane does not maintain the repository meanwhile.
func collect(directory string) {
	GinkgoHelper()
	defer lockMaintenance(directory)()
	admin.Git("--git-dir="+directory, "gc", "--quiet", "--prune=now")
	Expect(admin.Git("--git-dir="+directory, "fsck", "--unreachable", "--no-progress")).To(BeEmpty(), directory)
}
