// Package githttp serves Git's smart HTTP protocol: clone, fetch and push.
//
// It decides who may do what with the help of an Authenticator, of Projects and of package protection, and leaves all else
// to git. A push is checked in its pre-receive hook, when its objects are there to be looked at and nothing has changed yet.
package githttp

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/apiserver/endpoint/pace"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/hook"
	"github.com/forgeplane/forgeplane/internal/watermark"
)

// Options are what a Handler works with. Those in the first part are needed.
type Options struct {
	Authenticator Authenticator
	Projects      Projects
	// Hooks answers the hooks in HooksDir, on the unix socket HookSocket.
	Hooks                *hook.Server
	HooksDir, HookSocket string
	// Written is called after each push. It must not block.
	Written func(change.Event)

	// Outdated reports whether what a request was refused for may be older than what a client has written before, and returns when it
	// is not any more. The error is watermark.ErrBehind if it still is. Outdated is nil where that cannot be.
	Outdated func(ctx context.Context) (bool, error)

	Log logr.Logger
	// Slots are shared by those whose requests git processes serve. If they are not set there are 64, a quarter of them for one caller
	// and a quarter for those who have signed in.
	Slots fair.Limits
	// IdleTimeout is how long a client may neither send nor take data while the server waits for it. 0 stands for 5 minutes.
	IdleTimeout time.Duration
	// Patience is how long the server waits for a client altogether, in either direction, until the client has to be as fast as package
	// pace says. 0 stands for a minute.
	Patience time.Duration
	// Timeout is for a whole request. 0 stands for 2 hours.
	Timeout time.Duration
	// MaxFetchBytes is how long the request of a fetch may be, unpacked. 0 stands for 16 MiB.
	MaxFetchBytes int64
}

// Handler serves Git's smart HTTP protocol, at paths such as "/group/project.git/info/refs".
type Handler struct {
	Options
	slots *fair.Slots
}

// New returns a handler.
func New(o Options) (*Handler, error) {
	if o.Authenticator == nil || o.Projects == nil || o.Hooks == nil || o.HooksDir == "" || o.HookSocket == "" || o.Written == nil {
		return nil, errors.New("githttp: a required option is missing")
	}
	o.Slots = cmp.Or(o.Slots, DefaultSlots())
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 5*time.Minute)
	o.Patience = cmp.Or(o.Patience, time.Minute)
	o.Timeout = cmp.Or(o.Timeout, 2*time.Hour)
	o.MaxFetchBytes = cmp.Or(o.MaxFetchBytes, 16<<20)
	return &Handler{Options: o, slots: fair.New("git", "Git requests", o.Slots)}, nil
}

// DefaultSlots are the slots of a handler that nobody has set.
func DefaultSlots() fair.Limits {
	const total, share, reserved = 64, 25, 25
	return fair.Of(total, share, reserved)
}

// Requests returns the slots of requests, which are a collector of metrics.
func (h *Handler) Requests() *fair.Slots { return h.slots }

// ServeHTTP serves one request. The answer contains what the client may know about a failure; everything else is logged.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := &answer{w: w, control: http.NewResponseController(w), pace: h.pace()}
	_ = answer.control.SetWriteDeadline(time.Time{}) // removes the deadline of the previous request
	defer func() { _ = answer.control.SetWriteDeadline(time.Now().Add(h.IdleTimeout)) }()
	if r.ContentLength != 0 { // net/http reads on after a refusal, for the sake of the next request
		_ = answer.control.SetReadDeadline(time.Now().Add(h.IdleTimeout))
	}
	err := h.serve(answer, r)
	if err == nil {
		return
	}
	var said refusal
	if !errors.As(err, &said) {
		said = h.explain(r.Context(), err)
		if log := h.Log.WithValues("method", r.Method, "path", r.URL.Path); r.Context().Err() != nil {
			log.V(1).Info("client disconnected", "reason", err.Error())
		} else {
			if !errors.Is(err, watermark.ErrBehind) { // each caller could fill the log then
				log.Error(err, "Failed to serve git", "status", said.status)
			}
			audit.From(r.Context()).Otherwise(audit.Failed, said.text)
		}
	}
	if answer.begun {
		panic(http.ErrAbortHandler) // the client must not take what it has got for the whole
	}
	said.write(w)
}

// pace is how fast a client has to be in one direction.
func (h *Handler) pace() pace.Pace { return pace.Pace{Patience: h.Patience, Pause: h.IdleTimeout} }

func (h *Handler) serve(out *answer, r *http.Request) error {
	record := audit.From(r.Context())
	record.Action("push", r.URL.EscapedPath())
	req, err := parse(r.Method, r.URL, r.Header)
	if err != nil {
		return err
	}
	caller, project, err := h.authorize(r, req)
	again, err := h.outdated(r, req, err)
	if again {
		caller, project, err = h.authorize(r, req)
	}
	if r.Header.Get("Authorization") == "" {
		record.Skip() // git first asks without credentials whether it must sign in
	}
	if err != nil {
		return req.refused(err)
	}
	if !caller.Anonymous() {
		r = r.WithContext(fair.With(r.Context(), caller.Key))
	}
	ctx, stop := context.WithTimeoutCause(r.Context(), h.Timeout, errTimeout)
	defer stop()
	if req.advertise {
		return req.refused(h.advertise(ctx, out, req, project))
	}
	in, err := newBody(out.control, r.Body, req, h, project.Repository.MaxPush())
	if err != nil {
		return err
	}
	out.in = in
	if in.empty() {
		record.Skip()
	}
	release, err := h.slots.Enter(ctx)
	if err != nil {
		return req.refused(err)
	}
	defer release()
	if req.service == transfer.ReceivePack {
		return req.refused(h.receive(r.Context(), out, in, req, caller, project))
	}
	return req.refused(h.upload(ctx, out, in, req, project))
}

// advertise lists the refs, or says that a project takes no pushes.
func (h *Handler) advertise(ctx context.Context, out *answer, req request, project *Project) error {
	out.contentType = "application/x-" + string(req.service) + "-advertisement"
	if req.service == transfer.ReceivePack || req.version() < 2 {
		out.prefix = packetLine("# service="+string(req.service)+"\n") + flush
	}
	if text := h.readOnly(project); text != "" && req.service == transfer.ReceivePack {
		audit.From(ctx).Result(audit.Refused, text)
		_, err := out.Write([]byte(packetLine("ERR " + text)))
		return err
	}
	release, err := h.slots.Enter(ctx)
	if err != nil {
		return req.refused(err)
	}
	defer release()
	err = out.finish(transfer.Serve(ctx, project.Repository, transfer.ServeOptions{
		Service: req.service, Advertise: true, Protocol: req.protocol, HooksDir: h.HooksDir, Stdout: out,
	}))
	if err == nil {
		audit.From(ctx).Skip() // nothing is written yet
	}
	return err
}

// upload serves a clone or fetch. git ends when the client goes away.
func (h *Handler) upload(ctx context.Context, out *answer, in *body, req request, project *Project) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	in.failed = cancel
	out.contentType = "application/x-" + string(req.service) + "-result"
	err := transfer.Serve(ctx, project.Repository, transfer.ServeOptions{
		Service: req.service, Protocol: req.protocol, Stdin: in, Stdout: out,
	})
	if refused := context.Cause(ctx); errors.As(refused, new(refusal)) { // git may have answered the part that it has read
		return refused
	}
	return out.finish(err)
}
