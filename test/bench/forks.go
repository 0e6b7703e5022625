package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
)

const forkRounds = 25

// measureFork compares the step that makes the repository of a fork with the fastest clone that git has, which shares all objects.
func (s *servers) measureFork(ctx context.Context, of *site) error {
	engine, err := git.NewEngine(ctx, git.Options{})
	if err != nil {
		return err
	}
	defer engine.Close()
	directory := s.RepositoryDir(of.project)
	source, err := engine.Repository(filepath.Dir(directory), filepath.Base(directory))
	if err != nil {
		return err
	}
	// Next to the source, so that both are on one file system.
	made, err := newDirectory(filepath.Dir(filepath.Dir(filepath.Dir(directory))), "bench-forks")
	if err != nil {
		return err
	}
	from := func(name string) (ours, reference func(round int) (float64, error)) {
		return func(round int) (float64, error) {
				fork, err := engine.Repository(made, fmt.Sprintf("%s-%d.git", name, round))
				if err != nil {
					return 0, err
				}
				begun := time.Now()
				err = transfer.Fork(ctx, fork, source, transfer.ForkOptions{})
				return milliseconds(time.Since(begun)), err
			}, func(round int) (float64, error) {
				begun := time.Now()
				_, err := s.client.Run(ctx, made, nil, "clone", "--quiet", "--bare", "--shared", directory, fmt.Sprintf("%s-clone-%d.git", name, round))
				return milliseconds(time.Since(begun)), err
			}
	}
	ours, reference := from("first")
	if _, _, err := alternate(exactly(1), ours, reference); err != nil {
		return err
	}
	ours, reference = from("fork")
	o, r, err := alternate(until(forkRounds), ours, reference)
	if err != nil {
		return err
	}
	s.bench.record(rowFork, o, r)
	return nil
}
