package retained_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	. "github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
	"github.com/forgeplane/forgeplane/internal/retained"
)

func left(name string, was v1alpha1.FormerProject, change ...func(*v1alpha1.RetainedRepository)) *v1alpha1.RetainedRepository {
	r := &v1alpha1.RetainedRepository{
		ObjectMeta: Meta("retained", "", name), Spec: v1alpha1.RetainedRepositorySpec{Project: was, Storage: "one"},
	}
	for _, c := range change {
		c(r)
	}
	return r
}

func former(namespace, name, fullPath string) v1alpha1.FormerProject {
	return v1alpha1.FormerProject{Namespace: namespace, Name: name, FullPath: fullPath}
}

func names(all []*v1alpha1.RetainedRepository) (names []string) {
	for _, r := range all {
		names = append(names, r.Name)
	}
	return names
}

func TestFor_findsRepositoriesRelatedToProject(t *testing.T) {
	g := NewWithT(t)
	world := catalogtest.New(t,
		left("name", former("a", "web", "")), left("both", former("a", "web", "acme/web")), left("path", former("a", "site", "Acme/Web")),
		left("wanted", former("a", "shop", "acme/shop")), left("nothing", former("a", "blog", "acme/blog")),
		left("elsewhere", former("b", "web", "other/web")),
		left("given", former("b", "gift", ""), func(r *v1alpha1.RetainedRepository) {
			r.Spec.AdoptBy = &v1alpha1.ProjectName{Namespace: "a", Name: "web"}
		}),
		left("taken", former("b", "loot", ""), func(r *v1alpha1.RetainedRepository) {
			r.Status.AdoptedBy = &v1alpha1.Adopter{Namespace: "a", Name: "web", UID: "project a/web"}
		}),
	)
	c := world.Catalog()
	web := Project("a", "web", ByName("acme"))
	all := func(path string) []string {
		found, err := retained.For(t.Context(), c, web, path)
		g.Expect(err).NotTo(HaveOccurred())
		return names(found)
	}
	g.Expect(all("acme/web")).To(ConsistOf("name", "both", "path", "given", "taken"))
	g.Expect(all("")).To(ConsistOf("name", "both", "given", "taken"))
	for _, wanted := range []string{"wanted", "shop"} {
		web.Spec.AdoptRepository = wanted
		g.Expect(all("")).To(ConsistOf("name", "both", "given", "taken", "wanted"), "adoptRepository: %s", wanted)
	}
	web.Spec.AdoptRepository = "None"
	g.Expect(all("")).To(ConsistOf("name", "both", "given", "taken"))

	taken, err := retained.TakenBy(t.Context(), c, web)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names(taken)).To(ConsistOf("taken"))
	other := left("other", former("a", "x", ""))
	other.Spec.Storage = "two"
	world.Put(other)
	on, err := retained.OnStorage(t.Context(), c, "two")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names(on)).To(ConsistOf("other"))
}

func TestWithID_findsRepositoriesOfDeletedProjectsWithID(t *testing.T) {
	g := NewWithT(t)
	withID := func(name string, id int64) *v1alpha1.RetainedRepository {
		r := left(name, former("a", name, ""))
		r.Spec.Project.ID = id
		return r
	}
	c := catalogtest.New(t, withID("one", 7), withID("two", 7), withID("three", 77)).Catalog()
	found, err := retained.WithID(t.Context(), c, 7)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names(found)).To(ConsistOf("one", "two"))
}

// BenchmarkRetainedFor measures the lookup that the controller makes for each project that has no repository yet.
func BenchmarkRetainedFor(b *testing.B) {
	for _, number := range []int{100, 10_000} {
		b.Run(fmt.Sprint(number), func(b *testing.B) {
			world := catalogtest.New(b)
			for i := range number {
				name := fmt.Sprintf("p-%d", i)
				world.Put(left(name, former("a", name, "acme/"+name)))
			}
			c, web := world.Catalog(), Project("a", "p-50", ByName("acme"))
			for b.Loop() {
				if found, err := retained.For(b.Context(), c, web, "acme/p-50"); err != nil || len(found) != 1 {
					b.Fatal(found, err)
				}
			}
		})
	}
}
