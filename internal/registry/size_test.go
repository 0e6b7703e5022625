package registry_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/internal/registry/registrytest"
)

func TestMeasure_followsTags(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	size := func() int64 {
		g.Expect(w.registry.Measure(t.Context(), w.project.UID)).To(Succeed())
		n, err := w.registry.Records.Size(t.Context(), w.project.UID)
		g.Expect(err).NotTo(HaveOccurred())
		return n
	}
	g.Expect(size()).To(BeZero())
	root, web := w.repository(t, ""), w.repository(t, "web")
	g.Expect(size()).To(BeZero())
	registrytest.Push(t, w.registry, "acme/app/web", "one", "{}")
	one := size()
	g.Expect(one).To(BeNumerically(">", 100))
	registrytest.Push(t, w.registry, "acme/app/web", "two", "{}")
	two := size()
	g.Expect(two).To(Equal(2*one-100-2), "a layer and the configuration count once")
	registrytest.Push(t, w.registry, "acme/app", "one", "{}")
	g.Expect(size()).To(Equal(two + one))
	w.storage.Before(func(context.Context, string, string) error { return errors.New("the disk is full of errors") })
	g.Expect(size()).To(Equal(two+one), "what is recorded needs no storage")
	w.storage.Before(nil)
	g.Expect(w.read(t, web).Untag(t.Context(), "two")).To(Succeed())
	g.Expect(w.read(t, root).Untag(t.Context(), "one")).To(Succeed())
	g.Expect(size()).To(Equal(one))
}

func TestCollect_measuresRepositories(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	r := w.repository(t, "web")
	registrytest.Push(t, w.registry, "acme/app/web", "one", "{}")
	w.storage.Before(func(ctx context.Context, _, path string) error {
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < time.Second && strings.Contains(path, r.Place) {
			<-ctx.Done() // the storage is slower than requests can wait
			return ctx.Err()
		}
		return nil
	})
	g.Expect(w.registry.Measure(t.Context(), w.project.UID)).To(Succeed())
	g.Expect(w.registry.Records.Size(t.Context(), w.project.UID)).To(BeZero())
	_, err := w.registry.Collect(t.Context(), registry.CollectOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.registry.Records.Size(t.Context(), w.project.UID)).To(BeNumerically(">", 100))
	g.Expect(w.registry.Records.Get(t.Context(), r.ID)).To(Satisfy(func(r record.Repository) bool { return r.Sized == r.Changes }))
}
