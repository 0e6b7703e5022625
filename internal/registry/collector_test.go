package registry_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/test/patience"
)

// expectCollected expects what the metrics of a collector count.
func expectCollected(g *WithT, c *registry.Collector, bytes int64, failed int) {
	want := fmt.Sprintf(`# HELP forgeplane_registry_collected_bytes_total Bytes of images that garbage collections have removed.
# TYPE forgeplane_registry_collected_bytes_total counter
forgeplane_registry_collected_bytes_total %d
# HELP forgeplane_registry_failed_collections_total Garbage collections of images that have failed.
# TYPE forgeplane_registry_failed_collections_total counter
forgeplane_registry_failed_collections_total %d
`, bytes, failed)
	g.Eventually(func() error { return testutil.CollectAndCompare(c, strings.NewReader(want)) }).WithTimeout(patience.Wait).Should(Succeed())
}

func TestCollector_collectsOnceInAnInterval(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	p := w.pushed(t, "web")
	d := p.image("", dockerManifest, dockerConfig, dockerLayer, madeAt(2020))
	// The files are older than the grace period for a process whose clock is ahead.
	w.clock.Step(3 * registry.DefaultGrace)
	const interval = 3 * time.Hour
	c := registry.NewCollector(w.registry, registry.CollectOptions{}, interval, w.clock, testr.New(t))
	g.Expect(c.NeedLeaderElection()).To(BeTrue())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		g.Eventually(ended).WithTimeout(patience.Wait).Should(Receive(BeNil()))
	})
	pass := func(d time.Duration) {
		t.Helper()
		g.Eventually(w.clock.HasWaiters).WithTimeout(patience.Wait).Should(BeTrue())
		w.clock.Step(d)
	}

	// The first one comes soon, and fails.
	failing := make(chan struct{}, 100)
	w.storage.Before(func(context.Context, string, string) error {
		failing <- struct{}{}
		return errors.New("the storage does not answer")
	})
	pass(9 * time.Minute)
	g.Consistently(failing, "100ms").ShouldNot(Receive(), "the process has just started")
	pass(time.Minute)
	expectCollected(g, c, 0, 1)
	w.storage.Before(nil)

	g.Eventually(w.clock.HasWaiters).WithTimeout(patience.Wait).Should(BeTrue())
	blobs := func() ([]string, error) { return filepath.Glob(w.images + "/docker/registry/v2/blobs/sha256/*/*/data") }
	g.Expect(blobs()).To(HaveLen(4))
	pass(interval - time.Second)
	g.Consistently(blobs, "100ms").Should(HaveLen(4), "the interval has not passed")
	pass(time.Second)
	g.Eventually(blobs).WithTimeout(patience.Wait).Should(BeEmpty())
	size := d.Size
	for _, content := range []string{madeAt(2020), "common", "of " + madeAt(2020)} {
		size += int64(len(content))
	}
	expectCollected(g, c, size, 1)
}
