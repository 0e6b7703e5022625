package endpoint

import (
	"context"
	"net/http"
	"reflect"
)

// Elsewhere is the response of an endpoint whose content can also be had at another address, such as that of a store of objects. Clients are
// redirected there, unless WithoutRedirects says that they cannot be.
type Elsewhere struct {
	// URL is the address; where it is empty, everybody gets the content.
	URL string
	// Content returns it. An error is the answer.
	Content func() (Content, error)
}

var elsewhereType = reflect.TypeFor[Elsewhere]()

type stayKey struct{}

// WithoutRedirects returns a context for requests that came by a way on which a redirect is not passed on.
func WithoutRedirects(ctx context.Context) context.Context {
	return context.WithValue(ctx, stayKey{}, true)
}

// lead sends the client to where the content is, or sends the content.
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

// redirected is the answer that leads elsewhere.
func redirected() object {
	return object{"description": "The content is at another address.", "headers": referTo([]string{"Location"})}
}
