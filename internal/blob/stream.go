package blob

import (
	"context"
	"errors"
	"fmt"
	"io"

	"gocloud.dev/blob"
)

// Put stores the content of a reader under a key, in place of an earlier blob, and returns its size. It holds a part of the content in memory. If
// the reader or the store fails, there is no blob, or the earlier one stays. ctx limits the time.
func (s *Store) Put(ctx context.Context, key, contentType string, from io.Reader) (size int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := s.bucket.NewWriter(ctx, key, &blob.WriterOptions{ContentType: contentType})
	if err != nil {
		return 0, fmt.Errorf("%w: %s: %w", ErrWrite, key, err)
	}
	if size, err = io.Copy(w, from); err != nil {
		cancel() // a writer whose context has ended stores nothing
		return 0, errors.Join(fmt.Errorf("%w: %s: %w", ErrWrite, key, err), ignoreCanceled(w.Close()))
	}
	if err := w.Close(); err != nil {
		return 0, fmt.Errorf("%w: %s: %w", ErrWrite, key, err)
	}
	return size, nil
}

func ignoreCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Stream copies a part of a blob to w: length bytes from an offset, or all of the rest if length is negative. The error is ErrNotFound if there is no
// blob. ctx limits the time.
func (s *Store) Stream(ctx context.Context, key string, offset, length int64, w io.Writer) (err error) {
	r, err := s.bucket.NewRangeReader(ctx, key, offset, length, nil)
	if err != nil {
		return explain(key, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if _, err := io.Copy(w, r); err != nil {
		return fmt.Errorf("reading the blob %s: %w", key, err)
	}
	return nil
}

// block is the number of bytes that a Reader reads at once.
const block = 64 << 10

// Reader reads a blob at any position. It keeps the last block, because a reader of an archive reads many small parts one after the other. It is
// not safe for concurrent use.
type Reader struct {
	ctx   context.Context //nolint:containedctx // io.ReaderAt has no context
	store *Store
	key   string
	size  int64
	start int64
	kept  []byte
}

// ReaderAt returns a Reader of a blob with a size. ctx limits all reads.
func (s *Store) ReaderAt(ctx context.Context, key string, size int64) *Reader {
	return &Reader{ctx: ctx, store: s, key: key, size: size}
}

// ReadAt implements io.ReaderAt.
func (r *Reader) ReadAt(p []byte, at int64) (n int, err error) {
	for n < len(p) {
		if at+int64(n) >= r.size {
			return n, io.EOF
		}
		if err := r.load(at + int64(n)); err != nil {
			return n, err
		}
		n += copy(p[n:], r.kept[at+int64(n)-r.start:])
	}
	return n, nil
}

// load keeps the block that begins at or before a position.
func (r *Reader) load(at int64) error {
	if at >= r.start && at < r.start+int64(len(r.kept)) {
		return nil
	}
	start := at / block * block
	content := &bounded{most: min(block, r.size-start)}
	if err := r.store.Stream(r.ctx, r.key, start, content.most, content); err != nil {
		return err
	}
	if int64(len(content.bytes)) != content.most {
		return fmt.Errorf("reading the blob %s: %w", r.key, io.ErrUnexpectedEOF)
	}
	r.start, r.kept = start, content.bytes
	return nil
}

// bounded is a writer of at most so many bytes.
type bounded struct {
	most  int64
	bytes []byte
}

func (b *bounded) Write(p []byte) (int, error) {
	if int64(len(b.bytes)+len(p)) > b.most {
		return 0, io.ErrShortWrite
	}
	b.bytes = append(b.bytes, p...)
	return len(p), nil
}
