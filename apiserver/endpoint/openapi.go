package endpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Info has the parts of the OpenAPI document that describe the API as a whole.
type Info struct {
	// Title is the name of the API.
	Title string
	// Version is the version of the program that serves the API.
	Version string
	// Server is the base of the endpoints' paths: a URL, or a reference relative to the document, such as ../v4.
	Server string
	// Try is the path and query of a request for clients to try first, such as /projects?per_page=2.
	Try string
}

// introduction says, in Markdown, what every client needs first. Its verbs are a request to try, and the base of the endpoints' paths.
const introduction = "**Sign in** with an access token in the header `PRIVATE-TOKEN` or `Authorization: Bearer`. " +
	"Requests without a token see only what is public.\n\n" +
	"    curl --header \"PRIVATE-TOKEN: $TOKEN\" '%[1]s'\n\n" +
	"**Paths** are below `%[2]s`. In a parameter of a path, encode the slash as `%%2F`.\n\n" +
	"**Lists** have pages of 20 rows: send `page`, and `per_page` for up to 100 rows. The header `Link` has the addresses of the other pages, " +
	"and `X-Total` has the number of rows, up to 10,000. A list with `pagination=keyset` has only the address of the next page, " +
	"and the last page has none.\n\n" +
	"**Errors** have a status and a JSON object. `message` is the reason, as a text or by attribute. " +
	"`error` lists the parameters that are missing or not valid, or names what is wrong with the token. `error_description` explains it. " +
	"`X-Request-Id` identifies the request in the log; a client can send its own.\n\n" +
	"**Parameters** come in the query, in a form (URL-encoded or multipart) or in a JSON object, on every method. " +
	"A query or form has nested parameters as `position[base_sha]` and lists as `labels[]`, and an empty value means null where null is allowed. " +
	"The case of words in place of a value, such as `None`, does not matter.\n\n" +
	"**Limits:** where requests are limited, `RateLimit-Limit` and its companions have the number of requests that are left in this minute.\n\n" +
	"**Extensions:** a token needs one of `x-scopes`, and its user `x-ability` and, depending on the parameters, `x-asks`. " +
	"`x-rule` is about the record: with `or` it suffices without the ability, with `and` it must hold as well, and `own` means a record of the caller. " +
	"`x-rate-limit` counts per caller and project or group, `x-rate-limit-by-address` and `x-rate-limit-by-credential` per one of those. " +
	"A parameter with `x-wildcard` can contain slashes. `x-long-poll` is how long the answer can take. " +
	"`x-credentials` lists the kinds of tokens that an operation takes, and `x-credential-features` the features that must be on for some of them. An operation with `x-feature` exists only while that feature is on."

// object is an object of the document.
type object = map[string]any

// OpenAPI returns the OpenAPI 3.1 document of all endpoints. It is served to everybody at /openapi.json.
func (h *Handler) OpenAPI() []byte { return h.document() }

func (h *Handler) getOpenAPI(context.Context, None, *None) (json.RawMessage, error) {
	return h.document(), nil
}

func (h *Handler) buildOpenAPI() []byte {
	info := h.options.Info
	paths, tags, families := map[string]object{}, []object{}, map[string]bool{}
	all := newSchemas()
	for e := range h.Endpoints() {
		for path, operation := range all.operations(e) {
			if paths[path] == nil {
				paths[path] = object{}
			}
			paths[path][strings.ToLower(e.method)] = operation
		}
		if e.family != "" && !families[e.family] {
			families[e.family] = true
			tags = append(tags, object{"name": e.family})
		}
	}
	document := object{
		"openapi": "3.1.0",
		"info":    object{"title": info.Title, "version": info.Version, "description": h.introduction()},
		"tags":    tags, "paths": paths, "security": security,
		"components": object{
			"schemas": all.components, "responses": failureResponses(), "headers": headers, "securitySchemes": securitySchemes,
		},
	}
	if info.Server != "" {
		document["servers"] = []object{{"url": info.Server}}
	}
	text, err := json.Marshal(document)
	if err != nil {
		panic(fmt.Sprintf("endpoint: encoding the OpenAPI document: %v", err)) // all its values can be encoded
	}
	return text
}

func (h *Handler) introduction() string {
	base := strings.TrimSuffix(h.options.BaseURL.String(), "/")
	return fmt.Sprintf(introduction, base+h.options.Info.Try, base)
}

var (
	security = []object{{"privateToken": []string{}}, {"bearer": []string{}}, {"privateTokenQuery": []string{}}}

	securitySchemes = object{
		"privateToken":      object{"type": "apiKey", "in": "header", "name": "PRIVATE-TOKEN", "description": "An access token."},
		"bearer":            object{"type": "http", "scheme": "bearer", "description": "An access token."},
		"privateTokenQuery": object{"type": "apiKey", "in": "query", "name": "private_token", "description": "An access token. It ends up in logs: prefer a header."},
	}

	headers = object{
		"ETag":          object{"description": "Tells this answer from another; sent back as If-None-Match it gives 304.", "required": true, "schema": object{"type": "string"}},
		"ETagOfSmall":   object{"description": "Tells this answer from another, unless it is too large; sent back as If-None-Match it gives 304.", "schema": object{"type": "string"}},
		"Link":          object{"description": "The pages prev, next, first and last, as far as there are such; of a list paged by key only next.", "schema": object{"type": "string"}},
		"X-Page":        object{"description": "Number of this page.", "schema": object{"type": "integer"}},
		"X-Per-Page":    object{"description": "Rows on a page.", "schema": object{"type": "integer"}},
		"X-Next-Page":   object{"description": "Number of the next page; empty on the last.", "schema": object{"type": "string", "pattern": `^\d*$`}},
		"X-Prev-Page":   object{"description": "Number of the page before; empty on the first.", "schema": object{"type": "string", "pattern": `^\d*$`}},
		"X-Total":       object{"description": "Rows of the list; left out when there are more than 10,000.", "schema": object{"type": "integer"}},
		"X-Total-Pages": object{"description": "Pages of the list; left out with X-Total.", "schema": object{"type": "integer"}},
		"Location":      object{"description": "The address.", "required": true, "schema": object{"type": "string"}},
		"Range":         object{"description": "How many bytes are there, after 0 and a dash.", "required": true, "schema": object{"type": "string"}},
		"Retry-After":   object{"description": "Seconds to wait.", "required": true, "schema": object{"type": "integer"}},
	}

	pageHeaders = []string{"Link", "X-Page", "X-Per-Page", "X-Next-Page", "X-Prev-Page", "X-Total", "X-Total-Pages"}
)

// operation returns the Operation Object of an endpoint.
func (s *schemas) operation(e *Endpoint) object {
	op := object{"operationId": operationID(e), "responses": s.responses(e), "x-scopes": e.scopes}
	if e.summary != "" {
		op["summary"] = e.summary
	}
	if e.family != "" {
		op["tags"] = []string{e.family}
	}
	if e.ability != "" {
		op["x-ability"] = e.ability
	}
	if len(e.asks) > 0 {
		op["x-asks"] = e.asks
	}
	if e.rule.Rule != "" {
		op["x-rule"] = e.rule.describe()
	}
	if e.feature != "" {
		op["x-feature"] = e.feature
	}
	if e.anonymous == Served {
		op["security"] = append([]object{{}}, security...)
	}
	if !slices.Equal(e.credentials, []Credential{AccessToken}) {
		op["x-credentials"] = e.credentials
	}
	if len(e.credentialFeatures) > 0 {
		op["x-credential-features"] = e.credentialFeatures
	}
	if !e.TakesCredential(AccessToken) {
		op["security"] = []object{{}}
	}
	e.limits(op)
	if e.polls > 0 {
		op["x-long-poll"] = object{"seconds": e.polls.Seconds()}
	}
	parameters := slices.Concat(e.locatedParameters(), e.request.pathParameters())
	e.markWildcards(parameters)
	switch raw := e.request.raw; {
	case raw != nil:
		op["requestBody"] = raw.requestBody()
		parameters = slices.Concat(parameters, e.request.queryParameters(), raw.headers())
	case e.method == http.MethodPost, e.method == http.MethodPut, e.method == http.MethodPatch:
		if body := e.request.body(); body != nil {
			op["requestBody"] = body
		}
	default:
		parameters = append(parameters, e.request.queryParameters()...)
	}
	if e.conditional {
		parameters = append(parameters, object{
			"name": unmodifiedSinceHeader, "in": "header", "required": false, "schema": object{"type": "string"},
			"description": "A date of HTTP or of the API: nothing is removed that was changed later.",
		})
	}
	if len(parameters) > 0 {
		op["parameters"] = parameters
	}
	return op
}

// operationID returns the method and the path as one word: the operation that lists /projects/{id}/labels is getProjectsByIdLabels.
func operationID(e *Endpoint) string {
	var id strings.Builder
	id.WriteString(strings.ToLower(e.method))
	for _, segment := range strings.Split(e.path, "/") {
		if strings.HasPrefix(segment, "{") {
			id.WriteString("By")
		}
		for _, word := range strings.FieldsFunc(segment, func(r rune) bool { return strings.ContainsRune("{}_-.", r) }) {
			id.WriteString(capital(word))
		}
	}
	return id.String()
}

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// anyType stands for the media types of a Content.
const anyType = "*/*"

// responses returns the answers of an endpoint by status.
func (s *schemas) responses(e *Endpoint) object {
	success := object{"description": http.StatusText(e.status)}
	answers := object{strconv.Itoa(e.status): success}
	named := object{}
	content := s.content(e)
	if content != nil {
		success["content"] = content
		if e.method == http.MethodGet && e.status == http.StatusOK && content[anyType] == nil {
			named["ETag"] = reference("headers", "ETag")
			if e.shown().Implements(streamedType) {
				// A streamed answer has no ETag.
				named["ETag"] = reference("headers", "ETagOfSmall")
			}
			answers["304"] = object{"description": "The client has this answer already."}
		}
	}
	if e.shown().Implements(listType) {
		for _, name := range pageHeaders {
			named[name] = reference("headers", name)
		}
	}
	if len(named) > 0 {
		success["headers"] = named
	}
	e.answered(answers, content)
	if e.shown() == elsewhereType {
		answers["302"] = redirected()
	}
	statuses := slices.Concat(usual, e.also)
	if e.method != http.MethodGet {
		statuses = append(statuses, usualOfWrites...)
	}
	if e.download {
		statuses = append(statuses, http.StatusNotAcceptable)
	}
	if e.conditional {
		statuses = append(statuses, http.StatusPreconditionFailed)
	}
	if e.request.raw != nil && e.request.raw.ranged {
		statuses = append(statuses, http.StatusRequestedRangeNotSatisfiable)
	}
	for _, status := range statuses {
		if status == http.StatusNotModified {
			answers["304"] = object{"description": "Nothing had to be done."}
			continue
		}
		answers[strconv.Itoa(status)] = reference("responses", failureName(status))
	}
	return answers
}

// content returns the content of a success, or nil if it has none.
func (s *schemas) content(e *Endpoint) object {
	t := e.shown()
	switch {
	case t == contentType, t == elsewhereType:
		return object{anyType: object{}}
	case t == noneType || e.status == http.StatusNoContent:
		return nil
	case t.Implements(listType):
		rows, _ := t.FieldByName("rows")
		t = rows.Type
	}
	return object{"application/json": object{"schema": s.of(root(t))}}
}

func reference(kind, name string) object { return object{"$ref": "#/components/" + kind + "/" + name} }

// failure is an answer other than a success, and the forms that it can have.
type failure struct {
	description string
	families    []string
	// plain says that the answer can also be plain text.
	plain   bool
	headers []string
}

// usual are the failures that every endpoint has, and usualOfWrites the failures of endpoints that change something. The document does not
// promise failures of the server itself.
var (
	usual         = []int{400, 401, 403, 404, 408, 413, 415, 429, 503}
	usualOfWrites = []int{409, 422, 507}

	failures = map[int]failure{
		400: {description: "Parameters are missing or not valid.", families: []string{parameterError, messageError, validationError}},
		401: {description: "The token is missing, unknown, expired or revoked.", families: []string{messageError, tokenError}},
		403: {description: "The caller or its token may not do this.", families: []string{messageError, tokenError}},
		404: {description: "The resource does not exist, or the caller may not see it.", families: []string{messageError}},
		405: {description: "The method is not allowed here.", families: []string{messageError, parameterError}},
		406: {description: "The request comes from a page of another site.", families: []string{messageError}},
		408: {description: "The request came too slowly.", families: []string{messageError}},
		409: {description: "The request conflicts with the current state.", families: []string{messageError, validationError}},
		412: {description: "The resource was changed after the time in If-Unmodified-Since.", families: []string{messageError}},
		413: {description: "The request is too large, or takes more than the server allows.", families: []string{messageError}},
		415: {description: "The type of the body is not supported.", families: []string{parameterError}},
		416: {description: "The content does not begin where the stored content ends.", families: []string{parameterError}, headers: []string{"Range"}},
		422: {description: "The request cannot be carried out.", families: []string{messageError, validationError}},
		429: {description: "There were too many requests.", families: []string{messageError, validationError}, plain: true, headers: []string{"Retry-After"}},
		503: {description: "The server cannot serve the request now.", families: []string{messageError}},
		507: {description: "The storage that the request writes to has no space left: that of the repository or of avatars, or the directory of the server for temporary files.", families: []string{messageError}},
	}
)

func failureName(status int) string {
	if _, ok := failures[status]; !ok {
		panic(fmt.Sprintf("endpoint: no failure has status %d", status))
	}
	return strings.ReplaceAll(http.StatusText(status), " ", "")
}

func failureResponses() object {
	all := object{}
	for status, f := range failures {
		var forms []object
		for _, family := range f.families {
			forms = append(forms, reference("schemas", family))
		}
		content := object{"application/json": object{"schema": object{"anyOf": forms}}}
		if f.plain {
			content["text/plain"] = object{"schema": object{"type": "string"}}
		}
		answer := object{"description": f.description, "content": content}
		if len(f.headers) > 0 {
			answer["headers"] = referTo(f.headers)
		}
		all[failureName(status)] = answer
	}
	return all
}

// referTo returns references to the named headers of an answer.
func referTo(names []string) object {
	named := object{}
	for _, name := range names {
		named[name] = reference("headers", name)
	}
	return named
}
