package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/forgeplane/forgeplane/apiserver/githttp"
	"github.com/forgeplane/forgeplane/apiserver/registryhttp"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
)

// slots are the limits of simultaneous requests of each kind, and the shares of callers.
type slots struct {
	number map[string]int
	// memory is the memory for requests and responses. 0 means no limit.
	memory resource.QuantityValue
	// disk is the disk space for uploads. 0 means no limit. uploads is the directory for them. The default is in the directory of the
	// process.
	disk    resource.QuantityValue
	uploads string
	// share is the share of one caller, and reserved is the part that is reserved for callers with credentials, both in percent.
	share, reserved int
}

// defaultSlots are the default limits.
func defaultSlots() slots {
	const share, reserved, memory, disk = 25, 25, 256 << 20, 8 << 30
	return slots{share: share, reserved: reserved, memory: bytesValue(memory), disk: bytesValue(disk)}
}

// defaultNumbers are the default numbers of simultaneous requests of each kind.
func defaultNumbers() map[string]int {
	engine := git.DefaultSlots()
	return map[string]int{
		"git": githttp.DefaultSlots().Total, "archives": engine.Archives.Total, "blobs": engine.Blobs.Total, "walks": engine.Walks.Total,
		"registry": registryhttp.DefaultSlots().Total,
	}
}

func (s *slots) bind(f *pflag.FlagSet) {
	var all []string
	numbers := defaultNumbers()
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		all = append(all, fmt.Sprintf("%s=%d", name, numbers[name]))
	}
	f.StringToIntVar(&s.number, "slots", nil, "number of requests of each kind that are served at once: Git requests (git), archives, large files (blobs), history and comparisons (walks), and requests of the container registry (registry), "+
		"as in git=128,walks=32; by default "+strings.Join(all, ","))
	f.IntVar(&s.share, "slots-per-caller", s.share, "percentage of the --slots, of --request-memory-total and of --upload-disk-total that one user or one address can use; further requests wait")
	f.IntVar(&s.reserved, "slots-reserved", s.reserved, "percentage of the --slots, of --request-memory-total and of --upload-disk-total that is reserved for callers who are signed in")
}

// bindSizes binds the limits of REST requests.
func (s *slots) bindSizes(f *pflag.FlagSet) {
	f.Var(&s.memory, "request-memory-total", "memory of the server for REST requests with long bodies, and for long responses until clients have read them; 0 for any amount")
	f.Var(&s.disk, "upload-disk-total", "disk space of the server for uploads of REST clients, until each request is answered; 0 for any amount")
	f.StringVar(&s.uploads, "upload-dir", s.uploads, "directory for uploads of REST clients, until each request is answered; by default one in --runtime-dir")
}

// leastRequestMemory is the memory for one request with the longest possible body, and leastDisk is the smallest useful disk space for uploads.
const leastRequestMemory, leastDisk = 64 << 20, 64 << 20

func (s *slots) validate() error {
	numbers := defaultNumbers()
	for name, number := range s.number {
		if _, known := numbers[name]; !known || number < 1 {
			return fmt.Errorf("--slots: %s=%d must be one of %s with a number that is 1 or more", name, number, strings.Join(slices.Sorted(maps.Keys(numbers)), ", "))
		}
	}
	if n := s.memory.Value(); n != 0 && n < leastRequestMemory {
		return fmt.Errorf("--request-memory-total must be 64Mi or more, or 0 for any amount, not %s", &s.memory)
	}
	if n := s.disk.Value(); n != 0 && n < leastDisk {
		return fmt.Errorf("--upload-disk-total must be 64Mi or more, or 0 for any amount, not %s", &s.disk)
	}
	if s.share < 1 || s.share > 100 || s.reserved < 0 || s.reserved > 99 {
		return errors.New("--slots-per-caller must be 1 to 100, and --slots-reserved 0 to 99")
	}
	return nil
}

// of returns the limits of a kind.
func (s *slots) of(name string) fair.Limits {
	number, set := s.number[name]
	if !set {
		number = defaultNumbers()[name]
	}
	return fair.Of(number, s.share, s.reserved)
}

// engine returns the limits of the Git engine.
func (s *slots) engine() git.Slots {
	return git.Slots{Archives: s.of("archives"), Blobs: s.of("blobs"), Walks: s.of("walks")}
}

// requests returns the memory for requests and responses.
func (s *slots) requests() *fair.Memory {
	return fair.NewMemory("request-memory", fair.Of(int(s.memory.Value()), s.share, s.reserved))
}

// onDisk returns the disk space for uploads.
func (s *slots) onDisk() *fair.Memory {
	return fair.NewMemory("upload-disk", fair.Of(int(s.disk.Value()), s.share, s.reserved)).WithMessages(
		"Your uploads use all of the %d MiB of disk space that one caller can have.", "The server is busy: uploads use all of the %d MiB of disk space for uploads.")
}
