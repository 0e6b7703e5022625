package endpoint

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
)

// Reply is a response that chooses one of several statuses, and its headers.
type Reply[T any] struct {
	// Status is the status of a success, or a status that Endpoint.Answers names; 0 means the status of a success.
	Status int
	// Header has additional headers; it may be nil.
	Header http.Header
	// Body is sent unless the status has no body.
	Body T
}

func (r Reply[T]) reply() (status int, header http.Header, body any) {
	return r.Status, r.Header, r.Body
}

func (Reply[T]) bodyType() reflect.Type { return reflect.TypeFor[T]() }

// replied is any Reply.
type replied interface {
	reply() (status int, header http.Header, body any)
}

// wrapped is a response around a body of another type.
type wrapped interface{ bodyType() reflect.Type }

// Answer is one of several successful answers of an endpoint.
type Answer struct {
	// Status is the HTTP status. It may be the endpoint's usual status, to document more about it.
	Status int
	// Doc describes the meaning of the answer in one sentence.
	Doc string
	// Headers are its additional headers: their names, and a sentence about each.
	Headers map[string]string
	// Empty says that the answer has no body.
	Empty bool
}

// Answers names the statuses that a Reply can have. They also appear in the OpenAPI document.
func (e *Endpoint) Answers(answers ...Answer) *Endpoint {
	e.answers = append(e.answers, answers...)
	return e
}

// reply returns the status and the body of a response, and sets its headers in h.
func (e *Endpoint) reply(h http.Header, response any) (status int, body any, err error) {
	r, is := response.(replied)
	if !is {
		return e.status, response, nil
	}
	status, header, body := r.reply()
	if status == 0 {
		status = e.status
	}
	i := slices.IndexFunc(e.answers, func(a Answer) bool { return a.Status == status })
	if i < 0 && status != e.status {
		return 0, nil, fmt.Errorf("%s does not name the status %d", e, status)
	}
	maps.Copy(h, header)
	if i >= 0 && e.answers[i].Empty {
		body = None{}
	}
	return status, body, nil
}

// shown returns the type of the body of a success.
func (e *Endpoint) shown() reflect.Type {
	if w, is := reflect.Zero(e.response).Interface().(wrapped); is {
		return w.bodyType()
	}
	return e.response
}

// answered adds the answers that Answers names to the answers of an endpoint. Each has the given content unless it is empty.
func (e *Endpoint) answered(answers, content object) {
	for _, a := range e.answers {
		key := strconv.Itoa(a.Status)
		said, ok := answers[key].(object)
		if !ok {
			said = object{}
			if content != nil {
				said["content"] = content
			}
		}
		if a.Empty {
			delete(said, "content")
		}
		said["description"] = a.Doc
		headers, ok := said["headers"].(object)
		if !ok {
			headers = object{}
		}
		for name, doc := range a.Headers {
			headers[name] = object{"description": doc, "schema": object{"type": "string"}}
		}
		if len(headers) > 0 {
			said["headers"] = headers
		}
		answers[key] = said
	}
}
