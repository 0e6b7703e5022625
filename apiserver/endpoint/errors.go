package endpoint

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Error is an answer other than a success. Its body has one of the forms that clients of the API know; the form depends on where the error
// arises (API behaviour, section 1.1).
type Error struct {
	// Status is the HTTP status.
	Status int
	// Header is added to the headers of the answer.
	Header http.Header

	// body is nil if the answer has none.
	body  body
	cause error
}

// body is a form of the body of an error.
type body interface {
	// described returns the body with a description for people.
	described(description string) body
}

// Because returns the error with a cause that is not meant for the client. The cause is logged.
func (e *Error) Because(cause error) *Error {
	caused := *e
	caused.cause = cause
	return &caused
}

func (e *Error) Error() string {
	text, err := json.Marshal(e.body)
	if err != nil {
		return fmt.Sprintf("%d", e.Status)
	}
	return fmt.Sprintf("%d %s", e.Status, text)
}

// Describe returns the error with a description for the person who reads it, beside the text that clients compare. It says what the text leaves
// open, such as the values that a parameter can have. An answer without a body stays without one.
func (e *Error) Describe(format string, args ...any) *Error {
	described := *e
	if e.body != nil {
		described.body = e.body.described(fmt.Sprintf(format, args...))
	}
	return &described
}

// Text returns the text of the body without its form. Use it in an answer about several things, each of which can fail.
func (e *Error) Text() string {
	switch body := e.body.(type) {
	case problem:
		return body.Error
	case message:
		switch said := body.Message.(type) {
		case string:
			return said
		case []string:
			return strings.Join(said, ", ")
		case map[string][]string:
			var all []string
			for _, attribute := range slices.Sorted(maps.Keys(said)) {
				all = append(all, attribute+" "+strings.Join(said[attribute], ", "))
			}
			return strings.Join(all, ", ")
		}
	}
	return http.StatusText(e.Status)
}

// message is the form of errors that handlers return.
type message struct {
	Message          any    `json:"message"`
	ErrorDescription string `json:"error_description,omitempty"`
}

func (m message) described(description string) body {
	m.ErrorDescription = description
	return m
}

// problem is the form of errors about parameters and routes.
type problem struct {
	Error            string `json:"error"`
	ErrorDescription string `json:"error_description,omitempty"`
	Scope            string `json:"scope,omitempty"`
}

func (p problem) described(description string) body {
	p.ErrorDescription = description
	return p
}

// text is a body that is not JSON.
type text string

func (t text) described(description string) body { return t + text(description+"\n") }

// Message returns an error with a formatted text.
func Message(status int, format string, args ...any) *Error {
	return &Error{Status: status, body: message{Message: fmt.Sprintf(format, args...)}}
}

// NotFound returns 404 for a resource, such as "Project". With an empty name, it returns the text for a record within an endpoint.
func NotFound(resource string) *Error {
	if resource == "" {
		return Message(http.StatusNotFound, "404 Not found")
	}
	return Message(http.StatusNotFound, "404 %s Not Found", resource)
}

// Forbidden returns 403. The reason may be empty.
func Forbidden(reason string) *Error { return reasoned(http.StatusForbidden, "403 Forbidden", reason) }

// Unauthorized returns 401. The reason may be empty.
func Unauthorized(reason string) *Error {
	return reasoned(http.StatusUnauthorized, "401 Unauthorized", reason)
}

// BadRequest returns 400. The reason may be empty.
func BadRequest(reason string) *Error {
	return reasoned(http.StatusBadRequest, "400 Bad request", reason)
}

// Conflict returns 409 with a text, or with the standard text if it is empty.
func Conflict(text string) *Error {
	if text == "" {
		text = "409 Conflict"
	}
	return Message(http.StatusConflict, "%s", text)
}

// Conflicts returns 409 with the texts in a list.
func Conflicts(texts ...string) *Error {
	return &Error{Status: http.StatusConflict, body: message{Message: texts}}
}

// Gone returns 410 for paths that are no longer served.
func Gone(text string) *Error {
	return &Error{Status: http.StatusGone, body: problem{Error: text}}
}

// NotModified returns 304: there was nothing to do.
func NotModified() *Error { return &Error{Status: http.StatusNotModified} }

func reasoned(status int, text, reason string) *Error {
	if reason != "" {
		text += " - " + reason
	}
	return Message(status, "%s", text)
}

// Invalid returns 400 for attributes of a model that are not valid: their names, and the problems of each.
func Invalid(attributes map[string][]string) *Error {
	return &Error{Status: http.StatusBadRequest, body: message{Message: attributes}}
}

// Unprocessable returns 422 with the texts in a list.
func Unprocessable(texts ...string) *Error {
	return &Error{Status: http.StatusUnprocessableEntity, body: message{Message: texts}}
}

// Parameters returns 400 for problems with the parameters, all in one text.
func Parameters(problems ...string) *Error {
	return &Error{Status: http.StatusBadRequest, body: problem{Error: strings.Join(problems, ", ")}}
}

// InvalidToken returns 401 for a bearer token that is not accepted.
func InvalidToken(description string) *Error {
	return &Error{Status: http.StatusUnauthorized, body: problem{Error: "invalid_token", ErrorDescription: description}}
}

// InsufficientScope returns 403 for a token that has none of the scopes.
func InsufficientScope(scopes []string) *Error {
	return &Error{Status: http.StatusForbidden, body: problem{
		Error:            "insufficient_scope",
		ErrorDescription: "The request requires higher privileges than provided by the access token.",
		Scope:            strings.Join(scopes, " "),
	}}
}
