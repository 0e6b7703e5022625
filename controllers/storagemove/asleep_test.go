package storagemove_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/controllers/storagemove"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/test/forge"
	"github.com/forgeplane/forgeplane/test/suite"
)

// The specs run the controllers in two processes at once, which a cluster does only while one of them sleeps and does not know that its lease is over.
var _ = Describe("A storage move in two processes", func() {
	var sleeper *forge.Running
	var head string
	BeforeEach(func() {
		limits := storagemove.DefaultLimits()
		limits.Settle = time.Second // the time to wait for the end of the copying, and before the removal
		install(forge.Options{Moves: limits})
		head = branch(on(source))
		sleeper = forge.New(cluster, forge.Options{Moves: limits}).Run()
	})

	// declare creates a move for the processes that run.
	declare := func(name string, to *v1alpha1.RepositoryStorage) *v1alpha1.StorageMove {
		GinkgoHelper()
		m := forge.StorageMove(name).Of(website).To(to.Name).Build()
		Expect(f.Live().Create(GinkgoT().Context(), m)).To(Succeed())
		return m
	}
	state := func(m *v1alpha1.StorageMove) func(Gomega) v1alpha1.StorageMoveState {
		return func(g Gomega) v1alpha1.StorageMoveState {
			g.Expect(f.Live().Get(GinkgoT().Context(), client.ObjectKeyFromObject(m), m)).To(Succeed())
			return m.Status.State
		}
	}

	It("is carried out by the other one if the first one sleeps, which cannot change the shard when it wakes up", func() {
		reached, wake := sleeper.HaltAt(func(request string) bool {
			return strings.Contains(request, "/projects/website/status") && strings.Contains(request, `"storage":"new"`)
		})
		m := declare("off", target)
		Eventually(reached).Should(BeClosed())
		f.Run()
		f.Eventually(website).Should(HaveField("Status.Move.Attempt", BeNumerically(">", 1)))
		_, _, err := repositoryOf().BeginWrite(GinkgoT().Context())
		Expect(err).To(MatchError(git.ErrClosed), "the sleeper has closed it")

		ended := make(chan struct{})
		go func() {
			defer GinkgoRecover()
			defer close(ended)
			sleeper.Stop() // its lease is over
		}()
		wake()
		Eventually(ended).Should(BeClosed())
		moves(m, v1alpha1.StorageMoveFinished)
		Expect(m.Status.Attempt).To(BeNumerically(">", 1))
		expectOnly(target, source, head)
		Expect(website.Status.LastMove.Attempt).To(Equal(m.Status.Attempt))
	})

	It("does not remove the live copy if the process that removes wakes up after the project was moved back", suite.Soak, func() {
		var removing atomic.Bool
		reached, wake := sleeper.HaltAt(func(request string) bool {
			return removing.Load() && strings.HasPrefix(request, "GET ") && strings.HasSuffix(request, "/projects/website")
		})
		m := declare("off", target)
		Eventually(state(m)).Should(Equal(v1alpha1.StorageMoveReplicated))
		removing.Store(true)
		Eventually(reached).Should(BeClosed())
		f.Run()
		moves(m, v1alpha1.StorageMoveFinished)
		back := declare("back", source)
		moves(back, v1alpha1.StorageMoveFinished)
		live := inode(on(source))

		wake()
		Consistently(func() uint64 { return inode(on(source)) }).WithTimeout(2 * time.Second).Should(Equal(live))
		sleeper.ExpectIdle()
		expectOnly(source, target, head)
		Expect(state(m)(Default)).To(Equal(v1alpha1.StorageMoveFinished))
		Expect(state(back)(Default)).To(Equal(v1alpha1.StorageMoveFinished))
	})

	It("ends with one complete copy if both work on it", suite.Soak, func() {
		f.Run()
		here, there := source, target
		for n := range 20 {
			m := declare(fmt.Sprintf("move-%d", n), there)
			Eventually(state(m)).Should(BeElementOf(v1alpha1.StorageMoveFinished, v1alpha1.StorageMoveFailed), func() string { return m.Status.LastError })
			if m.Status.State == v1alpha1.StorageMoveFinished {
				here, there = there, here
			}
			f.Eventually(website).Should(HaveField("Status.Move", BeNil()))
			expectOnly(here, there, head)
			head = commit(m.Name)
			push()
		}
	})
})
