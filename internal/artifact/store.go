// Package artifact stores the files that jobs keep, in a blob store, and reads files out of archives.
package artifact

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
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

// Add stores an artifact of a job with its content, and completes it. The error is pipeline.ErrArtifactExists if the job has another artifact of the type,
// or pipeline.ErrNotFound if the job is gone. A repeated upload, whose first answer was lost, succeeds. The Collector removes content that remains.
func (s *Store) Add(ctx context.Context, a *pipeline.Artifact, content io.Reader) error {
	a.Key = prefix + strings.ToLower(rand.Text())
	if err := s.rows.AddArtifact(ctx, a); err != nil {
		return err
	}
	if err := s.blobs.Put(ctx, a.Key, "application/octet-stream", content, a.Size); err != nil {
		return err
	}
	err := s.rows.StoreArtifact(ctx, a)
	if errors.Is(err, pipeline.ErrArtifactExists) {
		if same, failed := s.repeats(ctx, *a); same || failed != nil {
			err = failed
		}
	}
	return err
}

// repeats reports whether a job has an artifact with the same type and content.
func (s *Store) repeats(ctx context.Context, a pipeline.Artifact) (bool, error) {
	stored, err := s.rows.Artifacts(ctx, a.JobID)
	if err != nil {
		return false, err
	}
	for _, former := range stored[a.JobID] {
		if former.Type != a.Type || former.Size != a.Size {
			continue
		}
		was, is := sha256.New(), sha256.New()
		if err := cmp.Or(s.Write(ctx, former, was), s.Write(ctx, a, is)); err != nil {
			return false, err
		}
		return bytes.Equal(was.Sum(nil), is.Sum(nil)), nil
	}
	return false, nil
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
