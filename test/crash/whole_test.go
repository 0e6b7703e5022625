package crash

import (
	"context"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// expectWhole expects that nothing is lost, damaged, duplicated or left behind, and that each pusher can continue.
func expectWhole(pushers []*pusher) {
	GinkgoHelper()
	Eventually(machine.orphans).WithPolling(polling).Should(BeEmpty(), "processes that outlived Forgeplane")
	Eventually(machine.locks).WithPolling(polling).Should(BeEmpty())
	expectOneRepositoryEach()
	expectUniqueIDs()
	expectOneProtectionEach()
	for _, p := range pushers {
		p.expectKept(refsOf(p.project))
		screen, err := p.push()
		Expect(err).NotTo(HaveOccurred(), screen)
		Expect(p.accepted).To(HaveKey(len(p.commits)-1), screen)
	}
}

// expectOneRepositoryEach expects that the shards hold one intact repository for each project, and nothing else.
func expectOneRepositoryEach() {
	GinkgoHelper()
	var expected []string
	for _, p := range projects() {
		expected = append(expected, filepath.Join(machine.shards, p.Status.Storage, p.Status.RepositoryPath))
	}
	for _, r := range retained() {
		expected = append(expected, filepath.Join(machine.shards, r.Spec.Storage, r.Status.RepositoryPath))
	}
	found := stored()
	Expect(found).To(ConsistOf(expected))
	for _, repository := range found {
		expectIntact(repository)
	}
}

// stored returns the directories in which the shards keep something. It skips empty directories, the marker, the file with which Forgeplane tests
// whether it can write, and the records of the projects of repositories.
func stored() []string {
	GinkgoHelper()
	all := map[string]bool{}
	Expect(filepath.WalkDir(machine.shards, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), ".probe") || entry.Name() == ".forgeplane-storage" || filepath.Base(filepath.Dir(path)) == ".retained" {
			return err
		}
		relative, err := filepath.Rel(machine.shards, path)
		if strings.Contains(relative, "/.projects/") {
			return err
		}
		// The path consists of the shard, two directories named after the first letters, and the directory of the repository.
		parts := strings.SplitN(relative, string(filepath.Separator), 5)
		all[filepath.Join(machine.shards, filepath.Join(parts[:min(len(parts), 4)]...))] = true
		return err
	})).To(Succeed())
	return slices.Collect(maps.Keys(all))
}

func projects() []v1alpha1.Project {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	var list v1alpha1.ProjectList
	Expect(api.List(ctx, &list)).To(Succeed())
	return list.Items
}

func retained() []v1alpha1.RetainedRepository {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	var list v1alpha1.RetainedRepositoryList
	Expect(api.List(ctx, &list)).To(Succeed())
	return list.Items
}

// expectUniqueIDs expects that no two objects of a kind have the same id.
func expectUniqueIDs() {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	for _, kind := range v1alpha1.Kinds() {
		if _, ok := kind.(v1alpha1.Identified); !ok {
			continue
		}
		list := kind.NewList()
		Expect(api.List(ctx, list)).To(Succeed())
		holders := map[int64]string{}
		Expect(meta.EachListItem(list, func(o runtime.Object) error {
			object := o.(v1alpha1.Identified)
			id, _ := object.IDs()
			Expect(*id).To(BeNumerically(">", 0), "%T %s", object, object.GetName())
			Expect(holders).NotTo(HaveKey(*id), "%T %s and %s", object, holders[*id], object.GetName())
			holders[*id] = object.GetName()
			return nil
		})).To(Succeed())
	}
}

// expectOneProtectionEach expects that each default branch that exists has exactly one protection.
func expectOneProtectionEach() {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	var list v1alpha1.ProtectedBranchList
	Expect(api.List(ctx, &list)).To(Succeed())
	var found, expected []string
	for i := range list.Items {
		found = append(found, list.Items[i].Spec.ProjectRef.Name+" "+list.Items[i].Spec.Branch)
	}
	for _, p := range projects() {
		if p.Status.HeadCommit != "" {
			expected = append(expected, p.Name+" "+p.Status.DefaultBranch)
		}
	}
	Expect(found).To(ConsistOf(expected))
}

// refsOf returns the refs in the repository of a project.
func refsOf(name string) map[string]string {
	GinkgoHelper()
	p := read(name)
	repository := filepath.Join(machine.shards, p.Status.Storage, p.Status.RepositoryPath)
	refs := map[string]string{}
	for line := range strings.SplitSeq(admin.Git("--git-dir="+repository, "for-each-ref", "--format=%(refname) %(objectname)"), "\n") {
		name, object, _ := strings.Cut(line, " ")
		refs[name] = object
	}
	return refs
}
