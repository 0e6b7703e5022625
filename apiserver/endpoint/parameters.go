package endpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"strings"
	"unicode/utf8"
)

// Limits of a request.
const (
	// maxBody is the maximum size of a form or JSON body in bytes, and maxReadBody the maximum for a request that only reads, unless an
	// endpoint sets another limit.
	maxBody, maxReadBody = 4 << 20, 8 << 10
	// maxDepth is the maximum nesting depth of parameters.
	maxDepth = 16
	// maxValues is the maximum number of values in a query or form.
	maxValues = 5000
	// maxElements is the maximum number of values in JSON, where lists can legitimately be long, such as the files of a commit.
	maxElements = 100_000
)

// parameters are the parameters of a request in any form. Its values are nil, bool, string, json.Number, *File, []any and map[string]any.
type parameters = map[string]any

// readParameters collects the parameters of a request whose body has at most limit bytes. Parameters of the body take precedence over those of
// the query. Files in a form go to up, or are ignored if up is nil.
func readParameters(r *http.Request, limit int64, up *uploads) (parameters, error) {
	all, err := readQuery(r)
	if err != nil || !hasBody(r) {
		return all, err
	}
	body := parameters{}
	if err := addBody(body, r, limit, up); err != nil {
		return nil, err
	}
	maps.Copy(all, body)
	return all, nil
}

// readQuery collects the parameters of a query.
func readQuery(r *http.Request) (parameters, error) {
	all := parameters{}
	query, err := pairs(rawQuery(r))
	if err != nil {
		return nil, Parameters("the query string is malformed")
	}
	if err := addPairs(all, query); err != nil {
		return nil, err
	}
	switch all[sudo].(type) {
	case nil, string:
	default:
		return nil, Parameters("sudo is invalid")
	}
	return all, nil
}

func addBody(all parameters, r *http.Request, limit int64, up *uploads) error {
	if r.Header.Get("Content-Type") == "" {
		return addUntyped(all, r, limit)
	}
	kind, details, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err != nil:
		return unsupported(r.Header.Get("Content-Type"), bodyTypes)
	case kind == "application/json", strings.HasSuffix(kind, "+json"):
		return addJSON(all, r, limit)
	case kind == "application/x-www-form-urlencoded":
		return addForm(all, r, limit)
	case kind == "multipart/form-data":
		return addMultipart(all, r, limit, details["boundary"], up)
	default:
		return unsupported(kind, bodyTypes)
	}
}

// bodyTypes are the media types of bodies with parameters.
var bodyTypes = []string{"application/json", "application/x-www-form-urlencoded", "multipart/form-data"}

// unsupported returns the answer for a body of another media type than those that are supported.
func unsupported(kind string, supported []string) *Error {
	answer := &Error{Status: http.StatusUnsupportedMediaType, body: problem{Error: fmt.Sprintf("The provided content-type '%.100s' is not supported.", kind)}}
	return answer.Describe("The content-type must be %s.", oneOf(supported))
}

// addUntyped reads a body without a media type. It is treated as JSON if there is one: kubectl create --raw sends no media type.
func addUntyped(all parameters, r *http.Request, limit int64) error {
	first := make([]byte, 1)
	switch n, err := io.ReadFull(r.Body, first); {
	case n > 0:
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(first), r.Body), r.Body}
		return addJSON(all, r, limit)
	case errors.Is(err, io.EOF):
		return nil
	default:
		return unreadable(err, "the body could not be read")
	}
}

func readBody(r *http.Request, limit int64) ([]byte, error) {
	var body bytes.Buffer
	if r.ContentLength > 0 && r.ContentLength <= limit {
		body.Grow(int(r.ContentLength) + bytes.MinRead) // so that the buffer never has to grow
	}
	if _, err := body.ReadFrom(io.LimitReader(r.Body, limit+1)); err != nil {
		return nil, unreadable(err, "the body could not be read")
	}
	if int64(body.Len()) > limit {
		return nil, tooLarge()
	}
	return body.Bytes(), nil
}

func tooLarge() *Error {
	return Message(http.StatusRequestEntityTooLarge, "413 Request Entity Too Large")
}

// unreadable returns 408 for a body that arrived too slowly, or otherwise 400 with the message what.
func unreadable(err error, what string) *Error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return Message(http.StatusRequestTimeout, "408 Request Timeout")
	}
	return Parameters(what)
}

func addJSON(all parameters, r *http.Request, limit int64) error {
	body, err := readBody(r, limit)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	depth, elements := extent(body)
	if !utf8.Valid(body) {
		return notJSON("It is not valid UTF-8.")
	}
	if depth > maxDepth {
		return notJSON(fmt.Sprintf("It is nested more than %d levels deep.", maxDepth))
	}
	if elements > maxElements {
		return Parameters("there are too many parameters")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var sent any
	if err := decoder.Decode(&sent); err != nil {
		return notJSON(mistake(body, err))
	}
	end := decoder.InputOffset()
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return notJSON("There is more after the value that ends at " + position(body, end) + ".")
	}
	if sent == nil {
		return nil // a client that sent nothing
	}
	object, ok := sent.(map[string]any)
	if !ok {
		return Parameters("the body must be a JSON object")
	}
	for name, value := range object {
		all[name] = value
	}
	return nil
}

func notJSON(description string) *Error {
	return Parameters("the body is not valid JSON").Describe("%s", description)
}

// mistake says where JSON is not valid, and why.
func mistake(body []byte, err error) string {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Sprintf("At %s: %s.", position(body, syntax.Offset), syntax.Error())
	}
	return "It ends too early."
}

// position returns the line and the column of the byte that ends at an offset, both from 1.
func position(body []byte, offset int64) string {
	before := body[:max(offset-1, 0)]
	line := bytes.Count(before, []byte("\n")) + 1
	return fmt.Sprintf("line %d, column %d", line, len(before)-bytes.LastIndexByte(before, '\n'))
}

// extent returns the nesting depth of JSON and the approximate number of its elements, so that both can be checked before anything is built
// from it.
func extent(body []byte) (deepest, elements int) {
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest, elements = max(deepest, depth), elements+1
		case c == '}' || c == ']':
			depth--
		case c == ',':
			elements++
		}
	}
	return deepest, elements
}

func addForm(all parameters, r *http.Request, limit int64) error {
	body, err := readBody(r, limit)
	if err != nil {
		return err
	}
	form, err := pairs(string(body))
	if err != nil {
		return Parameters("the form is malformed")
	}
	return addPairs(all, form)
}

// addMultipart adds the fields of a form, in their order. Files go to up.
func addMultipart(all parameters, r *http.Request, limit int64, boundary string, up *uploads) error {
	if boundary == "" {
		return Parameters("the form is malformed")
	}
	if up != nil {
		return up.add(all, r, boundary)
	}
	parts := formReader(http.MaxBytesReader(nil, r.Body, limit), boundary)
	var form []pair
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		var value []byte
		if err == nil && part.FileName() == "" {
			value, err = io.ReadAll(part)
		}
		var large *http.MaxBytesError
		if errors.As(err, &large) || errors.Is(err, multipart.ErrMessageTooLarge) {
			return tooLarge()
		} else if err != nil {
			return unreadable(err, "the form is malformed")
		}
		if part.FileName() == "" && part.FormName() != "" && len(form) <= maxValues {
			form = append(form, pair{part.FormName(), string(value)})
		}
	}
	return addPairs(all, form)
}

// formReader returns a reader of the parts of a form. It ends with io.EOF after the last part, and with another error if the form is cut
// off; mime/multipart does not distinguish the two.
func formReader(body io.Reader, boundary string) *multipart.Reader {
	return multipart.NewReader(&wholeForm{body: body}, boundary)
}

// wholeForm is a body that ends with an error, because a complete form is never read to the end of the body. An empty body is an empty
// form.
type wholeForm struct {
	body  io.Reader
	begun bool
	rest  string
}

// Read implements io.Reader.
func (f *wholeForm) Read(into []byte) (int, error) {
	if f.rest == "" {
		n, err := f.body.Read(into)
		if f.begun = f.begun || n > 0; !f.begun || !errors.Is(err, io.EOF) {
			return n, err
		}
		f.rest, f.body = "\r\n", errorReader{io.ErrUnexpectedEOF} // some clients omit the last line break
		return n, nil
	}
	n := copy(into, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

type errorReader struct{ error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.error }

// pair is a name and a value of a query or form.
type pair struct{ name, value string }

// pairs splits a query into its pairs.
func pairs(raw string) ([]pair, error) {
	if _, err := url.ParseQuery(raw); err != nil {
		return nil, err
	}
	var all []pair
	for text := range strings.SplitSeq(raw, "&") {
		if text == "" {
			continue
		}
		name, value, _ := strings.Cut(text, "=")
		name, errName := url.QueryUnescape(name)
		value, errValue := url.QueryUnescape(value)
		if err := errors.Join(errName, errValue); err != nil {
			return nil, err
		}
		all = append(all, pair{name, value})
	}
	return all, nil
}

// addPairs adds the pairs of a query or form to parameters, in their order. Names with brackets are nested.
func addPairs(all parameters, of []pair) error {
	if len(of) > maxValues {
		return Parameters("there are too many parameters")
	}
	own := parameters{}
	for _, p := range of {
		if !utf8.ValidString(p.name) || !utf8.ValidString(p.value) {
			return Parameters("a parameter is not valid UTF-8")
		}
		keys, ok := splitName(p.name)
		if !ok {
			return Parameters(fmt.Sprintf("%.100s is invalid", p.name))
		}
		if !insert(own, keys, p.value) {
			return Parameters(fmt.Sprintf("%.100s is invalid", keys[0]))
		}
	}
	for name, value := range own {
		all[name] = value
	}
	return nil
}

// splitName splits "a[b][]" into "a", "b" and "". It reports false if the name is not valid.
func splitName(name string) ([]string, bool) {
	head, rest, nested := strings.Cut(name, "[")
	if head == "" {
		return nil, false
	}
	keys := []string{head}
	for nested {
		key, after, closed := strings.Cut(rest, "]")
		if !closed || strings.Contains(key, "[") || len(keys) == maxDepth {
			return nil, false
		}
		keys = append(keys, key)
		if after == "" {
			return keys, true
		}
		if after[0] != '[' {
			return nil, false
		}
		rest = after[1:]
	}
	return keys, true
}

// insert stores a value under its keys. An empty key is a list: a key that repeats begins a new element. insert reports false if the place
// already has a value of another form.
func insert(at parameters, keys []string, value string) bool {
	key := keys[0]
	if len(keys) == 1 {
		at[key] = value
		return true
	}
	if keys[1] != "" {
		child, ok := at[key].(parameters)
		if !ok {
			if at[key] != nil {
				return false
			}
			child = parameters{}
			at[key] = child
		}
		return insert(child, keys[1:], value)
	}
	list, ok := at[key].([]any)
	if !ok && at[key] != nil {
		return false
	}
	if len(keys) == 2 {
		at[key] = append(list, value)
		return true
	}
	if len(list) > 0 {
		last, ok := list[len(list)-1].(parameters)
		if ok && !has(last, keys[2:]) {
			return insert(last, keys[2:], value)
		}
	}
	element := parameters{}
	at[key] = append(list, element)
	return insert(element, keys[2:], value)
}

// has reports whether a value exists under the keys, so that another one begins a new element.
func has(at parameters, keys []string) bool {
	value, ok := at[keys[0]]
	if !ok || len(keys) == 1 {
		return ok
	}
	child, ok := value.(parameters)
	return ok && keys[1] != "" && has(child, keys[1:])
}
