package cleanup_test

import (
	"runtime"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/cleanup"
	"github.com/forgeplane/forgeplane/test/soak"
)

// heap returns the number of bytes of the heap that are in use.
func heap() int64 {
	for range 3 { // a sync.Pool is empty only after the second collection
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m) //nolint:forbidigo // only "make soak" measures
	return int64(m.HeapAlloc)
}

func TestClean_needsLittleMemoryForManyTags(t *testing.T) {
	soak.Only(t)
	const many, most = 10_000, 32 << 20
	directory, err := registry.OpenDirectory(t.TempDir())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	w := newWorldIn(t, directory)
	w.store(w.web, numbered(many))
	before, peak := heap(), int64(0)
	w.interrupted = func(p cleanup.Progress) bool {
		if p.Removed%1000 == 0 {
			peak = max(peak, heap())
		}
		return false
	}
	p, err := w.clean(w.process(), w.run(".*", 10))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(p.Deleted).To(BeEquivalentTo(many - 10))
	t.Logf("a cleanup of %d tags needs %d KiB", many, (peak-before)>>10)
	w.Expect(peak - before).To(BeNumerically("<", most))
}
