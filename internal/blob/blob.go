// Package blob stores binary content under keys, such as avatars: in a directory, or in an object store.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gocloud.dev/blob" // one interface for directories and for the object stores of all large providers
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/gcerrors"
)

// ErrNotFound is the error for a key without a blob.
var ErrNotFound = errors.New("there is no such blob")

// ErrWrite says that a blob could not be written. It wraps the error of the store.
var ErrWrite = errors.New("writing a blob")

// timeout limits one operation.
const timeout = 30 * time.Second

// Store stores blobs. Several goroutines and processes can use it at the same time.
type Store struct{ bucket *blob.Bucket }

// Blob describes a stored blob.
type Blob struct {
	Key string
	// Modified is the time at which the blob was written.
	Modified time.Time
}

// Open opens the store at a place: the absolute path of a directory, which is created if it is missing, or the URL of an object store, such
// as s3://bucket?region=eu-central-1. A URL needs a driver: the build tag s3 adds the one of S3. Drivers read their credentials from the
// environment. The caller closes the store.
func Open(ctx context.Context, place string) (*Store, error) {
	if strings.Contains(place, "://") {
		bucket, err := blob.OpenBucket(ctx, place)
		if err != nil {
			return nil, fmt.Errorf("opening the blob store: %w", err)
		}
		return &Store{bucket}, nil
	}
	if !filepath.IsAbs(place) {
		return nil, fmt.Errorf("opening the blob store: %q must be an absolute path or a URL", place)
	}
	// A blob appears at once and complete, because its temporary file is in the same directory.
	bucket, err := fileblob.OpenBucket(place, &fileblob.Options{
		CreateDir: true, DirFileMode: 0o700, NoTempDir: true, Metadata: fileblob.MetadataDontWrite,
	})
	if err != nil {
		return nil, fmt.Errorf("opening the blob store: %w", err)
	}
	return &Store{bucket}, nil
}

// Close closes the store.
func (s *Store) Close() error { return s.bucket.Close() }

// Write stores content under a key, in place of an earlier blob. contentType is its media type.
func (s *Store) Write(ctx context.Context, key, contentType string, content []byte) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := s.bucket.WriteAll(ctx, key, content, &blob.WriterOptions{ContentType: contentType}); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrWrite, key, err)
	}
	return nil
}

// Read returns the content of a blob of at most the given number of bytes. The error is ErrNotFound if there is none.
func (s *Store) Read(ctx context.Context, key string, most int64) (content []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r, err := s.bucket.NewReader(ctx, key, nil)
	if err != nil {
		return nil, explain(key, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if r.Size() > most {
		return nil, fmt.Errorf("the blob %s has %d bytes, more than the maximum of %d", key, r.Size(), most)
	}
	content, err = io.ReadAll(io.LimitReader(r, most))
	if err != nil {
		return nil, explain(key, err)
	}
	return content, nil
}

// throughput is the slowest speed at which a store is expected to take a large blob, in bytes per second.
const throughput = 1 << 20

// linker is a reader of a file that can have one more name.
type linker interface{ Link(name string) error }

// Put stores the given number of bytes from a reader under a key, in place of an earlier blob. contentType is its media type. If the reader has a
// method Link, as endpoint.Upload has, and the store is a directory on the same file system, nothing is copied.
func (s *Store) Put(ctx context.Context, key, contentType string, from io.Reader, size int64) error {
	ctx, cancel := context.WithTimeout(ctx, timeout+time.Duration(size/throughput)*time.Second)
	defer cancel()
	linked := false
	w, err := s.bucket.NewWriter(ctx, key, &blob.WriterOptions{ContentType: contentType, BeforeWrite: func(as func(any) bool) error {
		var file *os.File
		l, ok := from.(linker)
		linked = ok && as(&file) && replace(file.Name(), l) == nil
		return nil
	}})
	if err == nil {
		if !linked {
			_, err = io.CopyN(w, from, size)
		}
		if err != nil {
			cancel() // so that Close does not keep a part
		}
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrWrite, key, err)
	}
	return nil
}

// replace replaces a file by another one.
func replace(name string, by linker) error {
	next := name + ".link"
	if err := by.Link(next); err != nil {
		return err
	}
	if err := os.Rename(next, name); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return nil
}

// Open returns a reader of a part of a blob that begins at an offset, for as long as ctx lasts. A negative length stands for the rest. The error is
// ErrNotFound if there is no blob. The caller closes the reader.
func (s *Store) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	r, err := s.bucket.NewRangeReader(ctx, key, offset, length, nil)
	if err != nil {
		return nil, explain(key, err)
	}
	return r, nil
}

// Remove removes a blob. If there is none, it does nothing.
func (s *Store) Remove(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := s.bucket.Delete(ctx, key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return fmt.Errorf("removing the blob %s: %w", key, err)
	}
	return nil
}

// Each calls visit for each blob whose key has a prefix, in the order of the keys, until visit returns an error.
func (s *Store) Each(ctx context.Context, prefix string, visit func(Blob) error) error {
	all := s.bucket.List(&blob.ListOptions{Prefix: prefix})
	for {
		next, err := all.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listing the blobs %s*: %w", prefix, err)
		}
		if err := visit(Blob{Key: next.Key, Modified: next.ModTime}); err != nil {
			return err
		}
	}
}

// explain converts the error of reading a blob.
func explain(key string, err error) error {
	if gcerrors.Code(err) == gcerrors.NotFound {
		return ErrNotFound
	}
	return fmt.Errorf("reading the blob %s: %w", key, err)
}
