package endpoint

import (
	"cmp"
	"errors"
	"net/http"
)

// outdated reports whether the only cause of an error can be that another server has written something in the meantime, and returns the
// answer if the request is not tried again. It asks for every such error, whatever the error says about existence; otherwise the time that an
// answer takes would reveal whether something is hidden or missing.
func (h *Handler) outdated(r *http.Request, err error) (again bool, answer error) {
	var e *Error
	if h.options.Outdated == nil || !errors.As(err, &e) {
		return false, err
	}
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusBadRequest, http.StatusConflict,
		http.StatusUnprocessableEntity:
		again, behind := h.options.Outdated(r.Context())
		return again, cmp.Or(behind, err)
	default:
		return false, err
	}
}
