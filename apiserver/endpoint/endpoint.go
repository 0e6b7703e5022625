// Package endpoint is the machinery of the REST API: from one table of endpoints come routing, the binding of parameters,
// validation errors, pagination, headers, error bodies and the OpenAPI document. It knows no resource.
//
// A family of endpoints writes handlers of the form func(ctx, Subject, *Request) (Response, error), which contain no HTTP, and
// lists them in a Table. The subject is what the request is about, such as a project, and what its caller may do with it: the Guard finds
// it, and its type says what the endpoint is about. A request type says with struct tags what it takes besides:
//
//	param:"name"      a parameter of the query, form or JSON body; of the path where the path has it in braces
//	required:""       400 "name is missing" without it
//	blank:"refuse"    400 "name is empty" when it is sent and blank
//	values:"a,b"      400 "name does not have a valid value" otherwise
//	minimum:"1"       the same for numbers below; maximum likewise
//	exactlyOne:"x"    400 unless one parameter of those with the same x is sent, and no more
//	atLeastOne:"x"    400 unless any parameter of those with the same x is sent
//	atMostOne:"x"     400 when more than one parameter of those with the same x is sent
//	comma:""          a list may be sent as one text with commas, too
//	words:"None,Any"  the words that an Either takes
//	body:"a/b,c/d"    for a File: the body as it is, unzipped, of one of these media types; other parameters are in the query and path
//	range:""          400 without Content-Range: the body is a piece of something
//	default:"x"       the value when it is not sent; it appears in Link headers too
//	doc:"..."         a sentence for the OpenAPI document
//
// A field of type Optional tells a parameter that is absent from one that is null, and one of type Either is a value or a word. A struct is
// sent as not[label]=x, as an object in JSON; so is a map[string]string, as variables[KEY]=x, whose keys the client chooses. A File comes in
// a multipart form. A response type says with json tags what it gives; doc describes its fields, too.
package endpoint

import (
	"context"
	"net/http"
	"reflect"
	"time"
)

// Ability is what a caller must be able to do; the application that serves the table knows what it means.
type Ability string

// Table is the endpoints of a family.
type Table []*Endpoint

// Named gives the family its name, under which the OpenAPI document has its endpoints.
func (t Table) Named(family string) Table {
	for _, e := range t {
		e.family = family
	}
	return t
}

// Endpoint is a row of a table: a method, a path, and what happens there.
type Endpoint struct {
	method  string
	path    string
	summary string
	ability Ability
	asks    []Ability
	anybody bool
	feature string
	scopes  []string
	status  int
	also    []int
	family  string

	// subject is the zero value of what the endpoint is about, and located are the path parameters that name it.
	subject   any
	located   []located
	finder    any
	rule      rule
	anonymous Anonymous

	credentials []Credential
	carried     []carrier

	denial      *Error
	conditional bool
	download    bool
	maxBody     int64
	perMinute   int
	limited     string
	limitedBy   []LimitBy
	// wildcard is the path parameter that takes all that is left, and slash says that the path may end in one.
	wildcard string
	slash    bool
	answers  []Answer
	uploads  *uploadLimits
	unzipped int64
	polls    time.Duration

	request  *plan
	response reflect.Type
	call     func(ctx context.Context, subject, request any) (any, error)
}

// Func is a handler: it gets the subject that the Guard has found, and what was sent.
type Func[S, Req, Resp any] = func(ctx context.Context, subject S, request *Req) (Resp, error)

// Anonymous says how an endpoint treats callers who show no credential.
type Anonymous int

const (
	// Refused answers with 401, whatever the request is about.
	Refused Anonymous = iota
	// Hidden answers with 404 for a subject that the public cannot see, as if it did not exist, and otherwise as it answers every caller
	// without the ability.
	Hidden
	// Served answers as it answers everybody: the subject decides what it shows to the public.
	Served
)

// Get returns an endpoint that reads; its success is 200. The path has parameters in braces, as in /projects/{id}. The last one may be a
// wildcard, as in /artifacts/{path...}, which takes all that is left. What has a word where another path has a parameter goes first, and
// a parameter goes before a wildcard.
func Get[S, Req, Resp any](path string, handler Func[S, Req, Resp]) *Endpoint {
	return newEndpoint(http.MethodGet, path, http.StatusOK, handler)
}

// Post returns an endpoint that creates; its success is 201.
func Post[S, Req, Resp any](path string, handler Func[S, Req, Resp]) *Endpoint {
	return newEndpoint(http.MethodPost, path, http.StatusCreated, handler)
}

// Put returns an endpoint that changes; its success is 200.
func Put[S, Req, Resp any](path string, handler Func[S, Req, Resp]) *Endpoint {
	return newEndpoint(http.MethodPut, path, http.StatusOK, handler)
}

// Patch returns an endpoint that changes; its success is 200.
func Patch[S, Req, Resp any](path string, handler Func[S, Req, Resp]) *Endpoint {
	return newEndpoint(http.MethodPatch, path, http.StatusOK, handler)
}

// Delete returns an endpoint that removes; its success is 204, without a body.
func Delete[S, Req, Resp any](path string, handler Func[S, Req, Resp]) *Endpoint {
	return newEndpoint(http.MethodDelete, path, http.StatusNoContent, handler)
}

func newEndpoint[S, Req, Resp any](method, path string, status int, handler Func[S, Req, Resp]) *Endpoint {
	e := &Endpoint{
		method: method, path: path, status: status, maxBody: maxBody,
		subject: *new(S), response: reflect.TypeFor[Resp](),
		call: func(ctx context.Context, subject, request any) (any, error) {
			return handler(ctx, subject.(S), request.(*Req))
		},
	}
	e.path, e.wildcard = plainPath(path)
	named := e.locate(pathParameters(e.path))
	e.request = compile(reflect.TypeFor[Req](), path, named)
	e.scopes, e.credentials = []string{"api"}, []Credential{AccessToken}
	if method == http.MethodGet {
		e.scopes, e.maxBody = []string{"api", "read_api"}, maxReadBody
	}
	return e
}

// Doc says in a sentence what the endpoint does.
func (e *Endpoint) Doc(summary string) *Endpoint {
	e.summary = summary
	return e
}

// Needs names the ability without which a caller is refused.
func (e *Endpoint) Needs(a Ability) *Endpoint {
	e.ability = a
	return e
}

// Asks names the abilities that the handler asks for besides, where it depends on what is sent whether they are needed, and about what: as
// about the group that a parameter names. No handler can ask for any other.
func (e *Endpoint) Asks(abilities ...Ability) *Endpoint {
	e.asks = append(e.asks, abilities...)
	return e
}

// Anybody lets in every signed-in caller. An endpoint that changes something must name an ability or call Anybody.
func (e *Endpoint) Anybody() *Endpoint {
	e.anybody = true
	return e
}

// ForAnybody reports whether Anybody was called.
func (e *Endpoint) ForAnybody() bool { return e.anybody }

// Feature names what must be turned on for the endpoint to be there; otherwise it answers 404. The Guard knows what is on.
func (e *Endpoint) Feature(name string) *Endpoint {
	e.feature = name
	return e
}

// Anonymous sets how the endpoint treats callers who show no credential. The default is Refused.
func (e *Endpoint) Anonymous(a Anonymous) *Endpoint {
	e.anonymous = a
	return e
}

// Denies replaces the answer to callers without the ability, 403.
func (e *Endpoint) Denies(answer *Error) *Endpoint {
	e.denial = answer
	return e
}

// Scopes replaces the scopes of which a token needs one; by default api, and read_api for reading.
func (e *Endpoint) Scopes(scopes ...string) *Endpoint {
	e.scopes = scopes
	return e
}

// Status replaces the status of success.
func (e *Endpoint) Status(code int) *Endpoint {
	e.status = code
	return e
}

// Also names statuses other than the usual ones with which it answers, such as 304 and 405, for the OpenAPI document.
func (e *Endpoint) Also(codes ...int) *Endpoint {
	e.also = append(e.also, codes...)
	return e
}

// Method is the HTTP method.
func (e *Endpoint) Method() string { return e.method }

// Path is the path with its parameters in braces, as in the interface documents with :id written {id}.
func (e *Endpoint) Path() string { return e.path }

// Ability is what Needs named.
func (e *Endpoint) Ability() Ability { return e.ability }

// Asked are the abilities that Asks named.
func (e *Endpoint) Asked() []Ability { return e.asks }

// RequiredFeature is what Feature named; empty where the endpoint is always there.
func (e *Endpoint) RequiredFeature() string { return e.feature }

// RequiredScopes are those of which a token needs one.
func (e *Endpoint) RequiredScopes() []string { return e.scopes }

// Denial is the answer to callers without the ability.
func (e *Endpoint) Denial() *Error {
	if e.denial == nil {
		return Forbidden("")
	}
	return e.denial
}

// Subject is the zero value of what the endpoint is about.
func (e *Endpoint) Subject() any { return e.subject }

// ForAnonymous returns how the endpoint treats callers who show no credential.
func (e *Endpoint) ForAnonymous() Anonymous { return e.anonymous }

// String is the method and path.
func (e *Endpoint) String() string { return e.method + " " + e.path }

// None is the request or response of an endpoint that takes or gives nothing.
type None struct{}
