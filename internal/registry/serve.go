package registry

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
)

const (
	// pieceSize is the size of the pieces in which files of a local storage are sent, in bytes.
	pieceSize = 256 << 10
	// fresh is how long clients can keep a layer, which never changes.
	fresh = 365 * 24 * time.Hour
)

// ServeBlob implements distribution.BlobServer. It sends files of a local storage itself, with the headers of the library: the library reads
// them through a buffer of 4 MiB for each client, and sends pieces of 32 KiB.
func (b *blobs) ServeBlob(ctx context.Context, w http.ResponseWriter, r *http.Request, d digest.Digest) error {
	storage := b.of.registry.storage
	if storage.Name() != local {
		return b.BlobStore.ServeBlob(ctx, w, r, d)
	}
	stored, err := b.BlobStore.Stat(ctx, d)
	if err != nil {
		return err
	}
	file, err := storage.Reader(ctx, data(stored.Digest), 0)
	if err != nil {
		return unavailable(ctx, err)
	}
	defer file.Close()
	header := w.Header()
	header.Set("Content-Type", stored.MediaType)
	header.Set("Docker-Content-Digest", stored.Digest.String())
	header.Set("ETag", strconv.Quote(stored.Digest.String()))
	header.Set("Cache-Control", "max-age="+strconv.Itoa(int(fresh.Seconds())))
	http.ServeContent(inPieces{w}, r, "", time.Time{}, file.(io.ReadSeeker))
	return nil
}

// inPieces is a writer that copies larger pieces than io.Copy.
type inPieces struct{ http.ResponseWriter }

// pieces are the buffers of clients that are served.
var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// ReadFrom implements io.ReaderFrom.
func (w inPieces) ReadFrom(r io.Reader) (int64, error) {
	piece := pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(piece)
	return io.CopyBuffer(struct{ io.Writer }{w.ResponseWriter}, struct{ io.Reader }{r}, piece[:])
}
