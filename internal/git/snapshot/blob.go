package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/internal/recall"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

// Blob is the content of a file.
type Blob struct {
	ID string
	// Size is the length in bytes.
	Size int64

	repository *git.Repository
	// content is nil if it is too large to be held in memory.
	content []byte
}

const (
	// blobTimeout limits the time to read a blob, which depends on how fast its receiver is.
	blobTimeout = time.Hour
	// smallBlob is the maximum size of a blob that is held without being counted, and heldBlob of a blob that is written from memory, in
	// bytes.
	smallBlob, heldBlob = 64 << 10, recall.MaxResult - 300
	// heldPatience is the time for which a blob waits for memory: fast clients soon release theirs.
	heldPatience = time.Second
	// piece is the number of bytes that are written from memory at once.
	piece = 256 << 10
)

// OpenBlob returns the blob with an id. The error is git.ErrObjectNotFound if no object has this id, or if it has another type.
func OpenBlob(ctx context.Context, r *git.Repository, id string) (Blob, error) {
	if object.CheckIDs(id) != nil {
		return Blob{}, fmt.Errorf("blob %.100q: %w", id, git.ErrObjectNotFound)
	}
	size := func(b Blob) int { return len(b.content) + 300 }
	return recall.Find(ctx, r.Results(), "reading a blob", id, size, func(ctx context.Context) (Blob, error) {
		o, content, err := r.ReadSmall(ctx, id, smallBlob)
		if err != nil {
			return Blob{}, err
		}
		if o.Type != "blob" {
			return Blob{}, fmt.Errorf("%s is a %s: %w", id, o.Type, git.ErrObjectNotFound)
		}
		return Blob{ID: id, Size: o.Size, repository: r, content: content}, nil
	})
}

// Write writes the content. A blob of up to 16 MiB is written from memory; if it has more than 64 KiB, there must be room in git.Options.Memory
// within a second. Other blobs are never in memory as a whole. If too many of those are being written, Write returns git.ErrBusy before it
// writes anything.
func (b Blob) Write(ctx context.Context, w io.Writer) error {
	if b.content != nil {
		return writePieces(w, b.content)
	}
	if b.Size <= heldBlob {
		patience, stop := context.WithTimeout(ctx, heldPatience)
		weigh, err := b.repository.Engine().Memory().Take(patience, b.Size)
		stop()
		if err == nil {
			defer weigh(0)
			return b.writeHeld(ctx, w)
		}
	}
	leave, err := process.Enter(ctx, b.repository.Engine().Blobs())
	if err != nil {
		return fmt.Errorf("writing a blob: %w", err)
	}
	defer leave()
	ctx, cancel := context.WithTimeoutCause(ctx, blobTimeout, fmt.Errorf("reading a blob took longer than %s", blobTimeout))
	defer cancel()
	c := process.In(b.repository.Dir(), "cat-file", "blob", b.ID)
	c.Stdout = w
	return b.repository.Run(ctx, c)
}

// writeHeld writes the content from memory.
func (b Blob) writeHeld(ctx context.Context, w io.Writer) error {
	const what = "reading the content of a blob"
	content, ok := recall.Known[[]byte](b.repository.Results(), what, b.ID)
	if !ok {
		var err error
		if _, content, err = b.repository.Read(ctx, b.ID, heldBlob); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		recall.Keep(b.repository.Results(), what, b.ID, content, len(content))
	}
	return writePieces(w, content)
}

// writePieces writes content from memory in pieces, because the client has a deadline for each piece.
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

// SHA256 returns the SHA-256 digest of the content in hexadecimal digits, like sha256sum. It can return the errors of Write.
func (b Blob) SHA256(ctx context.Context) (string, error) {
	size := func(sum string) int { return len(sum) }
	return recall.Find(ctx, b.repository.Results(), hashing, b.ID, size, func(ctx context.Context) (string, error) {
		sum := sha256.New()
		err := b.Write(ctx, sum)
		return hex.EncodeToString(sum.Sum(nil)), err
	})
}

const hashing = "hashing a blob"

// Hashed reports whether the content was read before, so that SHA256 is already known.
func (b Blob) Hashed() bool {
	_, known := recall.Known[string](b.repository.Results(), hashing, b.ID)
	return known
}
