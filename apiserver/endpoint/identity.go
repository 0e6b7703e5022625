package endpoint

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strings"
)

// The parameters of every endpoint that identify the caller. The Guard reads them from the query, and gets those of the body in Sent.
const (
	// sudo names the user that an administrator acts as.
	sudo = "sudo"
	// privateToken and accessToken are tokens.
	privateToken = "private_token"
	accessToken  = "access_token"
)

var identifying = []string{sudo, privateToken, accessToken}

// identity returns the parameters of a body that identify the caller. The error is a 400 if one is not a text or a number.
func identity(body parameters) (map[string]string, error) {
	var all map[string]string
	for _, name := range identifying {
		var text string
		switch value := body[name].(type) {
		case nil:
			continue
		case string:
			text = value
		case json.Number:
			text = value.String()
		default:
			return nil, Parameters(name + " is invalid")
		}
		if all == nil {
			all = map[string]string{}
		}
		all[name] = text
	}
	return all, nil
}

// identify reports whether the body identifies the caller. The Guard did not know the body when it admitted the request.
func (a *answer) identify(r *http.Request) (found bool, err error) {
	if a.known.Identity != nil || !hasBody(r) {
		return false, nil
	}
	a.known.Identity, err = identity(a.sent)
	return a.known.Identity != nil, err
}

// reconsider reports whether the Guard must be asked again about a request that it refused, because the body identifies the caller. Such a
// body is read before a caller is admitted, so it must be short, as in carried. If it cannot be read, the refusal stands: an
// unknown caller learns nothing more.
func (h *Handler) reconsider(w http.ResponseWriter, r *http.Request, e *Endpoint, a *answer, refusal error) bool {
	var refused *Error
	if !errors.As(refusal, &refused) || !slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound}, refused.Status) {
		return false
	}
	if a.sent != nil || e.streams() || r.ContentLength <= 0 || r.ContentLength > min(maxCarrying, e.most()) || !identifies(r) {
		return false
	}
	sent, err := readParameters(r, maxCarrying, nil)
	if err != nil {
		return false
	}
	received(w, r)
	a.sent = sent
	found, err := a.identify(r)
	return found && err == nil
}

// identifies reports whether the body of a request has parameters.
func identifies(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && (kind == "application/json" || kind == "application/x-www-form-urlencoded" || strings.HasPrefix(kind, "multipart/"))
}
