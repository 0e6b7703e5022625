// Package githttp serves Git's smart HTTP protocol: clone, fetch and push.
//
// It authorizes requests with an Authenticator, Projects and package protection, and leaves everything else to git. It checks a push in its
// pre-receive hook, when the objects have arrived and no ref has changed.
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

// Options are the options of a Handler. Those in the first part are required.
type Options struct {
	Authenticator Authenticator
	Projects      Projects
	// Hooks answers the hooks in HooksDir, on the unix socket HookSocket.
	Hooks                *hook.Server
	HooksDir, HookSocket string
	// Written is called after each push. It must not block.
	Written func(change.Event)

	// Outdated reports whether a request was refused because of data older than an earlier write of a client, and waits until the data is
	// newer. The error is watermark.ErrBehind if that takes too long. Outdated is nil if data cannot be outdated.
	Outdated func(ctx context.Context) (bool, error)

	Log logr.Logger
	// Slots limit the requests that git serves at once. The default is 64, of which one caller can hold a quarter, and a quarter is
	// reserved for signed-in callers.
	Slots fair.Limits
	// IdleTimeout is the time after which a client that neither sends nor reads data is disconnected. The default is 5 minutes.
	IdleTimeout time.Duration
	// Patience is the total time for which the server waits for a client in one direction before the minimum speed of package pace applies.
	// The default is a minute.
	Patience time.Duration
	// Timeout limits a whole request. The default is 2 hours.
	Timeout time.Duration
	// MaxFetchBytes is the maximum size of the decompressed request of a fetch. The default is 16 MiB.
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

// DefaultSlots returns the default of Options.Slots.
func DefaultSlots() fair.Limits {
	const total, share, reserved = 64, 25, 25
	return fair.Of(total, share, reserved)
}

// Requests returns the slots of requests, which collect metrics.
func (h *Handler) Requests() *fair.Slots { return h.slots }

// ServeHTTP serves one request. The response describes a failure without internal details, which are logged.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := &answer{w: w, control: http.NewResponseController(w), pace: h.pace()}
	_ = answer.control.SetWriteDeadline(time.Time{}) // removes the deadline of the previous request
	defer func() { _ = answer.control.SetWriteDeadline(time.Now().Add(h.IdleTimeout)) }()
	if r.ContentLength != 0 { // after a refusal, net/http reads the rest of the body before the next request
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
			log.V(1).Info("The client disconnected", "reason", err.Error())
		} else {
			if !errors.Is(err, watermark.ErrBehind) { // otherwise callers could fill the log
				log.Error(err, "Failed to serve git", "status", said.status)
			}
			audit.From(r.Context()).Otherwise(audit.Failed, said.text)
		}
	}
	if answer.begun {
		panic(http.ErrAbortHandler) // the client must not take a partial response for a complete one
	}
	said.write(w)
}

// pace returns the minimum speed of a client in one direction.
func (h *Handler) pace() pace.Pace { return pace.Pace{Patience: h.Patience, Pause: h.IdleTimeout} }

func (h *Handler) serve(out *answer, r *http.Request) error {
	record := audit.From(r.Context())
	record.Action(action(r), r.URL.EscapedPath())
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
		record.Skip() // git first sends a request without credentials, to find out whether it must sign in
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

// advertise lists the refs, or refuses a push to a read-only project.
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
		audit.From(ctx).Skip() // this request writes nothing
	}
	return err
}

// upload serves a clone or fetch. git ends when the client disconnects.
func (h *Handler) upload(ctx context.Context, out *answer, in *body, req request, project *Project) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	in.failed = cancel
	out.contentType = "application/x-" + string(req.service) + "-result"
	err := transfer.Serve(ctx, project.Repository, transfer.ServeOptions{
		Service: req.service, Protocol: req.protocol, Stdin: in, Stdout: out,
	})
	if refused := context.Cause(ctx); errors.As(refused, new(refusal)) { // git may have responded to a part of the body
		return refused
	}
	return out.finish(err)
}
