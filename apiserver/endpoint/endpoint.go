// Package endpoint is the machinery of the REST API. A table of endpoints defines routing, the binding of parameters, validation errors,
// pagination, headers, error bodies and the OpenAPI document. The package knows no resource.
//
// A family of endpoints has handlers of the form func(ctx, Subject, *Request) (Response, error), which contain no HTTP, and lists them in a
// Table. The subject is the thing that the request is about, such as a project, together with the caller's permissions on it. The Guard
// finds it, and its type declares what the endpoint is about. A request type declares all other parameters with struct tags:
//
//	param:"name"      a parameter of the query, form or JSON body, or of the path if the path has the name in braces
//	required:""       400 "name is missing" without it
//	blank:"refuse"    400 "name is empty" when it is sent and blank
//	values:"a,b"      400 "name does not have a valid value" otherwise
//	minimum:"1"       the same for numbers below; maximum likewise
//	exactlyOne:"x"    400 unless exactly one of the parameters with the same x is sent
//	atLeastOne:"x"    400 unless at least one of the parameters with the same x is sent
//	atMostOne:"x"     400 when more than one of the parameters with the same x is sent
//	comma:""          a list may also be sent as one text with commas
//	words:"None,Any"  the words that an Either takes
//	body:"a/b,c/d"    for a File: the raw body, unzipped, in one of these media types; other parameters are in the query and path
//	range:""          400 without Content-Range: the body is a piece of a larger whole
//	default:"x"       the value when it is not sent; it appears in Link headers too
//	doc:"..."         a sentence for the OpenAPI document
//	example:"x"       the value in the example of a JSON body, which has this parameter even if it is not required
//
// A field of type Optional distinguishes an absent parameter from null, and a field of type Either is a value or a word. A struct is sent
// as not[label]=x, or as an object in JSON. A map[string]string is sent in the same way, as variables[KEY]=x; the client chooses its keys.
// A File comes in a multipart form. A response type declares its fields with json tags and describes them with doc.
package endpoint

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"time"
)

// Ability is a permission that an endpoint requires of its caller. The application that serves the table defines its meaning.
type Ability string

// Table has the endpoints of a family.
type Table []*Endpoint

// Named sets the name of the family, under which the OpenAPI document groups its endpoints.
func (t Table) Named(family string) Table {
	for _, e := range t {
		e.family = family
	}
	return t
}

// Endpoint is a row of a table: a method, a path and their handler.
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

	// subject is the zero value of the subject's type, and located are the path parameters that name the subject.
	subject   any
	located   []located
	finder    any
	rule      rule
	anonymous Anonymous

	credentials []Credential
	carried     []carrier
	// credentialFeatures are the features that must be on for the endpoint to accept some of the credentials.
	credentialFeatures map[Credential]string

	denial      *Error
	conditional bool
	// nonempty says that at least one parameter must be sent.
	nonempty bool
	// strict says that every parameter must be known.
	strict    bool
	download  bool
	maxBody   int64
	perMinute int
	limited   string
	limitedBy []LimitBy
	// pattern is the path with the marks of its wildcards. slash says that the path may end in a slash.
	pattern  string
	slash    bool
	answers  []Answer
	uploads  *uploadLimits
	unzipped int64
	polls    time.Duration

	request  *plan
	response reflect.Type
	call     func(ctx context.Context, subject, request any) (any, error)
}

// Func is a handler. It gets the subject that the Guard found, and the parameters that the client sent.
type Func[S, Req, Resp any] = func(ctx context.Context, subject S, request *Req) (Resp, error)

// Anonymous says how an endpoint treats callers who present no credential.
type Anonymous int

const (
	// Refused answers 401, whatever the subject is.
	Refused Anonymous = iota
	// Hidden answers 404 if the public cannot see the subject, as if it did not exist. Otherwise it answers as for every caller who lacks
	// the ability.
	Hidden
	// Challenged answers 404 if the public cannot see the subject, as if it did not exist, and otherwise 401.
	Challenged
	// Served treats anonymous callers like all others: the subject decides what the public can see.
	Served
)

// Get returns an endpoint that reads; its success status is 200.
//
// The path has parameters in braces, as in /projects/{id}. One can be a wildcard, as in /artifacts/{path...}, which can contain
// slashes. If several paths match a request, a literal segment takes precedence over a parameter, and a parameter over a wildcard.
func Get[S, Req, Resp any](path string, handler Func[S, Req, Resp]) *Endpoint {
	return newEndpoint(http.MethodGet, path, http.StatusOK, handler)
}

// Post returns an endpoint that creates; its success status is 201.
func Post[S, Req, Resp any](path string, handler Func[S, Req, Resp]) *Endpoint {
	return newEndpoint(http.MethodPost, path, http.StatusCreated, handler)
}

// Put returns an endpoint that changes; its success status is 200.
func Put[S, Req, Resp any](path string, handler Func[S, Req, Resp]) *Endpoint {
	return newEndpoint(http.MethodPut, path, http.StatusOK, handler)
}

// Patch returns an endpoint that changes; its success status is 200.
func Patch[S, Req, Resp any](path string, handler Func[S, Req, Resp]) *Endpoint {
	return newEndpoint(http.MethodPatch, path, http.StatusOK, handler)
}

// Delete returns an endpoint that removes; its success status is 204, without a body.
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
	e.path, e.pattern = strings.ReplaceAll(path, "...}", "}"), path
	named := e.locate(pathParameters(e.path))
	e.request = compile(reflect.TypeFor[Req](), path, named)
	e.scopes, e.credentials = []string{"api"}, []Credential{AccessToken}
	if method == http.MethodGet {
		e.scopes, e.maxBody = []string{"api", "read_api"}, maxReadBody
	}
	return e
}

// Doc describes the endpoint in one sentence, for the OpenAPI document.
func (e *Endpoint) Doc(summary string) *Endpoint {
	e.summary = summary
	return e
}

// Needs names the ability that a caller must have.
func (e *Endpoint) Needs(a Ability) *Endpoint {
	e.ability = a
	return e
}

// Asks names further abilities that the handler checks itself, because the parameters decide whether they are needed and on which subject,
// such as a group that a parameter names. The handler cannot check any other ability.
func (e *Endpoint) Asks(abilities ...Ability) *Endpoint {
	e.asks = append(e.asks, abilities...)
	return e
}

// Anybody admits every signed-in caller. An endpoint that changes something must call Needs or Anybody.
func (e *Endpoint) Anybody() *Endpoint {
	e.anybody = true
	return e
}

// ForAnybody reports whether Anybody was called.
func (e *Endpoint) ForAnybody() bool { return e.anybody }

// Feature names the feature that must be on for the endpoint to exist; otherwise the endpoint answers 404. The Guard knows which features
// are on.
func (e *Endpoint) Feature(name string) *Endpoint {
	e.feature = name
	return e
}

// Anonymous sets how the endpoint treats callers who present no credential. The default is Refused.
func (e *Endpoint) Anonymous(a Anonymous) *Endpoint {
	e.anonymous = a
	return e
}

// Denies replaces the answer to callers who lack the ability; the default is 403.
func (e *Endpoint) Denies(answer *Error) *Endpoint {
	e.denial = answer
	return e
}

// Scopes sets the scopes that let a token in; it needs one of them. The default is api, or also read_api for an endpoint that reads.
func (e *Endpoint) Scopes(scopes ...string) *Endpoint {
	e.scopes = scopes
	return e
}

// Status replaces the status of a success.
func (e *Endpoint) Status(code int) *Endpoint {
	e.status = code
	return e
}

// Also names further statuses for the OpenAPI document, such as 304 and 405, in addition to the usual ones.
func (e *Endpoint) Also(codes ...int) *Endpoint {
	e.also = append(e.also, codes...)
	return e
}

// Nonempty refuses a request without any parameter, apart from those in the path and those that identify the caller. A parameter that the
// endpoint does not know counts: clients send settings of other servers, which change nothing here.
func (e *Endpoint) Nonempty() *Endpoint {
	e.nonempty = true
	return e
}

// Strict refuses parameters that the endpoint does not know, for requests in which an ignored one would mislead the client.
func (e *Endpoint) Strict() *Endpoint {
	e.strict = true
	return e
}

// IsStrict reports whether Strict was called.
func (e *Endpoint) IsStrict() bool { return e.strict }

// Method returns the HTTP method.
func (e *Endpoint) Method() string { return e.method }

// Path returns the path with its parameters in braces. The interface documents write :id for {id}.
func (e *Endpoint) Path() string { return e.path }

// Ability returns the ability that Needs named.
func (e *Endpoint) Ability() Ability { return e.ability }

// Asked returns the abilities that Asks named.
func (e *Endpoint) Asked() []Ability { return e.asks }

// RequiredFeature returns the feature that Feature named, or "" if the endpoint always exists.
func (e *Endpoint) RequiredFeature() string { return e.feature }

// RequiredScopes returns the scopes that let a token in; it needs one of them.
func (e *Endpoint) RequiredScopes() []string { return e.scopes }

// Denial returns the answer to callers who lack the ability.
func (e *Endpoint) Denial() *Error {
	if e.denial == nil {
		return Forbidden("")
	}
	return e.denial
}

// Subject returns the zero value of the subject's type.
func (e *Endpoint) Subject() any { return e.subject }

// ForAnonymous returns how the endpoint treats callers who present no credential.
func (e *Endpoint) ForAnonymous() Anonymous { return e.anonymous }

// String returns the method and the path.
func (e *Endpoint) String() string { return e.method + " " + e.path }

// None is the request or response type of an endpoint without one.
type None struct{}
