package main

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/bench/testbed"
)

const (
	readyRounds = 3
	// batches is the number of batches of protections that exist when Forgeplane is restarted.
	batches = 10
)

func (b *bench) measureProtections(ctx context.Context) error {
	return b.with(ctx, "protections", func(ctx context.Context, t *testbed.Testbed) error {
		l, err := b.newLoad(ctx, t)
		if err != nil {
			return err
		}
		if b.wants(rowReady, rowReadyCPU) {
			if err := b.measureReady(ctx, l); err != nil {
				return err
			}
		}
		if !b.wants(restartRows...) {
			return nil
		}
		if err := b.fill(ctx, l); err != nil {
			return err
		}
		return b.measureRestarts(ctx, l)
	})
}

func batchName(n int) string { return fmt.Sprintf("batch-%d", n) }

// measureReady creates a batch in each round, and as many bare objects.
func (b *bench) measureReady(ctx context.Context, l *load) error {
	b.say("warming up")
	if err := l.prepare(ctx, "warm-up"); err != nil {
		return err
	}
	if _, err := l.ready(ctx, "warm-up", batch/10); err != nil {
		return err
	}
	var ourCPU, bareCPU [readyRounds]float64
	ours := func(round int) (_ float64, err error) {
		if err := l.up(ctx); err != nil {
			return 0, err
		}
		if err := l.prepare(ctx, batchName(round)); err != nil {
			return 0, err
		}
		var took time.Duration
		ourCPU[round], err = l.CPUDuring(func() error {
			took, err = l.ready(ctx, batchName(round), batch)
			return err
		})
		b.say("%d protections were ready after %.2f s", batch, took.Seconds())
		return took.Seconds(), err
	}
	bare := func(round int) (_ float64, err error) {
		if err := l.StopForgeplane(); err != nil {
			return 0, err
		}
		var took time.Duration
		bareCPU[round], err = l.CPUDuring(func() error {
			took, err = l.bare(ctx, "default", batch)
			return err
		})
		if err != nil {
			return 0, err
		}
		b.say("%d bare objects were written after %.2f s", batch, took.Seconds())
		return took.Seconds(), l.Client().DeleteAllOf(ctx, &v1alpha1.ProtectedBranch{}, client.InNamespace("default"), made)
	}
	o, r, err := alternate(exactly(readyRounds), ours, bare)
	b.record(rowReady, o, r)
	b.record(rowReadyCPU, ourCPU[:len(o)], bareCPU[:len(r)])
	return err
}

// fill creates the missing batches.
func (b *bench) fill(ctx context.Context, l *load) error {
	if err := l.up(ctx); err != nil {
		return err
	}
	begin := 0
	if b.wants(rowReady, rowReadyCPU) {
		begin = readyRounds
	}
	for n := begin; n < batches; n++ {
		if err := l.prepare(ctx, batchName(n)); err != nil {
			return err
		}
		took, err := l.ready(ctx, batchName(n), batch)
		if err != nil {
			return err
		}
		b.say("%d protections are ready, the last %d after %.1f s", (n+1)*batch, batch, took.Seconds())
	}
	return l.AwaitQuiet(ctx, "protectedbranch", 0)
}
