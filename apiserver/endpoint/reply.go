package endpoint

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
)

// Reply is a response that says with which of several statuses it comes, and with which headers.
type Reply[T any] struct {
	// Status is that of success, or one that Endpoint.Answers names; 0 is that of success.
	Status int
	// Header has more headers; it may be nil.
	Header http.Header
	// Body is what is sent, unless the status comes without anything.
	Body T
}

func (r Reply[T]) reply() (status int, header http.Header, body any) {
	return r.Status, r.Header, r.Body
}

func (Reply[T]) bodyType() reflect.Type { return reflect.TypeFor[T]() }

// replied is any Reply.
type replied interface {
	reply() (status int, header http.Header, body any)
	bodyType() reflect.Type
}

// Answer is one of several with which an endpoint says that it has done what was asked for.
type Answer struct {
	// Status is the HTTP status. That of success may be among them, to say more of it.
	Status int
	// Doc says in a sentence what it means.
	Doc string
	// Headers are what it has besides those that every answer has: their names, and a sentence for each.
	Headers map[string]string
	// Empty says that it comes without a body.
	Empty bool
}

// Answers names the statuses with which a Reply may come, for it and for the OpenAPI document.
func (e *Endpoint) Answers(answers ...Answer) *Endpoint {
	e.answers = append(e.answers, answers...)
	return e
}

// reply returns with which status and with what an endpoint answers, and sets the headers of that.
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

// shown is the type of what a success brings.
func (e *Endpoint) shown() reflect.Type {
	if r, is := reflect.Zero(e.response).Interface().(replied); is {
		return r.bodyType()
	}
	return e.response
}

// answered adds to the answers of an endpoint those that Answers names. content is what they have unless they are empty.
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
