package endpoint

import (
	"errors"
	"net/http"
)

// outdated reports whether an error may come of nothing but that another server has written something meanwhile. Whatever the
// error says of what is there, it is asked: so the time that an answer takes does not tell what is hidden from what is missing.
func (h *Handler) outdated(r *http.Request, err error) bool {
	var e *Error
	if h.options.Outdated == nil || !errors.As(err, &e) {
		return false
	}
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusBadRequest, http.StatusConflict,
		http.StatusUnprocessableEntity:
		return h.options.Outdated(r.Context())
	default:
		return false
	}
}
