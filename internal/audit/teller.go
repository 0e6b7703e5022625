package audit

import (
	"context"
	"net/url"
	"time"
)

// Teller tells of what one of Forgeplane's controllers writes. It is safe for use by several goroutines; one without a log tells nobody.
type Teller struct {
	log        *Log
	controller string
}

// Controller returns what tells of the writes of a controller, which the lines name.
func (l *Log) Controller(name string) Teller { return Teller{log: l, controller: name} }

type causeKey struct{}

// Because returns a context for writes that a controller does for a reason: their lines have from cause what they do not say themselves.
func Because(ctx context.Context, cause Event) context.Context {
	return context.WithValue(ctx, causeKey{}, cause)
}

// Tell writes down what the controller did. An event without a result is done.
func (t Teller) Tell(ctx context.Context, e Event) {
	if t.log == nil {
		return
	}
	if cause, ok := ctx.Value(causeKey{}).(Event); ok {
		e = e.over(cause)
	}
	e.Door, e.Controller = Controller, t.controller
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	if e.Result == "" {
		e.Result = Done
	}
	for i := range e.Refs {
		e.Refs[i].Name, e.Refs[i].Reason = clip(e.Refs[i].Name, maxRef), clip(e.Refs[i].Reason, maxRef)
	}
	t.log.Write(e)
}

// over is the event with what cause says where the event says nothing. The word for what is done is the cause's, if it has one.
func (e Event) over(cause Event) Event {
	if cause.Action != "" {
		e.Action = cause.Action
	}
	if e.Target == "" {
		e.Target = cause.Target
	}
	if e.Reason == "" {
		e.Reason = cause.Reason
	}
	if e.About == nil {
		e.About = cause.About
	}
	if len(e.Objects) == 0 {
		e.Objects = cause.Objects
	}
	return e
}

// Address is a URL as a line may show it: without the user, the password, the query and the fragment. It is empty for what is no URL.
func Address(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}
