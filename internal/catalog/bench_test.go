package catalog_test

import (
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	. "github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
)

func BenchmarkProjectByPath(b *testing.B) {
	w, _, _ := Large(b)
	c := w.Catalog()
	for b.Loop() {
		if _, err := c.ProjectByPath(b.Context(), "root-5/sub-5/sub-5-p-50"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkProjectRole(b *testing.B) {
	w, u, p := Large(b)
	c, now := w.Catalog(), time.Now()
	for b.Loop() {
		if r, err := c.ProjectRole(b.Context(), u, p, now); err != nil || r == 0 {
			b.Fatal(r, err)
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

func BenchmarkRolesIn(b *testing.B) {
	w, u, p := Large(b)
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

func BenchmarkRolesIn_shared(b *testing.B) {
	for how, remember := range map[string]bool{"remembered": true, "looked up": false} {
		b.Run(how, func(b *testing.B) {
			w, u, p := Large(b)
			p = p.DeepCopy()
			p.Spec.SharedWith = []v1alpha1.Share{
				Sharing(ByPath("root-5/sub-5"), v1alpha1.RoleOwner), Sharing(ByPath("root-6"), v1alpha1.RoleOwner), Sharing(ByPath("root-7/sub-1"), v1alpha1.RoleOwner),
			}
			w.Put(p)
			c, now := catalog.New(w.Reader()), time.Now()
			if remember {
				c = w.Catalog()
			}
			s, err := c.ProjectScope(b.Context(), p)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if r, err := c.RolesIn(b.Context(), u, s, now); err != nil || r.Shared == 0 {
					b.Fatal(r, err)
				}
			}
		})
	}
}
