package endpoint

import (
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// rawBody is a body that is taken unparsed.
type rawBody struct {
	index []int
	types []string
	// ranged says that the body is a piece of a larger whole, and that Content-Range gives its position.
	ranged bool
}

// rawKey is the key of a raw body among the parameters. No parameter has an empty name.
const rawKey = ""

// compileRaw adds the raw body to the plan.
func (p *plan) compileRaw(sf reflect.StructField) {
	types, ok := sf.Tag.Lookup("body")
	if !ok {
		return
	}
	if sf.Type != fileType || types == "" {
		panic("endpoint: " + sf.Name + " must be a File, and its tag body a list of media types")
	}
	_, ranged := sf.Tag.Lookup("range")
	p.raw = &rawBody{index: sf.Index, types: strings.Split(types, ","), ranged: ranged}
}

// fill sets the body in a request. A nil rawBody does nothing.
func (b *rawBody) fill(request reflect.Value, sent parameters) {
	if b == nil {
		return
	}
	if f, ok := sent[rawKey].(*File); ok {
		request.FieldByIndex(b.index).Set(reflect.ValueOf(*f))
	}
}

// requestBody returns the Request Body Object.
func (b *rawBody) requestBody() object {
	content := object{}
	for _, kind := range b.types {
		content[kind] = object{}
	}
	return object{"required": true, "content": content}
}

// headers returns the Parameter Objects of the headers that describe the body.
func (b *rawBody) headers() []object {
	all := []object{{
		"name": "Content-Encoding", "in": "header", "required": false, "schema": object{"type": "string", "enum": []string{"gzip", "identity"}},
		"description": "How the body is packed.",
	}}
	if b.ranged {
		all = append(all, object{
			"name": contentRange, "in": "header", "required": true, "schema": object{"type": "string", "pattern": `^(bytes )?\d+-\d+(/.*)?$`},
			"description": "Where the body belongs in the whole: its first and last byte, as in 0-99.",
		})
	}
	return all
}

// takes reports whether a body may be of a media type.
func (b *rawBody) takes(kind string) bool {
	return slices.Contains(b.types, kind) || slices.Contains(b.types, anyType)
}

// Unzipped sets the maximum size of a raw body after decompression, in bytes. The default is the limit of MaxBody, which counts the bytes
// as they are sent.
func (e *Endpoint) Unzipped(bytes int64) *Endpoint {
	e.unzipped = bytes
	return e
}

// readRaw stores the body of a request. The parameters come from the query.
func (e *Endpoint) readRaw(r *http.Request, kept *spool) (parameters, error) {
	all, err := readQuery(r)
	if err != nil {
		return nil, err
	}
	f := &File{}
	f.Type, _, _ = mime.ParseMediaType(r.Header.Get("Content-Type"))
	if !e.request.raw.takes(f.Type) {
		return nil, unsupported(r.Header.Get("Content-Type"), e.request.raw.types)
	}
	if e.request.raw.ranged {
		if f.Offset, err = offset(r.Header); err != nil {
			return nil, err
		}
	}
	all[rawKey] = f
	if !hasBody(r) {
		return all, nil
	}
	r.Body = http.MaxBytesReader(nil, r.Body, e.maxBody)
	what, from, err := unzip(r)
	if err == nil {
		f.content, f.Size, err = kept.keep(from, cmp.Or(e.unzipped, e.maxBody))
	}
	var known *Error
	var large *http.MaxBytesError
	switch {
	case err == nil:
		return all, nil
	case errors.As(err, &known):
		return nil, known
	case errors.Is(err, ErrSpool):
		return nil, err
	case errors.As(err, &large):
		return nil, tooLarge()
	default:
		return nil, unreadable(err, what)
	}
}

// unzip returns the decoded body of a request, and the text of the answer if the body cannot be read.
func unzip(r *http.Request) (what string, from io.Reader, err error) {
	switch encoding := strings.ToLower(r.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
		return "the body could not be read", r.Body, nil
	case "gzip", "x-gzip":
		from, err = gzip.NewReader(r.Body)
		return "the body is not valid gzip", from, err
	default:
		return "", nil, &Error{
			Status: http.StatusUnsupportedMediaType,
			body:   problem{Error: fmt.Sprintf("The provided content-encoding '%.100s' is not supported.", encoding)},
		}
	}
}

const contentRange = "Content-Range"

// offset returns the position at which a piece begins, from Content-Range: 0-99 or bytes 0-99/200. The length of the piece itself
// determines its end, because clients disagree on whether the last byte is included.
func offset(h http.Header) (int64, error) {
	said := h.Get(contentRange)
	if said == "" {
		return 0, Parameters("400 Missing header " + contentRange)
	}
	span, _, _ := strings.Cut(strings.TrimPrefix(said, "bytes "), "/")
	first, last, ok := strings.Cut(span, "-")
	begin, errFirst := strconv.ParseUint(first, 10, 63)
	_, errLast := strconv.ParseUint(last, 10, 63)
	if !ok || errFirst != nil || errLast != nil {
		return 0, Parameters(contentRange + " is invalid")
	}
	return int64(begin), nil
}

// Stored returns the header that tells a client how many bytes of a piecewise upload the server has.
func Stored(bytes int64) http.Header {
	return http.Header{"Range": {"0-" + strconv.FormatInt(bytes, 10)}}
}

// RangeNotSatisfiable returns 416 for a piece that does not begin at the end of the stored bytes.
func RangeNotSatisfiable(bytes int64) *Error {
	return &Error{
		Status: http.StatusRequestedRangeNotSatisfiable, body: problem{Error: "416 Range Not Satisfiable"}, Header: Stored(bytes),
	}
}
