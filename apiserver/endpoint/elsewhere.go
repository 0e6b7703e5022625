package endpoint

import (
	"context"
	"net/http"
	"reflect"
)

// Elsewhere is the response of an endpoint whose content is also available at another address, such as an object store. Clients are
// redirected there, except under WithoutRedirects.
type Elsewhere struct {
	// URL is the other address. If it is empty, every client receives the content directly.
	URL string
	// Content returns the content. An error is the answer.
	Content func() (Content, error)
}

var elsewhereType = reflect.TypeFor[Elsewhere]()

type stayKey struct{}

// WithoutRedirects returns a context for requests that arrived through a proxy that does not pass on redirects.
func WithoutRedirects(ctx context.Context) context.Context {
	return context.WithValue(ctx, stayKey{}, true)
}

// lead redirects the client to the content, or sends the content.
func (h *Handler) lead(w http.ResponseWriter, r *http.Request, status int, to Elsewhere) error {
	if to.URL != "" && r.Context().Value(stayKey{}) == nil {
		w.Header().Set("Location", to.URL)
		h.send(w, http.StatusFound, nil)
		return nil
	}
	c, err := to.Content()
	if err != nil {
		return err
	}
	return h.stream(w, r, status, c)
}

// redirected is the Response Object of a redirect.
func redirected() object {
	return object{"description": "The content is at another address.", "headers": referTo([]string{"Location"})}
}
