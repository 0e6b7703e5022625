package apiserver

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint/endpointtest"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/test/soak"
)

const administrator = "administrator"

// enough is the number of failures that are reported for each operation and caller.
const enough = 5

// slow is longer than any request takes that does not hang.
const slow = time.Minute

// prober sends bad requests and checks the answers.
type prober struct {
	t        *testing.T
	world    *world
	contract *endpointtest.Contract
	op       operation
	who      caller

	// met counts the bad requests of all probers of a test, sent or not.
	met            *int
	sent, failures int
}

// probe calls a test for each operation of the API and each caller, and fails if the refused requests have changed anything.
func probe(t *testing.T, test func(p *prober)) {
	t.Helper()
	t.Parallel()
	w := newWorld(t, v1alpha1.VisibilityPrivate)
	contract := contractOf(t, w.handler)
	who := []caller{
		withToken("", administrator, familytest.Value("admin"), is(1)),
		known("Maintainer", v1alpha1.RoleMaintainer, place),
	}
	sent, met := 0, 0
	for _, op := range operations(t, w.handler) {
		for _, c := range who {
			p := &prober{t: t, world: w, contract: contract, op: op, who: c, met: &met}
			test(p)
			sent += p.sent
		}
		if changed := w.store.changes(); len(changed) > 0 {
			t.Errorf("%s: after nothing but refusals there is a change in %v", op.sample, changed)
			w.reset()
		}
	}
	t.Logf("%d requests", sent)
}

// spared reports whether to skip the nth request. Only a third of the requests is sent for callers other than the administrator, because
// everything that differs for them is decided before values are checked. Only a quarter is sent to endpoints that can start Git processes for
// each request; which one differs from endpoint to endpoint. The rest is due in turns.
func (p *prober) spared(n int) bool {
	name := p.op.sample.endpoint.String()
	if strings.Contains(name, "/repository/") && (n+len(name))%4 != 0 {
		return true
	}
	return p.who.name != administrator && n%3 != 0 || !p.due()
}

// due reports whether to send the next bad request. "make test" sends one of 40.
func (p *prober) due() bool {
	*p.met++
	return *p.met%soak.Times(40, 1) == 0
}

// request is a request that may be bad.
type request struct {
	// path and query are escaped.
	path, query string
	contentType string
	body        io.Reader
	// The description of the request in failures.
	what string
}

// good returns the request of the sample.
func (p *prober) good() request {
	user := p.who.user(p.op.sample.subject())
	return request{
		path: p.op.sample.target(user), contentType: "application/json",
		body: strings.NewReader(p.op.sample.text(user)), what: "a good request",
	}
}

// send serves a request. It fails the test if the answer does not fit the OpenAPI document, or if a refused request changed something.
func (p *prober) send(r request) *httptest.ResponseRecorder {
	p.sent++
	method := p.op.sample.endpoint.Method()
	in := httptest.NewRequestWithContext(p.t.Context(), method, "/", r.body)
	plain, err := url.PathUnescape(r.path)
	if err != nil {
		p.t.Fatalf("%s: %v", r.path, err) // the HTTP server would refuse it
	}
	in.URL = &url.URL{Path: plain, RawPath: r.path, RawQuery: r.query}
	if r.contentType != "" {
		in.Header.Set("Content-Type", r.contentType)
	}
	begun := time.Now()
	answer := p.world.serve(p.who.sign(in, p.op.sample.subject()))
	took := time.Since(begun)

	fail := func(format string, args ...any) {
		if p.failures++; p.failures > enough {
			return
		}
		p.t.Errorf("%s for %s, %s: %s\n%s?%.300s answered %d %.300s", p.op.sample, p.who, r.what, fmt.Sprintf(format, args...),
			r.path, r.query, answer.Code, answer.Body)
	}
	if took > slow {
		fail("took %s", took)
	}
	if answer.Code >= http.StatusInternalServerError {
		fail("the server is at fault")
	} else if err := p.contract.Check(method, clean(r.path), answer.Code, answer.Header(), answer.Body.Bytes()); err != nil {
		fail("%v", err)
	}
	if answer.Code >= 300 && strings.Contains(answer.Body.String(), "forgeplane.dev") {
		fail("a refusal speaks of Kubernetes")
	}
	if p.world.writes() > 0 {
		if answer.Code >= 300 {
			if changed := p.world.store.changes(); len(changed) > 0 {
				fail("refused, and yet there is a change in %v", changed)
			}
		}
		p.world.reset()
	}
	return answer
}

// clean returns the path to look up in the document. A path with dot segments, which the server does not clean up, is not in the document.
func clean(path string) string {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return "/nowhere"
		}
	}
	return path
}

// literals are values in JSON, some of them malformed, that are bad for most parameters.
var literals = []string{
	`null`, `true`, `false`, `0`, `-1`, `-0`, `1.5`, `1e3`, `1e308`, `1e400`, `-1e400`, `9223372036854775807`, `9223372036854775808`,
	`-9223372036854775809`, `99999999999999999999999999`, `[]`, `[[]]`, `[null]`, `[1,"a",{}]`, `{}`, `{"a":[{"b":null}]}`, `[{}]`,
	`[{"id":1,"_destroy":true}]`, `{"":""}`, `""`, `" "`, `"\u0000"`, `"a\u0000b"`, `"\ud800"`, "\"\xff\xfe\"", "\"\x01\"", `"\u001b[31m"`,
	`"\u202e"`, `"a\r\nSet-Cookie: a=b"`, `"\t\n"`, `"."`, `".."`, `"../../../etc/passwd"`, `"a/../b"`, `"/"`, `"//"`, `"a//b"`, `"-"`,
	`"refs/heads/main"`, `"a..b"`, `"a@{b"`, `"a.lock"`, `"*"`, `"**"`, `"[a"`, `"\\"`, `"%00"`, `"%2e%2e%2f"`, `"NaN"`, `"Infinity"`,
	`"0x10"`, `" 1 "`, `"１"`, `"1,2,,x"`, `"null"`, `"' OR 1=1 --"`, `"<script>alert(1)</script>"`, `"{{.}}"`, `"$(id)"`,
	`"0000-00-00"`, `"0000-01-01"`, `"9999-99-99"`, `"9999-12-31T23:59:59-23:59"`, `"10000-01-01"`, `"2026-06-15T12:00:00+99:99"`,
	`"-0001-01-01T00:00:00Z"`, `"ssh-ed25519 AAAA"`, `"http://a:b@c"`, `"file:///etc/passwd"`, `"a@b"`, `{`, `[`, `"`, `'a'`, `nul`, `+1`, `01`, ``,
	quoted(300), quoted(5000), quoted(100_000),
}

func quoted(n int) string { return `"` + strings.Repeat("a", n) + `"` }

// texts are values in a query, form or path that are bad for most parameters. Some are not escaped correctly.
var texts = []string{
	"", "+", "%20", "null", "true", "-1", "0", "1.5", "1e3", "1e400", "9223372036854775808", "99999999999999999999999999", "NaN", "0x10",
	"%00", "a%00b", "%ff%fe", "%c0%af", "%ed%a0%80", "%01", "%1b%5b31m", "%e2%80%ae", "%0d%0aSet-Cookie:%20a=b", ".", "..", "%2e%2e", "..%2f..%2f",
	"..%5c", "a%2f..%2fb", "%2f", "%2f%2f", "*", "%2a%2a", "%255b", "%2500", "%252f", "[]", "%5b%5d", "%7b%7d", "%7b%22a%22:1%7d", "1,2,,x", "-", "%5c",
	"9999-12-31T23:59:59-23:59", "0000-00-00", "%f0%9f%92%a9", "%ef%bc%91", ";", "%3f", "%23", "%27%20OR%201=1", strings.Repeat("a", 300),
	strings.Repeat("%2f", 1000), strings.Repeat("a", 20_000),
}

func TestPathParameters_refuseBadValues(t *testing.T) {
	probe(t, func(p *prober) {
		for _, name := range p.op.path {
			for _, text := range texts {
				if text == "" || !p.due() {
					continue // without a text, the path would belong to another endpoint
				}
				r := p.good()
				r.path = p.placed(name, text)
				r.what = fmt.Sprintf("%.60q as %s in the path", text, name)
				p.send(r)
			}
		}
	})
}

// placed returns the path of the sample with another value of a parameter.
func (p *prober) placed(name, value string) string {
	segments := strings.Split(p.good().path, "/")
	for i, segment := range strings.Split(p.op.sample.endpoint.Path(), "/") {
		if segment == "{"+name+"}" {
			segments[i] = value
		}
	}
	return strings.Join(segments, "/")
}

func TestQueryParameters_refuseBadValues(t *testing.T) {
	probe(t, func(p *prober) {
		for n, name := range append(p.op.query, p.op.form...) {
			for i, text := range append([]string{"%", "%zz", "a=b&" + url.QueryEscape(name) + "[x]=c"}, texts...) {
				if n >= len(p.op.query) && (i+n)%3 != 0 || p.spared(i+n) {
					continue // TestFormParameters_refuseBadValues sends all values of form parameters
				}
				r := p.good()
				r.query = url.QueryEscape(name) + "=" + text
				r.what = fmt.Sprintf("%.60q as %s in the query", text, name)
				p.send(r)
			}
		}
	})
}

func TestFormParameters_refuseBadValues(t *testing.T) {
	probe(t, func(p *prober) {
		for n, name := range p.op.form {
			for i, text := range append([]string{"%", "%zz"}, texts...) {
				if p.spared(i + n) {
					continue
				}
				form := p.op.asForm()
				form.Del(name)
				r := p.good()
				r.contentType = "application/x-www-form-urlencoded"
				r.body = strings.NewReader(form.Encode() + "&" + url.QueryEscape(name) + "=" + text)
				r.what = fmt.Sprintf("%.60q as %s in a form", text, name)
				p.send(r)
			}
		}
	})
}

func TestJSONProperties_refuseBadValues(t *testing.T) {
	probe(t, func(p *prober) {
		for n, way := range p.op.properties {
			for i, literal := range literals {
				if p.spared(i + n) {
					continue
				}
				name, text := at(way, literal)
				r := p.good()
				r.body = strings.NewReader(p.op.with(map[string]string{name: text}))
				r.what = fmt.Sprintf("%.60s as %s in JSON", literal, strings.Join(way, "."))
				p.send(r)
			}
		}
	})
}

// TestParameters_refuseCombinationsOfBadValues sends a random sample of the requests with several bad values.
func TestParameters_refuseCombinationsOfBadValues(t *testing.T) {
	const seed, each = 1, 60
	random := rand.New(rand.NewPCG(seed, 0))
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	probe(t, func(p *prober) {
		for i := range each {
			r := p.good()
			r.what = fmt.Sprintf("draw %d of seed %d", i, seed)
			values := map[string]string{}
			for _, way := range p.op.properties {
				if random.IntN(3) == 0 {
					name, text := at(way, pick(literals))
					values[name] = text
				}
			}
			r.body = strings.NewReader(p.op.with(values))
			query := url.Values{}
			for _, name := range append(p.op.query, p.op.form...) {
				if random.IntN(3) == 0 {
					value, _ := url.QueryUnescape(pick(texts))
					query.Add(name, value)
				}
			}
			if r.query = query.Encode(); p.due() {
				p.send(r)
			}
		}
	})
}

// badBodies returns bodies that are wrong as a whole, with their content types.
func badBodies(good string) []struct{ contentType, body string } {
	deep := strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)
	list := strings.Repeat("[", 100_000)
	const boundary = "multipart/form-data; boundary=b"
	part := func(headers, text string) string { return "--b\r\n" + headers + "\r\n\r\n" + text + "\r\n" }
	return []struct{ contentType, body string }{
		{"application/json", deep}, {"application/json", `{"a":` + list}, {"application/json", "[]"}, {"application/json", `"a"`},
		{"application/json", "1"}, {"application/json", "\x00"}, {"application/json", "\xef\xbb\xbf" + good}, {"application/json", good + good},
		{"application/json", good + "x"}, {"application/json", "{" + strings.Repeat(`"a":1,`, 100_000) + `"a":1}`},
		{"application/json", "\xff\xfe{\x00}\x00"}, {"application/json; charset=utf-16", good}, {"application/json;;", good},
		{"text/plain", good}, {"application/xml", "<a/>"}, {"application/octet-stream", good}, {"", "x"}, {"/", "x"}, {"a", "x"},
		{"application/json, text/plain", good}, {strings.Repeat("a/", 5000), "x"}, {"application/merge-patch+json", "[]"},
		{"application/x-www-form-urlencoded", good}, {"application/x-www-form-urlencoded", strings.Repeat("a=1&", 100_000)},
		{"application/x-www-form-urlencoded", "a" + strings.Repeat("[b]", 10_000) + "=1"}, {"application/x-www-form-urlencoded", "[]=1&[a]=2&a[=3&a]=4&=5"},
		{"application/x-www-form-urlencoded", "a[]=1&a[b]=2&a=3&a[][c]=4"},
		{"multipart/form-data", good}, {boundary, ""}, {boundary, "garbage"}, {boundary, "--b\r\n"}, {boundary, "--b--"}, {boundary, part("", "a")},
		{boundary, part(`Content-Disposition: form-data; name="name"`, "a")}, {boundary, part("Content-Disposition: form-data", "a") + "--b--"},
		{boundary, part(`Content-Disposition: form-data; name="../../a"; filename="../../a"`, "a") + "--b--"},
		{boundary, part(`Content-Disposition: form-data; name="a`+"\x00"+`"`, "\x00\xff") + "--b--"},
		{boundary, part(strings.Repeat("X: y\r\n", 20_000)+`Content-Disposition: form-data; name="a"`, "a") + "--b--"},
		{boundary, strings.Repeat(part(`Content-Disposition: form-data; name="a"`, "a"), 10_000) + "--b--"},
		{"multipart/form-data; boundary=" + strings.Repeat("b", 1000), "--b--"}, {"multipart/form-data; boundary=\"\"", "--\r\n"},
	}
}

func TestBodies_refuseMalformedContent(t *testing.T) {
	probe(t, func(p *prober) {
		good := p.op.sample.body
		if good == "" {
			good = `{"a":1}`
		}
		all := badBodies(good)
		for i := range good {
			all = append(all, struct{ contentType, body string }{"application/json", good[:i]}) // cut off
		}
		for _, b := range all {
			if !p.due() {
				continue
			}
			r := p.good()
			r.contentType, r.body = b.contentType, strings.NewReader(b.body)
			r.what = fmt.Sprintf("%.60q with %d bytes: %.60q", b.contentType, len(b.body), b.body)
			p.send(r)
		}
	})
}

func TestJSONKeys_countOnceWhenRepeated(t *testing.T) {
	probe(t, func(p *prober) {
		if good := p.op.sample.body; good != "" {
			r := p.good()
			r.body, r.what = strings.NewReader(good[:len(good)-1]+","+good[1:]), "every key twice"
			p.same(r)
		}
	})
}

func TestUnknownParameters_areIgnoredUnlessStrict(t *testing.T) {
	probe(t, func(p *prober) {
		r := p.good()
		r.query = "unknown=1&other[]=2&deep[er][est]=3"
		r.what = "unknown parameters in the query"
		if p.op.sample.endpoint.IsStrict() {
			if answer := p.send(r); answer.Code < 300 {
				p.t.Errorf("%s for %s, %s: %d", p.op.sample, p.who, r.what, answer.Code)
			}
			return
		}
		p.same(r)
		if p.op.sample.body != "" {
			r = p.good()
			r.body = strings.NewReader(p.op.with(map[string]string{"unknown": `{"a":[1,null]}`, "other": `"b"`}))
			r.what = "unknown properties in the body"
			p.same(r)
		}
	})
}

// same fails the test if the answer differs from the answer to the good request.
func (p *prober) same(r request) {
	want, got := p.send(p.good()), p.send(r)
	if got.Code != want.Code || got.Code < 300 && got.Body.Len() == 0 != (want.Body.Len() == 0) {
		p.t.Errorf("%s for %s, %s: %d %s, want %d", p.op.sample, p.who, r.what, got.Code, got.Body, want.Code)
	}
}

// endless is a long body that counts how much of it was read.
type endless struct {
	head  io.Reader
	left  int
	taken int
}

func (e *endless) Read(into []byte) (int, error) {
	if n, err := e.head.Read(into); n > 0 || err == nil {
		e.taken += n
		return n, nil
	}
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(len(into), e.left)
	for i := range into[:n] {
		into[i] = 'a'
	}
	e.left -= n
	e.taken += n
	return n, nil
}

func TestLongBodies_areCutOff(t *testing.T) {
	long := quoted(2 << 20)
	heads := []struct{ contentType, text string }{
		{"application/json", `{"unknown":"`}, {"application/x-www-form-urlencoded", "unknown="},
		{"multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"unknown\"\r\n\r\n"},
		{"multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"unknown\"; filename=\"a\"\r\n\r\n"},
		{"text/plain", ""}, {"", ""},
	}
	probe(t, func(p *prober) {
		if p.who.name != administrator {
			return // long bodies are read in the same way for every caller
		}
		most := int(p.op.sample.endpoint.BodyLimit()) + 1<<20 // a little more than the limit
		for _, h := range heads {
			if !p.due() {
				continue
			}
			r := p.good()
			stream := &endless{head: strings.NewReader(h.text), left: 50 << 20}
			r.contentType, r.body, r.what = h.contentType, stream, fmt.Sprintf("50 MB of %q", h.contentType)
			if got := p.send(r); got.Code < 400 || stream.taken > most {
				t.Errorf("%s for %s, %s: %d bytes were read for %d %s", p.op.sample, p.who, r.what, stream.taken, got.Code, got.Body)
			}
		}
		if p.due() {
			r := p.good()
			r.body, r.what = strings.NewReader(p.op.with(map[string]string{"unknown": long})), "2 MB in what is ignored"
			p.send(r)
		}
		for _, way := range p.op.properties {
			if !p.due() {
				continue
			}
			name, text := at(way, long)
			r := p.good()
			r.body, r.what = strings.NewReader(p.op.with(map[string]string{name: text})), "2 MB as "+name
			p.send(r)
		}
	})
}
