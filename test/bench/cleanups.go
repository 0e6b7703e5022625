package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/cleanup"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/internal/registry/registrytest"
)

const (
	cleanupRounds = 2
	// cleanupTags is the number of tags of the repository, and cleanupKept the number of those that stay.
	cleanupTags, cleanupKept = 10_000, 10
)

// measureCleanups compares a cleanup of a container repository, whose images have different times, with the removal of the same directories by
// hand, which reads nothing and keeps no records.
func (b *bench) measureCleanups(ctx context.Context) (err error) {
	directory := filepath.Join(b.directory, "images")
	db, err := database.Open(ctx, filepath.Join(b.directory, "images.db"), record.Migrations())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	storage, err := registry.OpenDirectory(directory)
	if err != nil {
		return err
	}
	records := record.New(db, clock.RealClock{})
	var ours, reference []float64
	for round := range cleanupRounds {
		var rates [2]float64
		for i, clean := range []func(record.Repository) error{
			func(record.Repository) error {
				r, err := registry.New(ctx, storage, records, nil, clock.RealClock{}) // without what an earlier round has read
				if err != nil {
					return err
				}
				return cleanUp(ctx, r, fmt.Sprintf("image%d-0", round))
			},
			func(of record.Repository) error { return removeTags(directory, of) },
		} {
			of, err := records.Ensure(ctx, 1, "bench", fmt.Sprintf("image%d-%d", round, i))
			if err != nil {
				return err
			}
			if err := writeImages(directory, of); err != nil {
				return err
			}
			begun := time.Now()
			if err := clean(of); err != nil {
				return err
			}
			rates[i] = (cleanupTags - cleanupKept) / time.Since(begun).Seconds()
		}
		ours, reference = append(ours, rates[0]), append(reference, rates[1])
	}
	b.record(rowCleanup, ours, reference)
	return nil
}

// writeImages stores the images of a repository, past the registry.
func writeImages(directory string, of record.Repository) error {
	configs, begun := map[string]string{}, time.Now().Add(-time.Hour)
	for i := range cleanupTags {
		configs[tagNumbered(i)] = fmt.Sprintf(`{"created":%q}`, begun.Add(-time.Duration(cleanupTags-i)*time.Minute).Format(time.RFC3339))
	}
	for path, content := range registrytest.Files(of, configs) {
		file := filepath.Join(directory, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			return fmt.Errorf("storing an image: %w", err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return fmt.Errorf("storing an image: %w", err)
		}
	}
	return nil
}

func tagNumbered(i int) string { return fmt.Sprintf("v%05d", i) }

func cleanUp(ctx context.Context, r *registry.Registry, repository string) error {
	names, err := cleanup.Names(".*")
	if err != nil {
		return err
	}
	run := cleanup.Run{ID: repository, Project: "bench", Repository: repository, Policy: &cleanup.Policy{Delete: names, KeepN: cleanupKept}}
	done, err := cleanup.New(r, clock.RealClock{}).Clean(ctx, run, func(cleanup.Progress) {})
	if err == nil && (done.Deleted != cleanupTags-cleanupKept || done.Failed != 0) {
		err = fmt.Errorf("the cleanup has deleted %d tags, and failed for %d", done.Deleted, done.Failed)
	}
	return err
}

func removeTags(directory string, of record.Repository) error {
	for i := range cleanupTags - cleanupKept {
		tag := filepath.Join(directory, "docker/registry/v2/repositories/repositories", of.Place, "_manifests/tags", tagNumbered(i))
		if err := os.RemoveAll(tag); err != nil {
			return fmt.Errorf("removing a tag: %w", err)
		}
	}
	return nil
}
