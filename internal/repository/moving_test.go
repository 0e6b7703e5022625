package repository_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/repository"
)

func TestChoose_takesStoragesInProportionToTheirWeights(t *testing.T) {
	weights := map[string]*int32{"none": new(int32), "light": new(int32), "heavy": new(int32), "default": nil}
	*weights["light"], *weights["heavy"] = 10, 30
	share := map[string]float64{"none": 0, "light": 10. / 140, "heavy": 30. / 140, "default": 100. / 140}
	var shards []*v1alpha1.RepositoryStorage
	for name, weight := range weights {
		shards = append(shards, &v1alpha1.RepositoryStorage{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("5f0e7b3e-" + name)}, Spec: v1alpha1.RepositoryStorageSpec{Weight: weight},
		})
	}
	const projects = 20_000
	chosen := map[string]int{}
	for range projects {
		p := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{UID: uuid.NewUUID()}}
		chosen[repository.Choose(shards, p).Name]++
	}
	g := NewWithT(t)
	for name, want := range share {
		// Six standard deviations are about 0.02.
		g.Expect(float64(chosen[name])/projects).To(BeNumerically("~", want, 0.02), name)
	}
	g.Expect(chosen["none"]).To(BeZero())
}

func TestRank_keepsMostChoicesWhenAStorageIsAdded(t *testing.T) {
	g := NewWithT(t)
	shard := func(i int) *v1alpha1.RepositoryStorage {
		return &v1alpha1.RepositoryStorage{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprintf("shard-%d", i))}}
	}
	moved := 0
	for range 2000 {
		p := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{UID: uuid.NewUUID()}}
		if repository.Rank(shard(4), p) > max(repository.Rank(shard(0), p), repository.Rank(shard(1), p), repository.Rank(shard(2), p), repository.Rank(shard(3), p)) {
			moved++
		}
	}
	g.Expect(float64(moved) / 2000).To(BeNumerically("~", 0.2, 0.06))
}
