package audit

import (
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// restriction is the reason for a refusal that may follow.
type restriction struct {
	about  Object
	reason string
	hides  bool
}

// Restrict sets the reason why the caller has less access to a project than its user, or removes it if reason is "". If the request is
// then refused, the event has the reason and is about the project, and a read has a line, too. hides says that the caller cannot see the
// project: then the refusal can be a 404.
func (r *Record) Restrict(project client.Object, path, reason string, hides bool) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.restriction = nil
	if reason != "" {
		r.restriction = &restriction{about: ObjectOf(project, path), reason: reason, hides: hides}
	}
}

// Refuse marks the request as refused because of its restriction, if it has one: for responses whose status does not say so.
func (r *Record) Refuse() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.restriction != nil {
		r.restriction.explain(&r.event)
	}
}

// explain sets the result, the reason and the project of an event, unless they are set.
func (s *restriction) explain(e *Event) {
	if e.Result == "" {
		e.Result, e.Reason = Refused, s.reason
	}
	if e.About == nil {
		e.About = &s.about
	}
}

// refuses reports whether the restriction is the reason for the status of a response.
func (s *restriction) refuses(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return s != nil
	case http.StatusNotFound:
		return s != nil && s.hides
	default:
		return false
	}
}
