package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/forgeplane/forgeplane/test/bench/figures"
	"github.com/forgeplane/forgeplane/test/bench/gitclient"
	"github.com/forgeplane/forgeplane/test/bench/hostile"
)

// hostileRow returns the name of the row of a repository.
func hostileRow(repository string) string { return "hostile/" + repository }

func hostileRowsUnmeasured() (all []*figures.Row) {
	for _, r := range hostile.Full.Repositories() {
		all = append(all, &figures.Row{
			ID: hostileRow(r.Name), Name: r.About + ", memory of a git process at its peak", Unit: figures.Megabytes, Bound: atMost(hostilePeak[r.Name]),
		})
	}
	return all
}

// hostilePeak is the number of megabytes that a process of git can have in memory, including mapped files, whatever it does with a repository.
var hostilePeak = map[string]float64{"zeros": 100, "wide": 500, "nest": 1200, "deltas": 300, "attributes": 400, "refs": 500}

var hostileRows = func() (ids []string) {
	for _, row := range hostileRowsUnmeasured() {
		ids = append(ids, row.ID)
	}
	return ids
}()

// measureHostile performs every operation of a server with each repository. The figures do not depend on Kubernetes, so it does not run.
func (b *bench) measureHostile(ctx context.Context) error {
	client, err := gitclient.New(filepath.Join(b.directory, "hostile-home"), "nobody", "none")
	if err != nil {
		return err
	}
	for _, r := range hostile.Full.Repositories() {
		id := hostileRow(r.Name)
		if !b.wants(id) {
			continue
		}
		b.say("making %s", r.About)
		if err := b.measureHostileRepository(ctx, client, r); err != nil {
			b.fail(err, id)
		}
	}
	return context.Cause(ctx)
}

func (b *bench) measureHostileRepository(ctx context.Context, client *gitclient.Client, r hostile.Repository) error {
	dir, err := newDirectory(b.directory, "hostile-"+r.Name)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	storage, err := newDirectory(dir, "storage")
	if err != nil {
		return err
	}
	source := filepath.Join(dir, "source")
	if err := r.Make(ctx, client, source); err != nil {
		return err
	}
	var most float64
	var by string
	for _, operation := range hostile.Operations() {
		f, err := hostile.Measure(ctx, operation, source, storage)
		if err != nil {
			return err
		}
		said := f.Said
		if f.Failed != "" {
			return fmt.Errorf("%s: %s", operation, f.Failed)
		}
		if said == "" {
			said = "done"
		}
		b.say("%-14s %5.0f MB, %s: %s", operation, megabytes(f.Peak), f.Took.Round(10*time.Millisecond), said)
		if m := megabytes(f.Peak); m > most {
			most, by = m, operation
		}
	}
	b.describe(hostileRow(r.Name), by)
	b.record(hostileRow(r.Name), []float64{most}, nil)
	return nil
}
