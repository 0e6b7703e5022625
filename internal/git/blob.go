package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"time"
)

// Blob is the content of a file.
type Blob struct {
	ID string
	// Size is in bytes.
	Size int64

	repository *Repository
	// content is nil where there is too much of it to be held by whoever knows the blob.
	content []byte
}

const (
	// maxBlobs of those that are not held in memory are written at once: each takes a process.
	maxBlobs = 64
	// blobTimeout is how long it may take to read a blob, which takes as long as somebody takes to receive it.
	blobTimeout = time.Hour
	// smallBlob is how many bytes a blob has that is held without being counted, and heldBlob one that is written from memory.
	smallBlob, heldBlob = 64 << 10, maxResult - 300
	// heldPatience is how long one waits for memory: fast clients make room for each other in no time.
	heldPatience = time.Second
	// piece is how much of what is in memory is written in one go.
	piece = 256 << 10
)

// Blob returns the blob with an id. It is ErrObjectNotFound if there is no object of this id, or one of another type.
func (r *Repository) Blob(ctx context.Context, id string) (Blob, error) {
	if checkIDs(id) != nil {
		return Blob{}, fmt.Errorf("blob %.100q: %w", id, ErrObjectNotFound)
	}
	size := func(b Blob) int { return len(b.content) + 300 }
	return recall(ctx, r, "reading a blob", id, size, func(ctx context.Context) (Blob, error) {
		o, content, err := r.readSmall(ctx, id, smallBlob)
		if err != nil {
			return Blob{}, err
		}
		if o.Type != "blob" {
			return Blob{}, fmt.Errorf("%s is a %s: %w", id, o.Type, ErrObjectNotFound)
		}
		return Blob{ID: id, Size: o.Size, repository: r, content: content}, nil
	})
}

// Write writes the content. One of up to 16 MiB is written from memory: those of more than 64 KiB if there is room in Options.Memory within
// a second. Others are never in memory as a whole. The error is ErrBusy, before anything is written, where too many of those are written
// already.
func (b Blob) Write(ctx context.Context, w io.Writer) error {
	if b.content != nil {
		return writePieces(w, b.content)
	}
	if b.Size <= heldBlob {
		patience, stop := context.WithTimeout(ctx, heldPatience)
		weigh, err := b.repository.engine.held.Take(patience, b.Size)
		stop()
		if err == nil {
			defer weigh(0)
			return b.writeHeld(ctx, w)
		}
	}
	leave, err := enter(ctx, b.repository.engine.blobs)
	if err != nil {
		return fmt.Errorf("writing a blob: %w", err)
	}
	defer leave()
	ctx, cancel := context.WithTimeoutCause(ctx, blobTimeout, fmt.Errorf("reading a blob took longer than %s", blobTimeout))
	defer cancel()
	c := b.repository.command("cat-file", "blob", b.ID)
	c.stdout = w
	return b.repository.run(ctx, c)
}

// writeHeld writes the content from memory.
func (b Blob) writeHeld(ctx context.Context, w io.Writer) error {
	const what = "reading the content of a blob"
	content, ok := recalled[[]byte](b.repository, what, b.ID)
	if !ok {
		var err error
		if _, content, err = b.repository.Read(ctx, b.ID, heldBlob); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		remember(b.repository, what, b.ID, content, len(content))
	}
	return writePieces(w, content)
}

// writePieces writes what is in memory piece by piece: the client has some time for each.
func writePieces(w io.Writer, content []byte) error {
	for len(content) > 0 {
		n := min(len(content), piece)
		if _, err := w.Write(content[:n]); err != nil {
			return err
		}
		content = content[n:]
	}
	return nil
}

// SHA256 returns the digest of the content alone, in hexadecimal digits, as sha256sum does. The error is that of Write.
func (b Blob) SHA256(ctx context.Context) (string, error) {
	size := func(sum string) int { return len(sum) }
	return recall(ctx, b.repository, hashing, b.ID, size, func(ctx context.Context) (string, error) {
		sum := sha256.New()
		err := b.Write(ctx, sum)
		return hex.EncodeToString(sum.Sum(nil)), err
	})
}

const hashing = "hashing a blob"

// Hashed reports whether SHA256 is known already, for which the content was read before.
func (b Blob) Hashed() bool {
	_, known := recalled[string](b.repository, hashing, b.ID)
	return known
}
