package informer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReadAhead is for Wrap of a rest.Config: while an informer decodes a page, the next one is on its way. kube-apiserver and this process
// then work at the same time, each of which has about half of the work of a list of custom resources.
func ReadAhead(next http.RoundTripper) http.RoundTripper { return readAhead{next} }

type readAhead struct {
	http.RoundTripper
}

func (t readAhead) RoundTrip(r *http.Request) (*http.Response, error) {
	ahead, ok := r.Context().Value(aheadKey{}).(*ahead)
	if !ok {
		return t.RoundTripper.RoundTrip(r)
	}
	this := ahead.take(r)
	if this == nil {
		this = fetch(t.RoundTripper, r)
	}
	if token := continued(this.body); token != "" {
		ahead.fetch(t.RoundTripper, following(r, token))
	}
	return this.response, this.err
}

type aheadKey struct{}

// ahead has the page that an informer, which reads one page after the other, requested in advance.
type ahead struct {
	url  string
	page chan page
}

// in marks the requests that are made with the context as those of the informer.
func (a *ahead) in(ctx context.Context) context.Context { return context.WithValue(ctx, aheadKey{}, a) }

// page is an answer whose body has been read.
type page struct {
	response *http.Response
	body     []byte
	err      error
}

// fetch asks for a page. It ends with the context of the request.
func (a *ahead) fetch(by http.RoundTripper, r *http.Request) {
	a.url, a.page = r.URL.String(), make(chan page, 1)
	go func(result chan<- page) { result <- *fetch(by, r) }(a.page)
}

// take returns the page that was asked for in advance, or nil if that is another one.
func (a *ahead) take(r *http.Request) *page {
	coming := a.page
	a.page = nil
	if coming == nil || a.url != r.URL.String() {
		return nil
	}
	select {
	case p := <-coming:
		return &p
	case <-r.Context().Done():
		return &page{err: r.Context().Err()}
	}
}

func fetch(by http.RoundTripper, r *http.Request) *page {
	response, err := by.RoundTrip(r)
	if err != nil {
		return &page{err: err}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return &page{err: fmt.Errorf("reading a page of a list: %w", err)}
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return &page{response: response, body: body}
}

// following is the request for the page after that of r.
func following(r *http.Request, token string) *http.Request {
	r = r.Clone(r.Context())
	query := r.URL.Query()
	query.Set("continue", token)
	r.URL.RawQuery = query.Encode()
	return r
}

// continued returns the token of the next page, without decoding the objects: kube-apiserver writes the metadata of a list of custom
// resources behind them. It returns "" for other lists, for which nothing is read ahead.
func continued(list []byte) string {
	const key = `"metadata":`
	at := bytes.LastIndex(list, []byte(key+"{"))
	if at < 0 {
		return ""
	}
	var m metav1.ListMeta
	if json.NewDecoder(bytes.NewReader(list[at+len(key):])).Decode(&m) != nil {
		return ""
	}
	return m.Continue
}
