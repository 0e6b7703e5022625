package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/forgeplane/forgeplane/internal/git"
)

// limits are the flags that bound what git takes, and what is given to it. 0 is no limit.
type limits struct {
	memory resource.QuantityValue
	cpu    time.Duration
}

func defaultLimits() limits {
	return limits{memory: bytesValue(git.DefaultMemory), cpu: git.DefaultCPU}
}

func bytesValue(n int64) resource.QuantityValue {
	return resource.QuantityValue{Quantity: *resource.NewQuantity(n, resource.BinarySI)}
}

func (l *limits) bind(f *pflag.FlagSet) {
	f.Var(&l.memory, "git-memory-limit", "memory that one git process may allocate, the files that it maps aside, as in 2Gi; 0 for any amount")
	f.DurationVar(&l.cpu, "git-cpu-limit", l.cpu, "processor time that one git process may take; 0 for any amount")
}

// leastMemory is what git needs for a small repository.
const leastMemory = 64 << 20

func (l *limits) validate() error {
	if n := l.memory.Value(); n != 0 && n < leastMemory {
		return errors.New("--git-memory-limit must be 64Mi or more, or 0 for any amount")
	}
	if l.cpu != 0 && l.cpu < time.Second {
		return fmt.Errorf("--git-cpu-limit must be 1s or more, or 0 for any amount, not %s", l.cpu)
	}
	return nil
}

// git are those that the engine sees to.
func (l *limits) git() git.Limits {
	return git.Limits{Memory: unlimited(l.memory.Value()), CPU: unlimited(l.cpu)}
}

// unlimited is a value of a flag in the terms of an engine, for which 0 is the default.
func unlimited[T int64 | time.Duration](value T) T {
	if value == 0 {
		return -1
	}
	return value
}
