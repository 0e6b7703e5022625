package audit

import (
	"context"
	"errors"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

type causeKey struct{}

// For returns a context for what a controller writes on account of obj, an object of its kind: the lines name both.
func For(ctx context.Context, obj client.Object) context.Context {
	path := ""
	switch o := obj.(type) {
	case *v1alpha1.Group:
		path = o.Status.FullPath
	case *v1alpha1.Project:
		path = o.Status.FullPath
	}
	about := ObjectOf(obj, path)
	return Because(ctx, Event{Controller: about.Kind, About: &about})
}

// Because returns a context for writes that a controller does for a reason: their lines have from cause what they do not say themselves,
// and from the causes before it what it does not say.
func Because(ctx context.Context, cause Event) context.Context {
	action := cause.Action
	cause = cause.over(because(ctx))
	if action != "" {
		cause.Action = action
	}
	return context.WithValue(ctx, causeKey{}, cause)
}

func because(ctx context.Context) Event {
	cause, _ := ctx.Value(causeKey{}).(Event)
	return cause
}

// Tell writes down what a controller did. An event without a result is done.
func (l *Log) Tell(ctx context.Context, e Event) {
	if l == nil {
		return
	}
	e = e.over(because(ctx))
	e.Door = Controller
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	if e.Result == "" {
		e.Result = Done
	}
	l.Write(e)
}

// over is the event with what cause says where the event says nothing. The word for what is done is the cause's, if it has one.
func (e Event) over(cause Event) Event {
	if cause.Action != "" {
		e.Action = cause.Action
	}
	if e.Controller == "" {
		e.Controller = cause.Controller
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

// Client returns a client for controllers that records each write of an object. A status is an observation of the controller, so a write of
// a status is recorded only if Because has given a reason for it.
func (l *Log) Client(c client.Client) client.Client {
	if l == nil {
		return c
	}
	return recorder{c, l.wrote}
}

// wrote tells of the write of an object by a controller.
func (l *Log) wrote(ctx context.Context, verb string, obj client.Object, err error) {
	if verb == updateStatus && because(ctx).Action == "" {
		return
	}
	o := ObjectOf(obj, "")
	o.Verb, o.Failed = verb, err != nil
	e := Event{Action: "reconcile", Objects: []Object{o}}
	if err != nil {
		// The text of the error may quote the content of the write.
		if answer := apierrors.APIStatus(nil); errors.As(err, &answer) {
			e.Status = int(answer.Status().Code)
		}
		e.Result = resultOf(e.Status)
	}
	l.Tell(ctx, e)
}

// Address returns a URL without the user, the password, the query and the fragment, for a line of the log. It returns "" for an invalid
// URL.
func Address(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}
