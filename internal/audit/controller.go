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

// For returns a context for writes of a controller because of obj, an object of its kind. Their audit events name both.
func For(ctx context.Context, obj client.Object) context.Context {
	path := ""
	switch o := obj.(type) {
	case *v1alpha1.Group:
		path = o.Status.FullPath
	case *v1alpha1.Project:
		path = o.Status.FullPath
	}
	about := ObjectOf(obj, path)
	return WithReason(ctx, Event{Controller: about.Kind, About: &about})
}

// WithReason returns a context that adds cause to the audit events of a controller's writes. Fields that an event leaves empty come from
// cause, then from earlier causes.
func WithReason(ctx context.Context, cause Event) context.Context {
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

// Tell records an event of a controller. The default result is Done.
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

// Background calls do, which acts without a request, and records what it writes as one event. There is no event if it writes nothing. Code that do calls
// finds the Record as in a request.
func (l *Log) Background(ctx context.Context, action string, do func(context.Context) error) error {
	if l == nil {
		return do(ctx)
	}
	record := &Record{event: Event{Action: action}}
	err := do(context.WithValue(ctx, recordKey{}, record))
	if e := record.written(err); len(e.Objects) > 0 || len(e.Refs) > 0 {
		l.Tell(ctx, e)
	}
	return err
}

// written returns the event of work without a request, which ended with err.
func (r *Record) written(err error) Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.event
	for _, ref := range e.Refs {
		if e.Result == "" && ref.Result != Done {
			e.Result, e.Reason = ref.Result, ref.Reason
		}
	}
	if e.Result == "" && err != nil {
		e.Result = Failed
	}
	return e
}

// over returns the event with its empty fields taken from cause. The action of cause takes precedence.
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
// a status is recorded only if WithReason has given a reason for it.
func (l *Log) Client(c client.Client) client.Client {
	if l == nil {
		return c
	}
	return recorder{c, l.wrote}
}

// wrote records the write of an object by a controller.
func (l *Log) wrote(ctx context.Context, verb string, obj client.Object, err error) {
	if verb == updateStatus && because(ctx).Action == "" {
		return
	}
	o := ObjectOf(obj, "")
	o.Verb, o.Failed = verb, err != nil
	e := Event{Action: "reconcile", Objects: []Object{o}}
	if err != nil {
		// The text of the error can quote the content of the write.
		if answer := apierrors.APIStatus(nil); errors.As(err, &answer) {
			e.Status = int(answer.Status().Code)
		}
		e.Result = resultOf(e.Status)
	}
	l.Tell(ctx, e)
}

// Address returns a URL without the user, the password, the query and the fragment, for an event. It returns "" for an invalid URL.
func Address(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}
