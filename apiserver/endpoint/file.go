package endpoint

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"

	"github.com/forgeplane/forgeplane/apiserver/endpoint/pace"
)

// File is an upload: a file in a form, which has a tag param, or a raw body, which has a tag body. It is not held in memory, and exists
// until the request is answered.
type File struct {
	// Name is the file name that the client sent, without directories; empty for a body.
	Name string
	// Type is the media type that the client sent; it may be empty.
	Type string
	// Size is the length in bytes, unzipped.
	Size int64
	// Offset is the position of the piece within the whole, in bytes, for a body with a tag range.
	Offset int64

	content io.ReaderAt
}

// Open returns a reader of the content from its beginning. It can be called more than once.
func (f *File) Open() *Upload {
	c := &Upload{SectionReader: io.NewSectionReader(f.content, 0, f.Size)}
	if s, ok := f.content.(section); ok {
		c.file = s.file
	}
	return c
}

// Upload is a reader of the content of a File.
type Upload struct {
	*io.SectionReader
	// file is nil if the content is in memory.
	file *os.File
}

// Link gives the content the name of a new file, which needs no copy. It fails if the content is in memory, if the name is on another file system, or
// if the request has several files.
func (c *Upload) Link(name string) error {
	if c.file == nil {
		return errors.ErrUnsupported
	}
	if i, err := c.file.Stat(); err != nil || i.Size() != c.Size() {
		return errors.Join(errors.ErrUnsupported, err)
	}
	return link(c.file, name)
}

var fileType = reflect.TypeFor[File]()

func assignFile(into reflect.Value, value any) bool {
	f, ok := value.(*File)
	if ok {
		into.Set(reflect.ValueOf(*f))
	}
	return ok
}

// spool keeps the uploads of one request: in memory up to the size that is held without being counted, and beyond that in an unnamed file,
// which disappears with the process.
type spool struct {
	dir  string
	free int64
	file *os.File
	size int64
	// weigh is told how many bytes are on disk.
	weigh func(bytes int64)
}

func newSpool(dir string) *spool { return &spool{dir: dir, free: freeBody, weigh: uncounted} }

// settle reports the final size on disk, once everything is written.
func (s *spool) settle() { s.weigh(s.size) }

// ErrSpool says that what a client uploads could not be written to Options.Spool. It wraps the error of the disk.
var ErrSpool = errors.New("keeping what was uploaded")

// source records the error of a reader.
type source struct {
	io.Reader
	failed error
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		s.failed = err
	}
	return n, err
}

// keep reads everything from a reader. It fails with 413 if there are more than most bytes, with the reader's error, or with ErrSpool.
func (s *spool) keep(from io.Reader, most int64) (content io.ReaderAt, size int64, err error) {
	var head bytes.Buffer
	reader := &source{Reader: io.LimitReader(from, most+1)}
	size, err = io.CopyN(&head, reader, s.free+1)
	if errors.Is(err, io.EOF) {
		s.free -= size
		content = bytes.NewReader(head.Bytes())
	} else if err == nil {
		content, size, err = s.write(io.MultiReader(&head, reader))
		if err == nil {
			err = io.EOF
		}
	}
	switch {
	case reader.failed != nil:
		return nil, 0, reader.failed
	case !errors.Is(err, io.EOF):
		return nil, 0, fmt.Errorf("%w: %w", ErrSpool, err)
	case size > most:
		return nil, 0, tooLarge()
	}
	return content, size, nil
}

// filePiece is the number of bytes of a file in a form that are read, or written to disk, at once.
const filePiece = 128 << 10

// write appends to the file.
func (s *spool) write(from io.Reader) (content io.ReaderAt, size int64, err error) {
	if s.file == nil {
		if s.file, err = unnamed(s.dir); err != nil {
			return nil, 0, err
		}
	}
	pieces := bufio.NewWriterSize(struct{ io.Writer }{s.file}, filePiece) // without ReadFrom, because a part of a form is read 4 KiB at a time
	size, err = io.Copy(pieces, from)
	err = errors.Join(err, pieces.Flush())
	content = section{io.NewSectionReader(s.file, s.size, size), s.file}
	s.size += size
	return content, size, err
}

// section is a part of a file.
type section struct {
	*io.SectionReader
	file *os.File
}

// removed creates a file, and removes its name.
func removed(dir string) (*os.File, error) {
	file, err := os.CreateTemp(dir, ".new-")
	if err != nil {
		return nil, err
	}
	return file, os.Remove(file.Name())
}

// close frees the spool's storage. A nil spool has none.
func (s *spool) close() {
	if s == nil {
		return
	}
	if s.file != nil {
		_ = s.file.Close() // nothing reads it any more
	}
	s.weigh(0)
}

// pacedBody is a body with a deadline for each piece, and a total deadline that grows with its length.
type pacedBody struct {
	io.ReadCloser
	control *http.ResponseController
	pace    pace.Pace
}

// Read implements io.Reader.
func (p *pacedBody) Read(b []byte) (int, error) {
	return p.pace.Pass(p.control.SetReadDeadline, func() (int, error) { return p.ReadCloser.Read(b) })
}

// takeTime extends the client's deadline for a long body.
func (h *Handler) takeTime(w http.ResponseWriter, r *http.Request) {
	r.Body = &pacedBody{
		ReadCloser: r.Body, control: http.NewResponseController(w),
		pace: pace.Pace{Patience: h.options.ReadTimeout, Pause: h.options.ReadTimeout},
	}
}
