package registrytest

import (
	"context"
	"io"
	"sync/atomic"

	"github.com/distribution/distribution/v3/registry/storage/driver"
)

// Storage is a storage that a test can make fail or wait. It is safe for concurrent use.
type Storage struct {
	driver.StorageDriver
	before atomic.Pointer[Before]
}

// Before is called before each operation on a path, which fails with its error. The operations are the names of the methods, and Write and
// Commit for those of a writer.
type Before func(ctx context.Context, operation, path string) error

// NewStorage returns a storage that does what in does.
func NewStorage(in driver.StorageDriver) *Storage { return &Storage{StorageDriver: in} }

// Before sets what is called before each operation from now on; nil for nothing.
func (s *Storage) Before(b Before) {
	if b == nil {
		s.before.Store(nil)
		return
	}
	s.before.Store(&b)
}

func (s *Storage) meet(ctx context.Context, operation, path string) error {
	if b := s.before.Load(); b != nil {
		return (*b)(ctx, operation, path)
	}
	return nil
}

// GetContent implements driver.StorageDriver.
func (s *Storage) GetContent(ctx context.Context, path string) ([]byte, error) {
	if err := s.meet(ctx, "GetContent", path); err != nil {
		return nil, err
	}
	return s.StorageDriver.GetContent(ctx, path)
}

// PutContent implements driver.StorageDriver.
func (s *Storage) PutContent(ctx context.Context, path string, content []byte) error {
	if err := s.meet(ctx, "PutContent", path); err != nil {
		return err
	}
	return s.StorageDriver.PutContent(ctx, path, content)
}

// Reader implements driver.StorageDriver.
func (s *Storage) Reader(ctx context.Context, path string, offset int64) (io.ReadCloser, error) {
	if err := s.meet(ctx, "Reader", path); err != nil {
		return nil, err
	}
	return s.StorageDriver.Reader(ctx, path, offset)
}

// Writer implements driver.StorageDriver.
func (s *Storage) Writer(ctx context.Context, path string, add bool) (driver.FileWriter, error) {
	if err := s.meet(ctx, "Writer", path); err != nil {
		return nil, err
	}
	w, err := s.StorageDriver.Writer(ctx, path, add)
	if err != nil {
		return nil, err
	}
	return &writer{FileWriter: w, of: s, path: path}, nil
}

// Stat implements driver.StorageDriver.
func (s *Storage) Stat(ctx context.Context, path string) (driver.FileInfo, error) {
	if err := s.meet(ctx, "Stat", path); err != nil {
		return nil, err
	}
	return s.StorageDriver.Stat(ctx, path)
}

// List implements driver.StorageDriver.
func (s *Storage) List(ctx context.Context, path string) ([]string, error) {
	if err := s.meet(ctx, "List", path); err != nil {
		return nil, err
	}
	return s.StorageDriver.List(ctx, path)
}

// Move implements driver.StorageDriver.
func (s *Storage) Move(ctx context.Context, from, to string) error {
	if err := s.meet(ctx, "Move", to); err != nil {
		return err
	}
	return s.StorageDriver.Move(ctx, from, to)
}

// Delete implements driver.StorageDriver.
func (s *Storage) Delete(ctx context.Context, path string) error {
	if err := s.meet(ctx, "Delete", path); err != nil {
		return err
	}
	return s.StorageDriver.Delete(ctx, path)
}

// Walk implements driver.StorageDriver.
func (s *Storage) Walk(ctx context.Context, path string, f driver.WalkFn, options ...func(*driver.WalkOptions)) error {
	if err := s.meet(ctx, "Walk", path); err != nil {
		return err
	}
	return s.StorageDriver.Walk(ctx, path, f, options...)
}

// writer is a file that is written.
type writer struct {
	driver.FileWriter
	of   *Storage
	path string
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (int, error) {
	if err := w.of.meet(context.Background(), "Write", w.path); err != nil {
		return 0, err
	}
	return w.FileWriter.Write(p)
}

// Commit implements driver.FileWriter.
func (w *writer) Commit(ctx context.Context) error {
	if err := w.of.meet(ctx, "Commit", w.path); err != nil {
		return err
	}
	return w.FileWriter.Commit(ctx)
}
