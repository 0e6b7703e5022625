// Package artifact stores the files that jobs keep, in a blob store, and reads files out of archives.
package artifact

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sync/semaphore"

	"github.com/forgeplane/forgeplane/internal/blob"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

const (
	// prefix is the prefix of the keys of all artifacts.
	prefix = "artifacts/"
	// maxSearches is the maximum number of directories of archives that are in memory at once.
	maxSearches = 4
)

// Store stores artifacts. It is safe for concurrent use.
type Store struct {
	rows     *pipeline.Store
	blobs    *blob.Store
	searches *semaphore.Weighted
}

// NewStore returns the store of artifacts with rows in a database and content in a blob store.
func NewStore(rows *pipeline.Store, blobs *blob.Store) *Store {
	return &Store{rows, blobs, semaphore.NewWeighted(maxSearches)}
}

// Add stores an artifact of a job with its content, and completes it. The error is pipeline.ErrArtifactExists if the job has an artifact of the type,
// or pipeline.ErrNotFound if the job is gone. The Collector removes content that remains after an error.
func (s *Store) Add(ctx context.Context, a *pipeline.Artifact, content io.Reader) error {
	a.Key = prefix + strings.ToLower(rand.Text())
	if err := s.rows.AddArtifact(ctx, a); err != nil {
		return err
	}
	if err := s.blobs.Put(ctx, a.Key, "application/octet-stream", content, a.Size); err != nil {
		return err
	}
	return s.rows.StoreArtifact(ctx, a)
}

// Write writes the content of an artifact. The error is blob.ErrNotFound if it was removed meanwhile.
func (s *Store) Write(ctx context.Context, a pipeline.Artifact, to io.Writer) (err error) {
	r, err := s.blobs.Open(ctx, a.Key, 0, -1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if _, err := io.Copy(to, r); err != nil {
		return fmt.Errorf("reading artifact %d: %w", a.ID, err)
	}
	return nil
}

// File is a file in an archive.
type File struct {
	// Size is the number of bytes, unpacked.
	Size int64
	// Write writes the content. It fails if the archive is damaged or was removed meanwhile.
	Write func(ctx context.Context, to io.Writer) error
}

// Find finds the file with a name in an archive. The error is ErrNoFile, an Unreadable, or blob.ErrNotFound if the archive was removed meanwhile.
func (s *Store) Find(ctx context.Context, archive pipeline.Artifact, name string) (File, error) {
	f, err := s.search(ctx, archive, name)
	if err != nil {
		return File{}, err
	}
	return File{f.size, func(ctx context.Context, to io.Writer) (err error) {
		r, err := s.blobs.Open(ctx, archive.Key, f.offset, f.packed)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.Close()) }()
		return f.unpack(to, r)
	}}, nil
}

func (s *Store) search(ctx context.Context, archive pipeline.Artifact, name string) (file, error) {
	if err := s.searches.Acquire(ctx, 1); err != nil {
		return file{}, fmt.Errorf("waiting to read an archive: %w", err)
	}
	defer s.searches.Release(1)
	read := func(offset, length int64) (io.ReadCloser, error) {
		return s.blobs.Open(ctx, archive.Key, offset, length)
	}
	return find(&blocks{read: read, size: archive.Size}, archive.Size, name)
}
