package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/bench/reference"
	"github.com/forgeplane/forgeplane/test/bench/testbed"
	"github.com/forgeplane/forgeplane/test/bench/usage"
)

const (
	restartRounds = 3
	changeRounds  = 5
	idleTime      = 10 * time.Second
)

// restarted are the measurements of one start, of Forgeplane or of informers alone.
type restarted struct {
	took      time.Duration
	cpu       time.Duration
	memory    usage.Memory
	writes    int
	reconcile float64 // seconds
}

// measureRestarts restarts Forgeplane with everything that was created.
func (b *bench) measureRestarts(ctx context.Context, l *load) error {
	if err := b.restartUnchanged(ctx, l); err != nil {
		return err
	}
	if b.wants(rowIdle) {
		if err := b.measureIdle(ctx, l); err != nil {
			return err
		}
	}
	if !b.wants(rowFreshChange) {
		return nil
	}
	ours := func(round int) (float64, error) {
		took, err := l.changeAtStart(ctx, round)
		b.say("restarted, a fresh change was ready after %.2f s", took.Seconds())
		return took.Seconds(), err
	}
	alone := func(int) (float64, error) {
		r, err := l.informersAlone(ctx)
		return r.took.Seconds(), err
	}
	o, r, err := alternate(exactly(changeRounds), ours, alone)
	b.record(rowFreshChange, o, r)
	return err
}

// restartUnchanged measures what a restart takes when nothing has changed.
func (b *bench) restartUnchanged(ctx context.Context, l *load) error {
	var ours, alone [restartRounds]restarted
	_, _, err := alternate(exactly(restartRounds),
		func(round int) (_ float64, err error) {
			ours[round], err = l.restart(ctx)
			b.say("restarted, all was reconciled after %.2f s", ours[round].took.Seconds())
			return 0, err
		},
		func(round int) (_ float64, err error) {
			alone[round], err = l.informersAlone(ctx)
			return 0, err
		})
	if err != nil {
		return err
	}
	record := func(id string, compared bool, of func(restarted) float64) {
		var o, r []float64
		for round := range restartRounds {
			o = append(o, of(ours[round]))
			if compared {
				r = append(r, of(alone[round]))
			}
		}
		b.record(id, o, r)
	}
	record(rowRestart, true, func(r restarted) float64 { return r.took.Seconds() })
	record(rowRestartCPU, true, func(r restarted) float64 { return r.cpu.Seconds() })
	record(rowWrites, false, func(r restarted) float64 { return float64(r.writes) })
	record(rowMemory, true, func(r restarted) float64 { return megabytes(r.memory.Resident) })
	record(rowPeak, true, func(r restarted) float64 { return megabytes(r.memory.Peak) })
	record(rowReconcile, false, func(r restarted) float64 { return 1000 * r.reconcile })
	return nil
}

// restart restarts Forgeplane, waits until it has reconciled every protection, and checks that none has changed.
func (l *load) restart(ctx context.Context) (restarted, error) {
	if err := l.StopForgeplane(); err != nil {
		return restarted{}, err
	}
	before, err := l.versions(ctx)
	if err != nil {
		return restarted{}, err
	}
	written, err := l.Writes(ctx)
	if err != nil {
		return restarted{}, err
	}
	var r restarted
	begun := time.Now()
	if err := l.StartForgeplane(ctx); err != nil {
		return restarted{}, err
	}
	if err := l.AwaitQuiet(ctx, "protectedbranch", len(before)); err != nil {
		return restarted{}, err
	}
	r.took = time.Since(begun)
	if err := r.use(l.PID()); err != nil {
		return restarted{}, err
	}
	metrics, err := l.Metrics(ctx)
	if err != nil {
		return restarted{}, err
	}
	r.reconcile = metrics.Mean("controller_runtime_reconcile_time_seconds", testbed.Of("controller", "protectedbranch"))
	if failed := metrics.Sum("controller_runtime_reconcile_errors_total", nil); failed > 0 {
		return restarted{}, fmt.Errorf("%.0f reconciles failed after a restart", failed)
	}
	after, err := l.Writes(ctx)
	if err != nil {
		return restarted{}, err
	}
	r.writes = after - written
	return r, l.unchanged(ctx, before)
}

// versions returns the resource versions of all protections, each of which must be ready.
func (l *load) versions(ctx context.Context) (map[client.ObjectKey]string, error) {
	var list v1alpha1.ProtectedBranchList
	if err := l.Client().List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing protections: %w", err)
	}
	versions := make(map[client.ObjectKey]string, len(list.Items))
	for n := range list.Items {
		p := &list.Items[n]
		if !testbed.Ready(p) {
			return nil, fmt.Errorf("protection %s is not ready: %+v", client.ObjectKeyFromObject(p), p.Status.Conditions)
		}
		versions[client.ObjectKeyFromObject(p)] = p.ResourceVersion
	}
	return versions, nil
}

func (l *load) unchanged(ctx context.Context, before map[client.ObjectKey]string) error {
	after, err := l.versions(ctx)
	if err != nil {
		return err
	}
	changed := 0
	for key, version := range before {
		if after[key] != version {
			changed++
		}
	}
	if changed > 0 {
		return fmt.Errorf("%d of %d protections changed during a restart", changed, len(before))
	}
	return nil
}

// informersAlone measures a process that has all objects in memory and does nothing with them, while Forgeplane is stopped.
func (l *load) informersAlone(ctx context.Context) (r restarted, err error) {
	if err := l.StopForgeplane(); err != nil {
		return r, err
	}
	begun := time.Now()
	p, err := reference.StartCache(ctx, l.Kubeconfig())
	if err != nil {
		return r, err
	}
	r.took = time.Since(begun)
	return r, errors.Join(r.use(p.PID()), p.Stop())
}

// use returns the resources that a process has used since it started.
func (r *restarted) use(pid int) (err error) {
	if r.cpu, err = usage.CPUTime(pid); err != nil {
		return err
	}
	r.memory, err = usage.MemoryOf(pid)
	return err
}

// changeAtStart changes one protection directly after Forgeplane was started, and returns the time from the request until the protection was seen
// to be ready again.
func (l *load) changeAtStart(ctx context.Context, round int) (time.Duration, error) {
	if err := l.StopForgeplane(); err != nil {
		return 0, err
	}
	// This object is in the middle of the objects that the new process finds.
	p := protections(batchName(batches/2), batch)[batch/2+round]
	if err := l.Client().Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
		return 0, err
	}
	waiting, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("a change was not ready within %s", readyTimeout))
	defer cancel()
	events, err := follow(waiting, l.Client(), &v1alpha1.ProtectedBranchList{}, client.InNamespace(p.Namespace),
		client.MatchingFields{"metadata.name": p.Name})
	if err != nil {
		return 0, err
	}
	if err := l.StartForgeplane(ctx); err != nil {
		return 0, err
	}
	begun := time.Now()
	old := p.Generation
	before := p.DeepCopy()
	p.Spec.AllowForcePush = !p.Spec.AllowForcePush
	if err := l.Client().Patch(ctx, p, client.MergeFrom(before)); err != nil {
		return 0, err
	}
	err = awaitReady(waiting, events, 1, func(p *v1alpha1.ProtectedBranch) bool { return p.Generation > old })
	took := time.Since(begun)
	if err != nil {
		return 0, err
	}
	return took, l.AwaitQuiet(ctx, "protectedbranch", batches*batch)
}

// measureIdle measures the work of Forgeplane without any requests.
func (b *bench) measureIdle(ctx context.Context, l *load) error {
	if err := l.up(ctx); err != nil {
		return err
	}
	apiServer, err := l.ControlPlanePID("kube-apiserver")
	if err != nil {
		return err
	}
	pids := [2]int{l.PID(), apiServer}
	var before, after [2]time.Duration
	for n, pid := range pids {
		if before[n], err = usage.CPUTime(pid); err != nil {
			return err
		}
	}
	timer := time.NewTimer(idleTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for n, pid := range pids {
		if after[n], err = usage.CPUTime(pid); err != nil {
			return err
		}
	}
	share := func(n int) []float64 { return []float64{100 * (after[n] - before[n]).Seconds() / idleTime.Seconds()} }
	b.record(rowIdle, share(0), share(1))
	return nil
}
