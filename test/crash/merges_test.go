package crash

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/patience"
	"github.com/forgeplane/forgeplane/test/rest"
	"github.com/forgeplane/forgeplane/test/suite"
)

const (
	// trunk is the project of the merges, and mergesAtOnce the number of merge requests of a round.
	trunk        = "trunk"
	mergesAtOnce = 8
	ofTrunk      = " /projects/yard%2F" + trunk
)

// mergeRequest is a merge request of trunk, whose branch adds a file of the same name.
type mergeRequest struct {
	IID          int64
	State        string
	SourceBranch string  `json:"source_branch"`
	Commit       *string `json:"merge_commit_sha"`
}

// mergeRequests returns all merge requests. Unlike a request for one of them, this does not make a server finish or undo a merge.
func mergeRequests(c rest.Client) (all []mergeRequest) {
	GinkgoHelper()
	for page := 1; ; page++ {
		some := rest.Must[[]mergeRequest](c, http.StatusOK, fmt.Sprintf("GET%s/merge_requests?per_page=100&page=%d", ofTrunk, page), "")
		if all = append(all, some...); len(some) < 100 {
			return all
		}
	}
}

// A round merges some merge requests into one branch at once, at two servers, and kills one server, or both, with or without the processes that it has
// started. In the end, each merge must be in Git and in the database, or in neither, and every merge that a client saw must be in both.
var _ = Describe("Forgeplane, killed in the middle of merges", Ordered, suite.Soak, func() {
	var chance *rand.Rand
	var clients []rest.Client
	var whole time.Duration // the duration of a round without interruptions
	seen := map[int64]bool{}
	hit := map[string]int{}

	open := func(round int) (iids []int64) {
		GinkgoHelper()
		for n := range mergesAtOnce {
			name := fmt.Sprintf("change-%d-%d", round, n)
			rest.Must[struct{}](clients[0], http.StatusCreated, "POST"+ofTrunk+"/repository/files/"+name,
				fmt.Sprintf(`{"branch":%q,"start_branch":"main","content":"Hello.\n","commit_message":"Change"}`, name))
			made := rest.Must[mergeRequest](clients[0], http.StatusCreated, "POST"+ofTrunk+"/merge_requests",
				fmt.Sprintf(`{"title":"Change","source_branch":%q,"target_branch":"main","remove_source_branch":%t}`, name, n%2 == 0))
			iids = append(iids, made.IID)
		}
		return iids
	}
	// merge merges merge requests at once, and returns a function that waits for the answers.
	merge := func(iids []int64) (wait func()) {
		var all sync.WaitGroup
		var mu sync.Mutex
		for n, iid := range iids {
			all.Go(func() {
				answer, err := clients[n%2].Try(fmt.Sprintf("PUT%s/merge_requests/%d/merge", ofTrunk, iid), "{}")
				mu.Lock()
				defer mu.Unlock()
				if err == nil && answer.Status == http.StatusOK {
					seen[iid] = true
				}
			})
		}
		return all.Wait
	}

	BeforeAll(func() {
		seed := uint64(GinkgoRandomSeed()) //nolint:gosec // any number can be a seed
		chance = rand.New(rand.NewPCG(seed, seed))
		machine.shard("merges")
		machine.addServer()
		admin.Apply(maxByREST)
		admin.WaitReady("accesstoken/max-rest")
		DeferCleanup(func() { admin.DoWith(maxByREST, "kubectl", "delete", "--filename=-") })
		DeferCleanup(func() { expectRemoved(trunk) })
		create(project(trunk, "merges").ImportedFrom("file://" + newSource()))
		expectReady(trunk)
		for _, s := range machine.servers() {
			clients = append(clients, rest.WithToken(s.address(), tokenOf("max-rest")))
		}
		begun := time.Now()
		merge(open(0))()
		whole = time.Since(begun)
	})

	for round := 1; round <= rounds; round++ {
		It(fmt.Sprintf("interrupts merges, time %d of %d", round, rounds), func() {
			wait := merge(open(round))
			moment := time.Duration(chance.Float64() * float64(whole))
			<-time.After(moment)
			victims := [][]*server{machine.servers(), machine.servers()[1:], machine.servers()[:1]}[chance.IntN(3)]
			for _, s := range victims {
				s.kill()
			}
			if round%2 == 0 {
				machine.killWorkers()
			}
			wait()
			for _, s := range victims {
				s.start()
			}
			state := map[string]int{}
			for _, m := range mergeRequests(clients[0]) {
				if strings.HasPrefix(m.SourceBranch, fmt.Sprintf("change-%d-", round)) {
					state[m.State]++
					hit[m.State]++
				}
			}
			AddReportEntry(fmt.Sprintf("killed %d of 2 servers after %s: %v", len(victims), moment.Round(time.Millisecond), state), ReportEntryVisibilityAlways)
			machine.tidy()
		})
	}

	It("leaves each merge in Git and in the database, or in neither", func() {
		reportHits(hit, "opened", "locked", "merged")
		<-time.After(patience.Wait) // a merge counts as interrupted after two minutes
		var all []mergeRequest
		Eventually(func() []mergeRequest {
			all = mergeRequests(clients[0])
			return all
		}).ShouldNot(ContainElement(HaveField("State", "locked")), "a server finishes or undoes them without being asked")
		git := func(args ...string) []string {
			GinkgoHelper()
			return strings.Fields(admin.Git(append([]string{"--git-dir=" + directoryOf(trunk)}, args...)...))
		}
		files, merges := git("ls-tree", "--name-only", "main"), git("rev-list", "--first-parent", "--merges", "main")
		merged := 0
		for _, m := range all {
			inGit := slices.Contains(files, m.SourceBranch)
			Expect(m.State).To(Equal(map[bool]string{true: "merged", false: "opened"}[inGit]), "%d", m.IID)
			if inGit {
				merged++
				Expect(merges).To(ContainElement(*m.Commit))
			}
			Expect(inGit || !seen[m.IID]).To(BeTrue(), "%d was merged", m.IID)
		}
		Expect(merges).To(HaveLen(merged))
		Expect(len(seen)).To(BeNumerically(">", rounds))
		expectIntact(directoryOf(trunk))
		Eventually(machine.locks).WithPolling(polling).Should(BeEmpty())
	})
})
