package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/forgeplane/forgeplane/internal/git"
)

// limits are the flags that limit git and its input. 0 means no limit.
type limits struct {
	memory, memoryTotal, archive, push, unpacked, repository, imported, importUnpacked resource.QuantityValue
	cpu, importTime                                                                    time.Duration
	refs                                                                               int64
}

func defaultLimits() limits {
	d := git.DefaultLimits
	return limits{
		memory: bytesValue(d.Memory), memoryTotal: bytesValue(git.HalfMemory()), archive: bytesValue(d.Archive), push: bytesValue(d.Push), unpacked: bytesValue(d.PushUnpacked), repository: bytesValue(d.Repository),
		imported: bytesValue(d.Import), importUnpacked: bytesValue(d.ImportUnpacked), cpu: d.CPU, importTime: d.ImportTime, refs: d.Refs,
	}
}

func bytesValue(n int64) resource.QuantityValue {
	return resource.QuantityValue{Quantity: *resource.NewQuantity(n, resource.BinarySI)}
}

func (l *limits) bind(f *pflag.FlagSet) {
	f.Var(&l.memory, "git-memory-limit", "memory that one git process can allocate, without mapped files, as in 2Gi; 0 for any amount")
	f.Var(&l.memoryTotal, "git-memory-total", "memory that all git processes can allocate together, without mapped files; by default half of the memory of the container or the machine; 0 for any amount")
	f.DurationVar(&l.cpu, "git-cpu-limit", l.cpu, "processor time that one git process can use; 0 for any amount")
	f.Var(&l.archive, "max-archive-size", "size of an archive before compression; 0 for any size")
	f.Var(&l.push, "max-push-size", "size of the objects of one push as they are sent, and of each unpacked object of a push or an import; 0 for any size")
	f.Var(&l.unpacked, "max-push-unpacked-size", "size of all unpacked objects of one push together; 0 for any size")
	f.Var(&l.repository, "max-repository-size", "size on disk at which a repository accepts no more objects; 0 for any size")
	f.Int64Var(&l.refs, "max-refs", l.refs, "number of branches and tags that a repository can have; 0 for any number")
	f.Var(&l.imported, "max-import-size", "size on disk of an imported repository; 0 for any size")
	f.Var(&l.importUnpacked, "max-import-unpacked-size", "size of all unpacked objects of an import together; 0 for any size")
	f.DurationVar(&l.importTime, "import-timeout", l.importTime, "time limit of an import; 0 for any time")
}

// leastMemory is the memory that git and its hook need for a small repository.
const leastMemory = 128 << 20

func (l *limits) validate() error {
	for flag, value := range map[string]*resource.QuantityValue{"git-memory-limit": &l.memory, "git-memory-total": &l.memoryTotal} {
		if n := value.Value(); n != 0 && n < leastMemory {
			return fmt.Errorf("--%s must be 128Mi or more, or 0 for any amount, not %s", flag, value)
		}
	}
	for flag, value := range map[string]*resource.QuantityValue{
		"max-archive-size": &l.archive, "max-push-size": &l.push, "max-push-unpacked-size": &l.unpacked, "max-repository-size": &l.repository, "max-import-size": &l.imported,
		"max-import-unpacked-size": &l.importUnpacked,
	} {
		if value.Sign() < 0 {
			return fmt.Errorf("--%s must be a size, or 0 for any size, not %s", flag, value)
		}
	}
	if l.refs < 0 {
		return fmt.Errorf("--max-refs must be a number, or 0 for any number, not %d", l.refs)
	}
	for flag, value := range map[string]time.Duration{"git-cpu-limit": l.cpu, "import-timeout": l.importTime} {
		if value != 0 && value < time.Second {
			return fmt.Errorf("--%s must be 1s or more, or 0 for any time, not %s", flag, value)
		}
	}
	return nil
}

// git returns the limits in the form of the engine.
func (l *limits) git() git.Limits {
	size := func(q resource.QuantityValue) int64 { return unlimited(q.Value()) }
	return git.Limits{
		Memory: size(l.memory), MemoryTotal: size(l.memoryTotal), CPU: unlimited(l.cpu), Archive: size(l.archive), Push: size(l.push), PushUnpacked: size(l.unpacked), Repository: size(l.repository), Refs: unlimited(l.refs),
		Import: size(l.imported), ImportTime: unlimited(l.importTime), ImportUnpacked: size(l.importUnpacked),
	}
}

// unlimited converts the value of a flag for the engine, in which 0 is the default.
func unlimited[T int64 | time.Duration](value T) T {
	if value == 0 {
		return -1
	}
	return value
}
