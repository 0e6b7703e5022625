package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
	"github.com/forgeplane/forgeplane/test/suite"
)

// nomad is a project that moves between two shards.
const nomad = "nomad"

// moveRounds is the number of rounds. Each round kills at least one server.
const moveRounds = 100

const (
	// generation is the number of rounds after which a new project begins, because the clients make each round longer.
	generation = 20
	// settling is the time before the former copy is removed, by default. Most removals take less than removing.
	settling, removing = 2 * time.Second, 200 * time.Millisecond
)

// moveOf returns a move of it.
func moveOf(round int, to string) *v1alpha1.StorageMove {
	return forge.StorageMove(fmt.Sprintf("move-%d", round)).Of(project(nomad, "").Build()).To(to).Build()
}

// ended returns the state of a move, or an empty string before it has ended.
func ended(m *v1alpha1.StorageMove) v1alpha1.StorageMoveState {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	Expect(api.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
	if !m.Status.Ended() {
		return ""
	}
	return m.Status.State
}

// load are the clients of the project: each kind at each of two servers.
type load struct {
	pushers    []*pusher
	committers []*committer
	users      []user
	// at is the server of each user.
	at map[user]*server
}

// count returns the number of writes that were accepted, and of those that were refused because the project was being moved.
func (l *load) count() (accepted, refused int) {
	for i, p := range l.pushers {
		c := l.committers[i]
		accepted, refused = accepted+len(p.accepted)+len(c.commits), refused+len(p.refused)+len(c.refused)
	}
	return accepted, refused
}

func newLoad(token string) *load {
	GinkgoHelper()
	l := &load{at: map[user]*server{}}
	for i, s := range machine.servers() {
		name := []string{"first", "second"}[i]
		p, c := newPusher(s, name, nomad), newCommitter(s, "rest-"+name, nomad, token)
		l.pushers, l.committers = append(l.pushers, p), append(l.committers, c)
		for _, one := range []user{p, c, newFetcher(s, name, nomad)} {
			l.users, l.at[one] = append(l.users, one), s
		}
	}
	return l
}

// expectServed expects that no user has failed except those of the servers that were killed.
func (l *load) expectServed(cut []failure, killed []*server) {
	GinkgoHelper()
	for _, f := range cut {
		Expect(killed).To(ContainElement(l.at[f.of]), f.String())
	}
}

// A round moves a project to the other shard, while clients of two servers push to it, commit over REST and fetch, and a fork of it begins. One
// server is killed, or both, with or without the processes that it has started. The clients of the other one go on until the move has ended.
var _ = Describe("Forgeplane, killed in the middle of storage moves", Ordered, suite.Soak, func() {
	var chance *rand.Rand
	var clients *load
	var whole time.Duration // the duration of a move without interruptions
	hit := map[v1alpha1.StorageMoveState]int{}
	accepted, refused := 0, 0

	begin := func(round int) *v1alpha1.StorageMove {
		GinkgoHelper()
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		to := "there"
		if read(nomad).Status.Storage == "there" {
			to = "here"
		}
		m := moveOf(round, to)
		Expect(api.Create(ctx, m)).To(Succeed())
		return m
	}
	// settle waits until a move has ended, and expects that the project is where the move says.
	settle := func(m *v1alpha1.StorageMove) {
		GinkgoHelper()
		Eventually(ended).WithArguments(m).WithPolling(polling).ShouldNot(BeEmpty(), func() string { return fmt.Sprint(m.Status) })
		Expect(m.Status.State).To(BeElementOf(v1alpha1.StorageMoveFinished, v1alpha1.StorageMoveFailed), m.Status.LastError)
		want := m.Status.Destination
		if m.Status.State == v1alpha1.StorageMoveFailed {
			want = m.Status.Source
		}
		p := read(nomad)
		Expect(p.Status.Storage).To(Equal(want))
		Expect(p.Status.Move).To(BeNil())
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		Expect(api.Delete(ctx, m)).To(Succeed())
	}
	BeforeAll(func() {
		seed := uint64(GinkgoRandomSeed()) //nolint:gosec // any number can be a seed
		chance = rand.New(rand.NewPCG(seed, seed))
		machine.shard("here")
		machine.shard("there")
		machine.addServer()
		admin.Apply(maxByREST)
		admin.WaitReady("accesstoken/max-rest")
		DeferCleanup(func() { admin.DoWith(maxByREST, "kubectl", "delete", "--filename=-") })
		DeferCleanup(func() { expectRemoved(nomad) })
	})
	// renew begins with a new project, and moves it once without an interruption.
	renew := func() {
		GinkgoHelper()
		expectRemoved(nomad)
		create(project(nomad, "here").ImportedFrom("file://" + newSource()))
		expectReady(nomad)
		clients = newLoad(tokenOf("max-rest"))
		crowd := work(clients.users)
		begun := time.Now()
		settle(begin(0))
		whole = time.Since(begun)
		clients.expectServed(crowd.join(), nil)
	}
	// await waits for the moment of the death of a server in a round, and returns it.
	await := func(m *v1alpha1.StorageMove) time.Duration {
		GinkgoHelper()
		begun := time.Now()
		if chance.IntN(4) > 0 {
			<-time.After(time.Duration(chance.Float64() * float64(max(whole-settling, 0))))
			return time.Since(begun)
		}
		Eventually(func() bool {
			_ = ended(m)
			return m.Status.State == v1alpha1.StorageMoveReplicated || m.Status.Ended()
		}).WithPolling(polling).Should(BeTrue())
		<-time.After(time.Duration(chance.Float64() * float64(settling+removing)))
		return time.Since(begun)
	}

	for round := 1; round <= moveRounds; round++ {
		It(fmt.Sprintf("leaves one whole copy, time %d of %d", round, moveRounds), func() {
			if round%generation == 1 {
				renew()
			}
			crowd := work(clients.users)
			fork := fmt.Sprintf("settler-%d", round)
			m := begin(round)
			create(project(fork, "here").ForkOf(v1alpha1.Reference{Name: nomad}))
			moment := await(m)
			victims := [][]*server{machine.servers(), machine.servers()[1:], machine.servers()[:1], machine.servers()[:1]}[chance.IntN(4)]
			for _, s := range victims {
				s.kill()
			}
			how := "alone"
			if round%2 == 0 {
				how = "with all that they had started"
				machine.killWorkers()
			}
			_ = ended(m)
			at := m.Status.State
			hit[at]++
			for _, s := range victims {
				s.start()
			}
			settle(m)
			cut := crowd.join()
			clients.expectServed(cut, victims)
			expectReady(fork, nomad)
			AddReportEntry(fmt.Sprintf("killed %d of 2 servers %s after %s, when the move was %q, in the middle of the work of %d clients; attempt %d, then %s",
				len(victims), how, moment.Round(time.Millisecond), at, len(cut), m.Status.Attempt, m.Status.State), ReportEntryVisibilityAlways)
			machine.tidy()
			expectWhole(clients.pushers)
			for _, c := range clients.committers {
				c.expectKept()
			}
			expectIntact(directoryOf(fork))
			expectRemoved(fork)
			if round%generation == 0 {
				a, r := clients.count()
				accepted, refused = accepted+a, refused+r
				AddReportEntry(fmt.Sprintf("%d writes accepted and %d refused so far", accepted, refused), ReportEntryVisibilityAlways)
			}
		})
	}

	AfterAll(func() { reportHits(hit) })

	// manyRounds is a number of rounds in which some writes meet a closed project.
	const manyRounds = 20
	if moveRounds < manyRounds {
		return
	}
	It("has accepted writes, and has refused some while the project was closed", func() {
		Expect(accepted).To(BeNumerically(">", 4*moveRounds))
		Expect(refused).To(BeNumerically(">", 0))
	})
})
