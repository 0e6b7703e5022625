package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// request returns a GET request with the token of the user.
func (r *rest) request(ctx context.Context, url string) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err == nil {
		request.Header.Set("PRIVATE-TOKEN", r.token)
	}
	return request, err
}

// form returns a request with a form and the token of the user.
func (r *rest) form(ctx context.Context, method, url, form string) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(form))
	if err == nil {
		request.Header.Set("PRIVATE-TOKEN", r.token)
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return request, err
}

// get returns the answer to a GET request.
func (r *rest) get(ctx context.Context, path string) ([]byte, error) {
	request, err := r.request(ctx, r.URL()+"/api/v4"+path)
	if err != nil {
		return nil, err
	}
	return answerTo(http.DefaultClient, request, http.StatusOK)
}

// post creates something with a form.
func (r *rest) post(ctx context.Context, path, form string) error {
	_, err := r.send(ctx, http.MethodPost, path, form, http.StatusCreated)
	return err
}

// send sends a form, and returns the answer, which must have a status.
func (r *rest) send(ctx context.Context, method, path, form string, status int) ([]byte, error) {
	request, err := r.form(ctx, method, r.URL()+"/api/v4"+path, form)
	if err != nil {
		return nil, err
	}
	return answerTo(http.DefaultClient, request, status)
}

// answerTo sends a request, and returns the answer, which must have a status.
func answerTo(c *http.Client, request *http.Request, status int) ([]byte, error) {
	answer, text, err := do(c, request)
	if err == nil && answer.StatusCode != status {
		err = fmt.Errorf("%s %s was answered with %s instead of %d: %s", request.Method, request.URL.Path, answer.Status, status, text)
	}
	return text, err
}

// do sends a request, and returns the answer and its content.
func do(c *http.Client, request *http.Request) (*http.Response, []byte, error) {
	answer, err := c.Do(request)
	if err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(answer.Body)
	return answer, text, errors.Join(err, answer.Body.Close())
}
