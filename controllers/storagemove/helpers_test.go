package storagemove_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// condition returns a condition of a move that is being carried out.
func condition(kind string, status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: status, Reason: v1alpha1.ReasonProgressing, Message: "moving", ObservedGeneration: 1, LastTransitionTime: metav1.Now(),
	}
}

// beside returns the directory of the wiki or of the designs of the website on a shard.
func beside(s *v1alpha1.RepositoryStorage, suffix string) string {
	GinkgoHelper()
	return strings.TrimSuffix(on(s), ".git") + suffix
}

// inode returns the number that a directory has on its volume.
func inode(directory string) uint64 {
	GinkgoHelper()
	info, err := os.Stat(directory)
	Expect(err).NotTo(HaveOccurred())
	return info.Sys().(*syscall.Stat_t).Ino
}

// damage removes an object that the main branch needs.
func damage(directory string) {
	GinkgoHelper()
	tree := worker.Git(GinkgoTB(), "-C", directory, "rev-parse", "refs/heads/main^{tree}")
	Expect(os.Remove(filepath.Join(directory, "objects", tree[:2], tree[2:]))).To(Succeed())
}

// files returns the files of a repository, with their sizes.
func files(directory string) map[string]int64 {
	GinkgoHelper()
	all := map[string]int64{}
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), "forgeplane-") {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			all[path] = info.Size()
		}
		return err
	})
	Expect(err).NotTo(HaveOccurred())
	return all
}

// metrics returns the values of a registry, by the names of the metrics and the values of their labels.
func metrics(registry *prometheus.Registry) map[string]float64 {
	GinkgoHelper()
	families, err := registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	found := map[string]float64{}
	for _, family := range families {
		for _, one := range family.GetMetric() {
			name := family.GetName()
			for _, label := range one.GetLabel() {
				name += " " + label.GetValue()
			}
			found[name] = one.GetCounter().GetValue() + one.GetGauge().GetValue()
		}
	}
	return found
}
