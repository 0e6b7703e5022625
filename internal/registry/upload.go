package registry

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"time"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/registry/api/errcode"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/forgeplane/forgeplane/internal/registry/record"
)

// meteredAtOnce is by how much an upload grows until its size is recorded again. Simultaneous uploads can exceed the limit by as much each.
const meteredAtOnce = 64 << 20

// upload is an upload of a blob.
type upload struct {
	distribution.BlobWriter
	of *repository
	// open claims the upload, hold makes sure that the claim lasts, and release ends it. known returns the recorded size of the upload, record
	// records another one, and allow returns how large the upload can become if its recorded size is the given one. full refuses the upload, and
	// removes it. The interface gives the methods that need them no context.
	open, release func() error
	hold          func(least time.Duration) error
	known         func() (int64, error)
	record        func(size int64) error
	allow         func(recorded int64) (int64, error)
	full          func() error
	// begun says that something was written. Then size is how much has arrived, recorded is how much of that is recorded, and allowed is how much
	// there can be.
	begun                   bool
	size, recorded, allowed int64
	// claim lets the request write; nil before it does and after its end. foreign is why it cannot write: another request may have the upload.
	claim   *record.Claim
	foreign error
	// ended says that the upload exists no longer.
	ended bool
}

// writer returns the writer of the library as an upload.
func (b *blobs) writer(ctx context.Context, w distribution.BlobWriter, err error) (distribution.BlobWriter, error) {
	if err != nil {
		return nil, b.of.explained(ctx, err)
	}
	u := &upload{BlobWriter: w, of: b.of}
	name := record.Upload(w.ID())
	u.open = func() error {
		u.foreign = b.open(ctx, u)
		return u.foreign
	}
	u.hold = func(least time.Duration) error {
		if err := u.claim.Hold(context.WithoutCancel(ctx), least); err != nil {
			u.foreign = unavailable(ctx, err)
		}
		return u.foreign
	}
	u.release = func() error { return u.claim.Release(context.WithoutCancel(ctx)) }
	u.known = func() (int64, error) {
		size, err := b.of.registry.Records.Recorded(ctx, b.of.ID, name)
		if err != nil && !errors.Is(err, record.ErrNotFound) {
			return 0, unavailable(ctx, err)
		}
		return size, nil
	}
	u.record = func(size int64) error { return b.of.keep(ctx, name, size, name) }
	u.allow = func(recorded int64) (int64, error) {
		room, err := b.of.registry.room(ctx, b.of.ProjectUID)
		if err != nil {
			return 0, unavailable(ctx, err)
		}
		if room > math.MaxInt64-recorded {
			return math.MaxInt64, nil
		}
		return recorded + room, nil
	}
	u.full = func() error {
		return errors.Join(refused(ctx, &fullError{b.of.registry.MaxSize}), u.Cancel(context.WithoutCancel(ctx)))
	}
	return u, nil
}

// open claims an upload, and opens it once more, because another request can have continued or even committed it since it was opened. A write to a
// committed upload would change the blob that all projects share.
func (b *blobs) open(ctx context.Context, u *upload) error {
	// A claim whose answer is lost with the client would outlive the request.
	claim, err := b.of.registry.Records.Claim(context.WithoutCancel(ctx), u.ID())
	if err != nil {
		return unavailable(ctx, err)
	}
	u.claim = claim
	w, err := b.BlobStore.Resume(ctx, u.ID())
	if errors.Is(err, distribution.ErrBlobUploadUnknown) {
		return Refuse(ctx, errcode.ErrorCodeBlobUploadUnknown.WithMessage("another request has ended this upload"))
	}
	if err != nil {
		return b.of.explained(ctx, err)
	}
	outdated := u.BlobWriter
	u.BlobWriter = w
	closed := outdated.Close() // nothing was written to it
	if outdated.Size() != w.Size() {
		return unavailable(ctx, record.ErrBusy)
	}
	return closed
}

// begin makes sure that what is recorded of the upload is what the storage has: an earlier process may have ended before it recorded anything.
func (u *upload) begin() error {
	if u.foreign != nil {
		return u.foreign
	}
	if u.begun {
		return u.hold(record.Writing)
	}
	if u.claim == nil {
		if err := u.open(); err != nil {
			return err
		}
	}
	u.size = u.Size()
	if u.size > 0 && u.of.registry.MaxSize > 0 {
		known, err := u.known()
		if err == nil && known != u.size {
			err = u.record(u.size)
		}
		if err != nil {
			return err
		}
	}
	u.recorded = u.size
	var err error
	u.allowed, err = u.allow(u.recorded)
	u.begun = err == nil
	return err
}

// grow counts bytes that have arrived. It refuses them if there is no room.
func (u *upload) grow(by int) error {
	if err := u.begin(); err != nil {
		return err
	}
	u.size += int64(by)
	if u.size-u.recorded >= meteredAtOnce {
		if err := u.record(u.size); err != nil {
			return err
		}
		u.recorded = u.size
		var err error
		if u.allowed, err = u.allow(u.recorded); err != nil {
			return err
		}
	}
	if u.size > u.allowed {
		return u.full()
	}
	return nil
}

// Write implements io.Writer.
func (u *upload) Write(p []byte) (int, error) {
	if err := u.grow(len(p)); err != nil {
		return 0, err
	}
	return u.BlobWriter.Write(p)
}

// ReadFrom implements io.ReaderFrom. A client that sends nothing does not claim the upload.
func (u *upload) ReadFrom(r io.Reader) (int64, error) {
	body := bufio.NewReader(r)
	if _, err := body.Peek(1); err != nil {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return 0, err
	}
	if err := u.begin(); err != nil {
		return 0, err
	}
	return u.BlobWriter.ReadFrom(&metered{body, u})
}

// metered is the reader of an upload.
type metered struct {
	io.Reader
	by *upload
}

// Read implements io.Reader. It returns nothing that is refused.
func (m *metered) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if n == 0 {
		return n, err
	}
	if err := m.by.grow(n); err != nil {
		return 0, err
	}
	return n, err
}

// Close implements io.Closer. The client can resume the upload, which takes up space until then.
func (u *upload) Close() error {
	if u.claim != nil {
		defer func() {
			_ = u.release() // the claim ends by itself soon
			u.claim, u.begun = nil, false
		}()
	}
	if u.ended {
		return nil
	}
	if u.begun {
		// The library writes what is left. If that is not allowed, the writer stays open until the runtime finds it.
		if err := u.begin(); err != nil {
			return err
		}
	}
	err := u.BlobWriter.Close()
	if size := u.Size(); u.begun && size != u.recorded {
		if recording := u.record(size); recording != nil {
			return errors.Join(err, recording)
		}
		u.recorded = size
	}
	return err
}

// Cancel implements distribution.BlobWriter. The library leaves an upload that could not be committed.
func (u *upload) Cancel(ctx context.Context) error {
	if u.ended || u.foreign != nil {
		return nil //nolint:nilerr // what another request has is not cancelled
	}
	err := u.BlobWriter.Cancel(ctx)
	if err != nil {
		if err = u.of.registry.storage.Delete(ctx, u.of.images().uploads()+"/"+u.ID()); absent(err) {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	u.ended = true
	return u.of.registry.Records.Drop(context.WithoutCancel(ctx), u.of.ID, record.Upload(u.ID()))
}

// Commit implements distribution.BlobWriter. The storage keeps a blob that exists already in place of the upload, so it must stay.
func (u *upload) Commit(ctx context.Context, provisional v1.Descriptor) (v1.Descriptor, error) {
	if !valid(provisional.Digest) {
		return v1.Descriptor{}, distribution.ErrBlobInvalidDigest{Digest: provisional.Digest, Reason: errors.New("it must be one of SHA-256 or SHA-512")}
	}
	if err := u.begin(); err != nil {
		return v1.Descriptor{}, err
	}
	if u.size > u.allowed {
		return v1.Descriptor{}, u.full()
	}
	if err := u.hold(record.Committing); err != nil {
		return v1.Descriptor{}, err
	}
	if err := u.of.registry.need(ctx, provisional.Digest); err != nil {
		return v1.Descriptor{}, unavailable(ctx, err)
	}
	var d v1.Descriptor
	err := u.claim.Keep(ctx, record.Committing, func(ctx context.Context) (err error) {
		d, err = u.BlobWriter.Commit(ctx, provisional)
		return err
	})
	if errors.Is(err, record.ErrBusy) {
		u.foreign = unavailable(ctx, err)
		return d, u.foreign
	}
	if err == nil && d.Digest != provisional.Digest {
		err = u.of.images().committed(ctx, d.Digest)
	}
	if err != nil {
		return d, u.of.explained(ctx, err)
	}
	u.ended = true
	return d, u.of.keep(ctx, d.Digest.String(), d.Size, record.Upload(u.ID()))
}
