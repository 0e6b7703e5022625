package repository_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/repository"
)

func TestRecordOwner_recordsOwnerOnShard(t *testing.T) {
	g := NewWithT(t)
	s := newShop(t, "sha1")
	s.project.Status.FullPath, s.project.Status.SizeBytes = "acme/web", 77
	shard := &v1alpha1.RepositoryStorage{Spec: v1alpha1.RepositoryStorageSpec{Path: strings.TrimSuffix(s.git.Dir(), repository.Path(s.project))}}
	shard.Name = "shard"
	asked := 0
	own := func() {
		t.Helper()
		g.Expect(s.repos.RecordOwner(t.Context(), s.project, func(context.Context) (repository.Place, error) {
			asked++
			return repository.Place{Namespace: "namespace", Cluster: "cluster"}, nil
		})).To(Succeed())
	}
	names := func() []string {
		t.Helper()
		all, err := repository.OwnerNames(shard)
		g.Expect(err).NotTo(HaveOccurred())
		return all
	}
	g.Expect(names()).To(BeEmpty())
	own()
	g.Expect(names()).To(ConsistOf(repository.OwnerName(s.project)))
	o, err := repository.ReadOwner(shard, names()[0])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.Cluster).To(BeEquivalentTo("cluster"))
	g.Expect(repository.PathOfRetained(o.Retained)).To(Equal(repository.Path(s.project)))
	g.Expect(o.Retained.Spec.Project).To(And(
		HaveField("UID", "web"), HaveField("NamespaceUID", "namespace"), HaveField("FullPath", "acme/web"), HaveField("ID", s.project.Spec.ID)))

	file := filepath.Join(shard.Spec.Path, ".projects", names()[0])
	before, err := os.Stat(file)
	g.Expect(err).NotTo(HaveOccurred())
	s.project.Status.SizeBytes = 78
	own()
	g.Expect(os.Stat(file)).To(HaveField("ModTime()", before.ModTime()), "a push writes nothing")
	s.project.Status.FullPath = "acme/site"
	own()
	g.Expect(os.ReadFile(file)).To(ContainSubstring("acme/site"))
	g.Expect(asked).To(Equal(1), "what does not change is asked for once")

	g.Expect(s.repos.Retained(t.Context(), s.project)).To(BeEmpty(), "it is its own")
	next := s.project.DeepCopy()
	next.UID, next.Spec.ID = "next", 0
	g.Expect(s.repos.Retained(t.Context(), next)).To(ConsistOf(HaveField("Retained.Spec.Project.UID", "web")))
	other := next.DeepCopy()
	other.Name = "other"
	g.Expect(s.repos.Retained(t.Context(), other)).To(BeEmpty())

	next.Spec.ID = s.project.Spec.ID
	g.Expect(s.repos.RemoveOwner(t.Context(), next)).To(Succeed())
	g.Expect(names()).To(HaveLen(1), "it is another's")
	g.Expect(s.repos.RemoveOwner(t.Context(), s.project)).To(Succeed())
	g.Expect(s.repos.RemoveOwner(t.Context(), s.project)).To(Succeed())
	g.Expect(names()).To(BeEmpty())
}

func TestRecordOwner_replacesUnreadableRecord(t *testing.T) {
	g := NewWithT(t)
	s := newShop(t, "sha1")
	file := filepath.Join(strings.TrimSuffix(s.git.Dir(), repository.Path(s.project)), ".projects", repository.OwnerName(s.project))
	place := repository.Place{Namespace: "namespace", Cluster: "cluster"}
	own := func(err error) error {
		return s.repos.RecordOwner(t.Context(), s.project, func(context.Context) (repository.Place, error) { return place, err })
	}
	away := errors.New("the API server is away")
	g.Expect(own(away)).To(MatchError(away))
	g.Expect(file).NotTo(BeAnExistingFile(), "half of it is nothing")
	g.Expect(own(nil)).To(Succeed())
	g.Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
	g.Expect(own(nil)).To(Succeed())
	g.Expect(os.ReadFile(file)).To(ContainSubstring("namespaceUID"))
	g.Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
	g.Expect(s.repos.RemoveOwner(t.Context(), s.project)).To(Succeed())
	g.Expect(file).NotTo(BeAnExistingFile())
}

func TestRetained_ignoresUnreadableShards(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "file")
	g.Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
	s := newShop(t, "sha1", &v1alpha1.RepositoryStorage{ObjectMeta: metav1.ObjectMeta{Name: "broken"}, Spec: v1alpha1.RepositoryStorageSpec{Path: file}})
	g.Expect(s.repos.RecordOwner(t.Context(), s.project, func(context.Context) (repository.Place, error) {
		return repository.Place{Namespace: "namespace", Cluster: "cluster"}, nil
	})).To(Succeed())
	var logged []string
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{}))
	next := s.project.DeepCopy()
	next.UID, next.Spec.ID = "next", 0
	g.Expect(s.repos.Retained(ctx, next)).To(HaveLen(1))
	g.Expect(logged).To(BeEmpty(), "it is not about the project: the condition of the shard says what is wrong with it")

	garbled := filepath.Join(strings.TrimSuffix(s.git.Dir(), repository.Path(s.project)), ".projects", repository.OwnerName(s.project))
	g.Expect(os.WriteFile(garbled, nil, 0o600)).To(Succeed())
	g.Expect(s.repos.Retained(ctx, next)).To(BeEmpty())
	g.Expect(logged).To(ConsistOf(ContainSubstring("Failed to read a record of what an earlier project left behind")))
}
