package endpoint

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"net/http"
	"unicode/utf8"
)

// maxPartHeader is the maximum size of the header of a part of a form, in bytes.
const maxPartHeader = 16 << 10

// uploadLimits are the maximum sizes of one file in a form, and of all files together, in bytes.
type uploadLimits struct{ each, all int64 }

// Uploads sets the maximum sizes of one file in a form, and of all files together, in bytes. Every endpoint that takes files needs it. The
// other fields of the form are limited to 64 KiB, unless MaxBody is called after Uploads.
func (e *Endpoint) Uploads(each, all int64) *Endpoint {
	e.uploads, e.maxBody = &uploadLimits{each, all}, freeBody
	return e
}

// streams reports whether the body of a request can be long, and so is read after the caller is known.
func (e *Endpoint) streams() bool { return e.uploads != nil || e.request.raw != nil }

// check panics if an endpoint takes files without a limit.
func (e *Endpoint) check() {
	for name, is := range e.request.files {
		if is && e.uploads == nil {
			panic("endpoint: " + e.String() + " takes the file " + name + " and needs Uploads")
		}
	}
}

// most returns the maximum size of a body as it is sent, in bytes.
func (e *Endpoint) most() int64 {
	if e.uploads != nil {
		return e.maxBody + e.uploads.all
	}
	return e.maxBody
}

// held returns the maximum number of bytes of a body that are held in memory.
func (e *Endpoint) held(r *http.Request) int64 {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case e.request.raw != nil:
		return 0
	case r.ContentLength < 0, e.uploads != nil && kind == "multipart/form-data":
		return e.maxBody
	default:
		return r.ContentLength
	}
}

// onDisk returns the maximum number of bytes of a body that are stored on disk.
func (e *Endpoint) onDisk(r *http.Request) int64 {
	switch {
	case e.request.raw != nil && r.Header.Get("Content-Encoding") != "":
		return cmp.Or(e.unzipped, e.maxBody)
	case r.ContentLength < 0:
		return e.most()
	default:
		return r.ContentLength
	}
}

// read collects the parameters of a request. It stores uploads in a, once there is room for them.
func (h *Handler) read(ctx context.Context, w http.ResponseWriter, r *http.Request, e *Endpoint, a *answer) (parameters, error) {
	if !e.streams() {
		return readParameters(r, e.maxBody, nil)
	}
	a.kept = newSpool(h.options.Spool)
	if most := e.onDisk(r); h.options.Disk != nil && most > freeBody {
		weigh, err := h.options.Disk.Take(ctx, most)
		if err != nil {
			return nil, err
		}
		a.kept.weigh = weigh
	}
	if hasBody(r) {
		h.takeTime(w, r)
	}
	defer a.kept.settle()
	if e.request.raw != nil {
		return e.readRaw(r, a.kept)
	}
	return readParameters(r, e.maxBody, &uploads{endpoint: e, kept: a.kept})
}

// uploads reads the forms of an endpoint that takes files.
type uploads struct {
	endpoint *Endpoint
	kept     *spool
	// held is the number of bytes of fields in memory, and filed the number of bytes of stored files.
	held, filed int64
}

// add adds the fields of a form, and the files that the endpoint takes, to the parameters. It ignores other files.
func (u *uploads) add(all parameters, r *http.Request, boundary string) error {
	body := &bounded{Reader: bufio.NewReaderSize(http.MaxBytesReader(nil, r.Body, u.endpoint.most()), filePiece)}
	parts := formReader(body, boundary)
	var form []pair
	files := map[string]*File{}
	for {
		body.left = maxPartHeader
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return explainForm(err)
		}
		body.left = math.MaxInt64
		field, err := u.take(part, files)
		if err != nil {
			return explainForm(err)
		}
		if field != nil && len(form) <= maxValues {
			form = append(form, *field)
		}
	}
	if err := addPairs(all, form); err != nil {
		return err
	}
	for name, f := range files {
		if _, taken := all[name]; taken {
			return Parameters(name + " is invalid")
		}
		all[name] = f
	}
	return nil
}

// take reads a part of a form: it returns a field, or adds a file to files.
func (u *uploads) take(part *multipart.Part, files map[string]*File) (*pair, error) {
	name := part.FormName()
	switch {
	case part.FileName() == "":
		value, err := io.ReadAll(io.LimitReader(part, u.endpoint.maxBody-u.held+1))
		if u.held += int64(len(value)) + int64(len(name)); u.held > u.endpoint.maxBody {
			return nil, tooLarge()
		}
		if err != nil || name == "" {
			return nil, err
		}
		return &pair{name, string(value)}, nil
	case !u.endpoint.request.files[name]:
		_, err := io.Copy(io.Discard, part)
		return nil, err
	case files[name] != nil, !utf8.ValidString(part.FileName()):
		return nil, Parameters(name + " is invalid")
	}
	limits := u.endpoint.uploads
	content, size, err := u.kept.keep(part, min(limits.each, limits.all-u.filed))
	if err != nil {
		return nil, err
	}
	u.filed += size
	files[name] = &File{Name: part.FileName(), Type: part.Header.Get("Content-Type"), Size: size, content: content}
	return nil, nil
}

// explainForm returns the answer to an error of reading a form.
func explainForm(err error) error {
	var known *Error
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, ErrSpool):
		return err
	case errors.As(err, &large), errors.Is(err, errTooMuch):
		return tooLarge()
	default:
		return unreadable(err, "the form is malformed")
	}
}

// bounded is a reader that allows left bytes to be read until left is set again.
type bounded struct {
	io.Reader
	left int64
}

var errTooMuch = errors.New("the header of a part is too long")

func (b *bounded) Read(into []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooMuch
	}
	n, err := b.Reader.Read(into[:min(int64(len(into)), b.left)])
	b.left -= int64(n)
	return n, err
}
