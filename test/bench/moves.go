package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/relocate"
)

const (
	moveRounds, moveBlobsRounds = 15, 4
	// moveBlobs times moveBlobSize is the size of the repository of large blobs, in bytes.
	moveBlobs, moveBlobSize = 100, 10 << 20
)

// mover moves a repository to and fro between two storages.
type mover struct {
	s       *servers
	engine  *git.Engine
	storage [2]string
	// at is the storage that has the repository.
	at, round int
}

// measureMoves compares moves of repositories with what an administrator would do by hand: a mirror clone whose files are not shared with the
// source, since another file system cannot share them, and a check that nothing is missing. By hand, nothing is made durable.
func (s *servers) measureMoves(ctx context.Context, history *site) error {
	engine, err := git.NewEngine(ctx, git.Options{})
	if err != nil {
		return err
	}
	defer engine.Close()
	if s.bench.wants(rowMove) {
		m, err := s.newMover(engine, "history")
		if err != nil {
			return err
		}
		if _, err := s.client.Run(ctx, m.storage[0], nil, "clone", "--quiet", "--mirror", "--no-hardlinks", s.RepositoryDir(history.project), movedName); err != nil {
			return err
		}
		o, r, err := alternate(until(moveRounds), m.move(ctx), m.byHand(ctx))
		if err != nil {
			return err
		}
		s.bench.record(rowMove, o, r)
	}
	if s.bench.wants(rowMovePause) {
		if err := s.measurePause(ctx, history); err != nil {
			return err
		}
	}
	if !s.bench.wants(rowMoveBlobs) {
		return nil
	}
	m, err := s.newMover(engine, "blobs")
	if err == nil {
		err = m.fill(ctx)
	}
	if err != nil {
		return err
	}
	o, r, err := alternate(exactly(moveBlobsRounds), m.move(ctx), m.byHand(ctx))
	if err != nil {
		return err
	}
	s.bench.record(rowMoveBlobs, o, r)
	return nil
}

// movedName is the path of a moved repository on its storages.
const movedName = "moved.git"

func (s *servers) newMover(engine *git.Engine, name string) (*mover, error) {
	m := &mover{s: s, engine: engine}
	for i := range m.storage {
		var err error
		if m.storage[i], err = os.MkdirTemp(s.bench.directory, "move-"+name+"-"); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// fill makes a repository of large blobs that cannot be compressed.
func (m *mover) fill(ctx context.Context) error {
	m.s.bench.say("making a repository of %d blobs of %d MB", moveBlobs, moveBlobSize>>20)
	if _, err := m.s.client.Run(ctx, m.storage[0], nil, "init", "--quiet", "--bare", "--initial-branch=main", movedName); err != nil {
		return err
	}
	random := rand.NewChaCha8([32]byte{1})
	parts := make([]io.Reader, 0, 3*moveBlobs+1)
	var tree bytes.Buffer
	tree.WriteString("commit refs/heads/main\ncommitter bench <bench@example.com> 0 +0000\ndata 0\n")
	for i := 1; i <= moveBlobs; i++ {
		parts = append(parts, bytes.NewBufferString(fmt.Sprintf("blob\nmark :%d\ndata %d\n", i, moveBlobSize)), io.LimitReader(random, moveBlobSize), bytes.NewBufferString("\n"))
		fmt.Fprintf(&tree, "M 100644 :%d blob-%d\n", i, i)
	}
	_, err := m.s.client.Run(ctx, filepath.Join(m.storage[0], movedName), io.MultiReader(append(parts, &tree)...), "-c", "core.compression=0", "fast-import", "--quiet")
	return err
}

// move returns a measurement of a move to the other storage. The former copy is removed after it.
func (m *mover) move(ctx context.Context) func(int) (float64, error) {
	return func(int) (float64, error) {
		from, err := m.engine.Repository(m.storage[m.at], movedName)
		if err != nil {
			return 0, err
		}
		to, err := m.engine.Repository(m.storage[1-m.at], movedName)
		if err != nil {
			return 0, err
		}
		m.round++
		by := fmt.Sprintf("bench-%d", m.round)
		begun := time.Now()
		err = relocate.Move(ctx, []relocate.Pair{{From: from, To: to}}, relocate.Options{
			By: by, Switch: func(context.Context) error { return nil },
		})
		took := milliseconds(time.Since(begun))
		if err != nil {
			return 0, err
		}
		m.at = 1 - m.at
		return took, from.RemoveRetired(ctx, by)
	}
}

// byHand returns a measurement of a copy and its check.
func (m *mover) byHand(ctx context.Context) func(int) (float64, error) {
	return func(round int) (float64, error) {
		made := filepath.Join(m.storage[0], fmt.Sprintf("by-hand-%d.git", round))
		begun := time.Now()
		_, err := m.s.client.Run(ctx, m.storage[0], nil, "clone", "--quiet", "--mirror", "--no-hardlinks", filepath.Join(m.storage[m.at], movedName), made)
		if err == nil {
			_, err = m.s.client.Run(ctx, made, nil, "fsck", "--connectivity-only", "--no-dangling")
		}
		took := milliseconds(time.Since(begun))
		if err != nil {
			return 0, err
		}
		return took, os.RemoveAll(made)
	}
}
