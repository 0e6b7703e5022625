package repository_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/repository"
)

func TestRecord_isKeptOnShard(t *testing.T) {
	g := NewWithT(t)
	s := newShop(t, "sha1")
	directory := strings.TrimSuffix(s.git.Dir(), repository.Path(s.project))
	shard := &v1alpha1.RepositoryStorage{ObjectMeta: metav1.ObjectMeta{Name: "renamed"}, Spec: v1alpha1.RepositoryStorageSpec{Path: directory}}
	r := repository.NewRetained(s.project, "namespace", "acme/web", time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	g.Expect(repository.PathOfRetained(r)).To(Equal(repository.Path(s.project)))
	g.Expect(repository.RecordNames(shard)).To(BeEmpty())
	g.Expect(s.repos.Recorded(t.Context(), "shard", s.project)).To(BeNil())

	r.Spec.AdoptBy = &v1alpha1.ProjectName{Namespace: "a", Name: "b"}
	g.Expect(s.repos.Record(t.Context(), r)).To(Succeed())
	names, err := repository.RecordNames(shard)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names).To(ConsistOf(repository.RecordName(r)))
	file := filepath.Join(directory, ".retained", names[0])
	before, err := os.Stat(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.repos.Record(t.Context(), r)).To(Succeed())
	g.Expect(os.Stat(file)).To(HaveField("ModTime()", before.ModTime()), "what stands there already is not written again")

	read, err := repository.ReadRecord(shard, names[0])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.Name).To(Equal(r.Name))
	g.Expect(read.Finalizers).To(ConsistOf(repository.RetainedFinalizer))
	g.Expect(read.Spec.Project).To(Equal(r.Spec.Project))
	g.Expect(read.Spec.RetainedAt.Equal(&r.Spec.RetainedAt)).To(BeTrue())
	g.Expect(read.Spec.Storage).To(Equal("renamed"), "by the name that the shard has now")
	g.Expect(read.Spec.AdoptBy).To(BeNil(), "what an administrator has decided is not part of the record")
	g.Expect(s.repos.Recorded(t.Context(), "shard", s.project)).To(HaveField("Spec.Project.UID", "web"))

	g.Expect(s.repos.Forget(t.Context(), r)).To(Succeed())
	g.Expect(s.repos.Forget(t.Context(), r)).To(Succeed())
	g.Expect(repository.ReadRecord(shard, names[0])).To(BeNil())
}

func TestReadRecord_refusesInvalidRecords(t *testing.T) {
	for name, text := range map[string]string{"broken": "{", "too long": strings.Repeat(" ", 1<<20)} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			shard := &v1alpha1.RepositoryStorage{Spec: v1alpha1.RepositoryStorageSpec{Path: t.TempDir()}}
			g.Expect(os.Mkdir(filepath.Join(shard.Spec.Path, ".retained"), 0o700)).To(Succeed())
			g.Expect(os.WriteFile(filepath.Join(shard.Spec.Path, ".retained", "a.json"), []byte(text), 0o600)).To(Succeed())
			_, err := repository.ReadRecord(shard, "a.json")
			g.Expect(err).To(MatchError(ContainSubstring("a.json")))
		})
	}
}
