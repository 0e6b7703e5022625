package catalog_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
)

// large returns a world with 10,000 projects in 100 subgroups of 10 root groups, and one of the projects, with a user who
// is a member of everything above it.
func large(b *testing.B) (*catalogtest.World, *v1alpha1.User, *v1alpha1.Project) {
	b.Helper()
	u := user("max", 1)
	w := catalogtest.New(b, u)
	id := int64(0)
	for i := range 10 {
		root := fmt.Sprintf("root-%d", i)
		id++
		w.Put(group(root, root, pinned(id)))
		for j := range 10 {
			sub := fmt.Sprintf("sub-%d", j)
			id++
			w.Put(group(root, sub, pinned(id), below(byName(root))))
			for k := range 100 {
				id++
				w.Put(project(root, fmt.Sprintf("%s-p-%d", sub, k), byName(sub), known(id)))
			}
		}
	}
	p, err := w.Catalog().ProjectByPath(b.Context(), "root-5/sub-5/sub-5-p-50")
	if err != nil {
		b.Fatal(err)
	}
	w.Put(inGroup("root-5", "m1", byName("root-5"), byPath("max"), v1alpha1.RoleReporter),
		inGroup("root-5", "m2", byName("sub-5"), byPath("max"), v1alpha1.RoleDeveloper),
		inProject("root-5", "m3", byName(p.Name), byPath("max"), v1alpha1.RoleMaintainer))
	return w, u, p
}

func BenchmarkProjectByPath(b *testing.B) {
	w, _, _ := large(b)
	c := w.Catalog()
	for b.Loop() {
		if _, err := c.ProjectByPath(b.Context(), "root-5/sub-5/sub-5-p-50"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkProjectRole(b *testing.B) {
	w, u, p := large(b)
	c, now := w.Catalog(), time.Now()
	for b.Loop() {
		if r, err := c.ProjectRole(b.Context(), u, p, now); err != nil || r == 0 {
			b.Fatal(r, err)
		}
	}
}

func BenchmarkTokenByValue(b *testing.B) {
	w := catalogtest.New(b)
	for i := range 10_000 {
		w.Put(token(fmt.Sprintf("t-%d", i), fmt.Sprintf("value-%d", i), v1alpha1.SecretKeyReference{Name: "s"}))
	}
	c := w.Catalog()
	for b.Loop() {
		if _, err := c.TokenByValue(b.Context(), "value-5000"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGroupsOf20Levels(b *testing.B) {
	for how, ref := range references {
		b.Run("by "+how, func(b *testing.B) {
			w, p := nested(b, ref)
			c := w.Catalog()
			for b.Loop() {
				if chain, err := c.GroupsOf(b.Context(), p); err != nil || len(chain) != 20 {
					b.Fatal(len(chain), err)
				}
			}
		})
	}
}

func BenchmarkRules(b *testing.B) {
	for _, n := range []int{1, 500} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w, _, p := large(b)
			for i := range n {
				w.Put(protecting(p.Namespace, fmt.Sprintf("b-%d", i), fmt.Sprintf("branch-%d/*", i), byName(p.Name),
					toRole(v1alpha1.AccessMaintainer), toUser(byPath("max"))))
			}
			c := w.Catalog()
			for b.Loop() {
				scope, err := c.ProjectScope(b.Context(), p)
				if err != nil {
					b.Fatal(err)
				}
				if rules, err := c.Rules(b.Context(), scope, []string{"feature", "branch-0/x"}); err != nil || len(rules) != 1 {
					b.Fatal(len(rules), err)
				}
			}
		})
	}
}

func BenchmarkRolesIn(b *testing.B) {
	w, u, p := large(b)
	c, now := w.Catalog(), time.Now()
	s, err := c.ProjectScope(b.Context(), p)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if r, err := c.RolesIn(b.Context(), u, s, now); err != nil || r.Own == 0 {
			b.Fatal(r, err)
		}
	}
}
