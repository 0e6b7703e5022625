package catalog_test

import (
	"testing"
	"time"

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
