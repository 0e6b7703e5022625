package storagemove_test

import (
	"fmt"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/controllers/storagemove"
	"github.com/forgeplane/forgeplane/test/forge"
	"github.com/forgeplane/forgeplane/test/soak"
)

// emptied is the number of projects that are moved off one shard.
var emptied = soak.Times(3, 500)

var _ = Describe("A storage move after the switch", func() {
	It("keeps the former copy until all servers know the new one", func() {
		limits := storagemove.DefaultLimits()
		install(forge.Options{Moves: limits})
		f.Run()
		m := forge.StorageMove("off").Of(website).To(target.Name).Build()
		f.Create(m)
		moves(m, v1alpha1.StorageMoveReplicated)
		Consistently(on).WithArguments(source).WithTimeout(limits.Settle / 2).Should(BeADirectory())
		moves(m, v1alpha1.StorageMoveFinished)
		Expect(on(source)).NotTo(BeADirectory())
	})
})

var _ = Describe("Storage moves of all projects of a shard", func() {
	BeforeEach(func() { install(forge.Options{}) })

	It("empty it, and it can be deleted", func() {
		f.Run()
		want := map[string]string{"website": branch(on(source))}
		all := []*v1alpha1.Project{website}
		for n := range emptied {
			p := forge.Project(fmt.Sprintf("app-%d", n)).In(acme).Build()
			f.Create(p)
			all = append(all, p)
		}
		for _, p := range all[1:] {
			f.ExpectReady(p)
			want[p.Name] = commit(p.Name)
			worker.Git(GinkgoTB(), "push", "--quiet", filepath.Join(source.Spec.Path, p.Status.RepositoryPath), "HEAD:refs/heads/main")
		}
		for _, p := range all {
			f.Create(forge.StorageMove(p.Name).Of(p).To(target.Name).Build())
		}
		f.Delete(source)
		Eventually(func() error {
			return f.Live().Get(GinkgoT().Context(), client.ObjectKeyFromObject(source), source)
		}).WithPolling(100 * time.Millisecond).Should(Satisfy(apierrors.IsNotFound))
		Expect(left(source)).To(BeEmpty())
		for _, p := range all {
			f.Refresh(p)
			Expect(p.Status.Storage).To(Equal(target.Name), p.Name)
			Expect(p.Status.Move).To(BeNil(), p.Name)
			Expect(branch(filepath.Join(target.Spec.Path, p.Status.RepositoryPath))).To(Equal(want[p.Name]), p.Name)
		}
		f.Eventually(target).Should(HaveField("Status.Repositories", BeEquivalentTo(len(all))))
	})
})
