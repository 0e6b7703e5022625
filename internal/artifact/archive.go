package artifact

import (
	"archive/zip"
	"compress/flate"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
)

const (
	// maxDirectory is the maximum size of the directory of an archive in bytes, which is held in memory: about 200,000 files.
	maxDirectory = 16 << 20
	// maxFile is the maximum size of a file that is read out of an archive, in bytes.
	maxFile = 4 << 30
	// block is the number of bytes that are read at once to find a file.
	block = 256 << 10
)

// ErrNoFile says that an archive has no such file.
var ErrNoFile = errors.New("there is no such file in the archive")

// Unreadable says why a file cannot be read out of an archive.
type Unreadable string

// Error implements error.
func (u Unreadable) Error() string { return string(u) }

// file is a place in an archive.
type file struct {
	size, offset, packed int64
	deflated             bool
	crc                  uint32
}

// find finds a file in an archive. The error is ErrNoFile, or an Unreadable. If several files have the name, it finds the first one.
func find(archive io.ReaderAt, size int64, name string) (file, error) {
	bounded := &boundedReader{archive, maxDirectory + 2*block}
	directory, err := zip.NewReader(bounded, size)
	switch {
	case bounded.left < 0:
		return file{}, Unreadable(fmt.Sprintf("the directory of the archive is larger than %d bytes: download the whole archive", maxDirectory))
	case errors.Is(err, zip.ErrFormat), errors.Is(err, zip.ErrAlgorithm), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return file{}, Unreadable("the archive is not a valid zip file")
	case err != nil:
		return file{}, fmt.Errorf("reading the directory of an archive: %w", err)
	}
	for _, f := range directory.File {
		if f.Name == name {
			return place(f, size)
		}
	}
	return file{}, ErrNoFile
}

// place returns the place of a file in an archive of a size, if it can be read.
func place(f *zip.File, size int64) (file, error) {
	const encrypted = 1
	switch {
	case f.FileInfo().IsDir():
		return file{}, ErrNoFile
	case f.Flags&encrypted != 0:
		return file{}, Unreadable("the file is encrypted: download the whole archive")
	case f.Mode().Type()&fs.ModeSymlink != 0:
		return file{}, Unreadable("the file is a symbolic link: name the file that it refers to")
	case f.Mode().Type() != 0:
		return file{}, Unreadable("this is not a regular file")
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return file{}, Unreadable(fmt.Sprintf("the file has the compression method %d, which is not supported: download the whole archive", f.Method))
	case f.UncompressedSize64 > maxFile:
		return file{}, Unreadable(fmt.Sprintf("the file is larger than %d bytes: download the whole archive", int64(maxFile)))
	}
	offset, err := f.DataOffset()
	// The library does not check where a file ends.
	if err != nil || offset > size || f.CompressedSize64 > uint64(size-offset) { //nolint:gosec // not negative
		return file{}, Unreadable("the archive is damaged")
	}
	return file{int64(f.UncompressedSize64), offset, int64(f.CompressedSize64), f.Method == zip.Deflate, f.CRC32}, nil //nolint:gosec // checked above, or read from the archive
}

// unpack writes the content of a file, which it reads from its place in the archive. The content must have the size and
// checksum that the directory says.
func (f file) unpack(to io.Writer, from io.Reader) error {
	if f.deflated {
		inflated := flate.NewReader(from)
		defer func() { _ = inflated.Close() }() // it closes nothing
		from = inflated
	}
	sum := crc32.NewIEEE()
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(from, f.size))
	switch {
	case err != nil:
		return fmt.Errorf("unpacking a file: %w", err)
	case n != f.size || sum.Sum32() != f.crc:
		return fmt.Errorf("unpacking a file: %w", zip.ErrChecksum)
	}
	return nil
}

// boundedReader is a reader that fails once more than left bytes are read.
type boundedReader struct {
	io.ReaderAt
	left int64
}

// ReadAt implements io.ReaderAt.
func (b *boundedReader) ReadAt(p []byte, at int64) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, zip.ErrFormat
	}
	return b.ReaderAt.ReadAt(p, at)
}

// blocks reads a blob in blocks. It keeps the last one, because a directory is read piece by piece. It is not safe for concurrent use.
type blocks struct {
	read  func(offset, length int64) (io.ReadCloser, error)
	size  int64
	first int64
	last  []byte
}

// ReadAt implements io.ReaderAt.
func (b *blocks) ReadAt(p []byte, at int64) (n int, err error) {
	for n < len(p) {
		if at >= b.size {
			return n, io.EOF
		}
		if at < b.first || at >= b.first+int64(len(b.last)) {
			if err := b.load(at - at%block); err != nil {
				return n, err
			}
		}
		copied := copy(p[n:], b.last[at-b.first:])
		n, at = n+copied, at+int64(copied)
	}
	return n, nil
}

// load reads the block that begins at a position.
func (b *blocks) load(at int64) (err error) {
	r, err := b.read(at, min(block, b.size-at))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	b.first, b.last = at, nil
	content := make([]byte, min(block, b.size-at))
	if _, err := io.ReadFull(r, content); err != nil {
		return err
	}
	b.last = content
	return nil
}
