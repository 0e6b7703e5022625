package crash

import (
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// kept is a project that is repeatedly deleted and declared again, and must get its repository and its id back each time.
type kept struct {
	name, shard string
	id          int64
	// refs are the refs of the repository.
	refs map[string]string
	// gone reports whether the project is currently deleted.
	gone bool
}

// newKept declares a project with a commit in it.
func newKept(name, shard string) *kept {
	GinkgoHelper()
	k := &kept{name: name, shard: shard}
	k.declare()
	expectReady(name)
	clone := owner().Clone(machine.url(name))
	clone.Commit("first.txt", "First.\n")
	clone.MustPush("main")
	k.id, k.refs = read(name).Spec.ID, refsOf(name)
	return k
}

func (k *kept) declare() {
	GinkgoHelper()
	create(project(k.name, k.shard).Retained())
}

// toggle deletes the project if it is declared, and declares it otherwise.
func (k *kept) toggle() {
	GinkgoHelper()
	if k.gone = !k.gone; k.gone {
		remove(k.name)
	} else {
		k.declare()
	}
}

// declared returns the name of the project if it is declared.
func (k *kept) declared() []string {
	if k.gone {
		return nil
	}
	return []string{k.name}
}

// interrupted returns the work on the project that had not finished.
func (k *kept) interrupted() []string {
	GinkgoHelper()
	p := read(k.name)
	if k.gone && p != nil || !k.gone && !isReady(p) {
		return []string{"a retention or adoption"}
	}
	return nil
}

// expectKept expects that the deletion or adoption finishes, with one record or none, and that nothing is lost.
func (k *kept) expectKept() {
	GinkgoHelper()
	if k.gone {
		Eventually(read).WithArguments(k.name).WithPolling(polling).Should(BeNil())
		Eventually(retained).WithPolling(polling).Should(ConsistOf(And(
			HaveField("Spec.Project.ID", k.id), HaveField("Status", Satisfy(func(s v1alpha1.RetainedRepositoryStatus) bool {
				return s.RepositoryPath != "" && s.AdoptedBy == nil
			})),
		)))
		r := retained()[0]
		repository := filepath.Join(machine.shards, k.shard, r.Status.RepositoryPath)
		admin.Git("--git-dir="+repository, "fsck", "--full", "--strict")
		return
	}
	expectReady(k.name)
	Eventually(retained).WithPolling(polling).Should(BeEmpty())
	Expect(read(k.name).Spec.ID).To(Equal(k.id))
	Expect(refsOf(k.name)).To(Equal(k.refs))
}
