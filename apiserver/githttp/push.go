package githttp

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/hook"
	"github.com/forgeplane/forgeplane/internal/protection"
)

// push is a push in progress. The hook's question never determines the caller or the project.
type push struct {
	*Handler
	path    string
	caller  Caller
	project *Project
	stage   atomic.Int32
	record  *audit.Record
	write   *git.Write
	change  change.Write

	// Set by the hook's question, before the stage is accepted.
	updates []update.Ref
	end     func()            // ends the write, and releases the reserved refs
	reasons map[string]string // by ref, why it is refused

	asked atomic.Bool // the hook has run: git has stored the objects
	full  bool        // the storage has no space left
}

// The stages of a push. An accepted push continues without its client. A push that was cut off can no longer be accepted.
const (
	unchecked int32 = iota
	accepted
	cutOff
)

// cutOffTimeout is the time for a push that was cut off to end by itself.
const cutOffTimeout = 10 * time.Second

// confirmTimeout limits reading the refs after a push.
const confirmTimeout = 10 * time.Second

// receive serves a push. A push ends when the client disconnects, unless it was accepted before.
func (h *Handler) receive(client context.Context, out *answer, in *body, req request, caller Caller, project *Project) error {
	client, leave := context.WithCancelCause(client)
	defer leave(nil)
	probe := in.empty()
	p, err := h.newPush(client, req, caller, project)
	if err != nil {
		return err
	}
	defer p.write.End()
	token, forget := h.Hooks.Expect(func(ctx context.Context, asked hook.Push) hook.Verdict {
		ctx, cancel := context.WithCancel(fair.With(ctx, caller.Key))
		defer context.AfterFunc(client, cancel)()
		verdict := p.check(ctx, asked)
		p.tell(asked.Updates, verdict)
		return verdict
	})
	defer forget()

	ctx, stop := context.WithTimeoutCause(context.WithoutCancel(client), h.Timeout, errTimeout)
	defer stop()
	ctx, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	in.failed = leave
	defer context.AfterFunc(client, func() {
		if !p.stage.CompareAndSwap(unchecked, cutOff) {
			return
		}
		select { // git ends with its input or its hook
		case <-ctx.Done():
		case <-time.After(cutOffTimeout):
			kill(context.Cause(client))
		}
	})()

	out.contentType = "application/x-" + string(req.service) + "-result"
	out.stubborn = true
	err = transfer.Serve(p.write.In(ctx), project.Repository, transfer.ServeOptions{
		Service: req.service, Protocol: req.protocol, Stdin: in, Stdout: out,
		HooksDir: h.HooksDir, HookEnv: []string{hook.SocketEnv + "=" + h.HookSocket, hook.TokenEnv + "=" + token},
		Accepted: func() bool { return p.stage.Load() == accepted },
		NoSpace: func() { // in between, git forwards the output of the hook, which can contain names of files
			p.full = p.full || !p.asked.Load() || p.stage.Load() == accepted
		},
	})
	if err == nil && !probe && !p.asked.Load() && project.Repository.Full() { // git could not create a directory, and does not report the cause
		p.full = true
	}
	if p.full {
		p.Log.Error(syscall.ENOSPC, "Failed to store a push", "project", p.path, "user", caller.UserID, "repository", project.Repository.Dir())
		p.record.Otherwise(audit.Failed, git.Full)
	}
	p.record.Otherwise(audit.Refused, undecided)
	if p.stage.Load() == accepted {
		p.end()
		ctx, stop := context.WithTimeout(context.WithoutCancel(client), confirmTimeout)
		defer stop()
		p.change.Publish(p.made(ctx))
	}
	err = out.finish(err)
	if refused := context.Cause(client); err != nil && errors.As(refused, new(refusal)) { // git only reports that the body has ended
		return refused
	}
	return err
}

// newPush returns a push whose write is prepared; end it.
func (h *Handler) newPush(client context.Context, req request, caller Caller, project *Project) (*push, error) {
	p := &push{Handler: h, path: req.path, caller: caller, project: project, record: audit.From(client)}
	p.change = change.Write{
		Project: project.Name, Repository: project.Repository, Via: protection.Push, Authorize: p.authorize, Written: h.Written,
		By: database.User{ID: caller.UserID, UID: caller.UID},
	}
	var err error
	p.write, err = project.Repository.PrepareWrite()
	return p, err
}

// failure is the message for a push that could not be decided. The log has the reason.
const failure = "The server could not check this push, so nothing was changed. " +
	"Please try again later, and tell an administrator if the problem persists."

// check answers the hook.
func (p *push) check(ctx context.Context, asked hook.Push) (verdict hook.Verdict) {
	p.asked.Store(true)
	// From here on, closing the repository waits for this push, or this push finds it closed: nothing can get in between.
	switch err := p.write.Begin(); {
	case errors.Is(err, git.ErrClosed):
		return hook.Verdict{Text: ReadOnly}
	case err != nil:
		p.Log.Error(err, "Failed to check a push", "project", p.path, "user", p.caller.UserID)
		return hook.Verdict{Text: failure}
	}
	p.end = p.write.End
	defer func() {
		if r := recover(); r != nil {
			p.Log.Error(fmt.Errorf("panic: %v", r), "Failed to check a push", "project", p.path, "stack", string(debug.Stack()))
			verdict = hook.Verdict{Text: failure}
		}
		if !verdict.Accepted {
			p.end()
		}
	}()
	p.updates = asked.Updates
	text := p.reason(ctx, p.decide(ctx, asked))
	if text == "" && p.stage.CompareAndSwap(unchecked, accepted) {
		return hook.Verdict{Accepted: true}
	}
	return hook.Verdict{Text: text}
}

// declined is an error that says why a push is refused, for the pusher.
type declined string

func (d declined) Error() string { return string(d) }

// reason returns the message to the pusher for an error of decide, or "" for nil.
func (p *push) reason(ctx context.Context, err error) string {
	var why declined
	var refused *change.RefusedError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &why):
		return string(why)
	case errors.As(err, &refused):
		p.reasons = refused.Reasons()
		return summary(refused.Refusals)
	}
	if !errors.Is(ctx.Err(), context.Canceled) { // a disconnected client needs no decision
		p.Log.Error(err, "Failed to check a push", "project", p.path, "user", p.caller.UserID)
	}
	if git.NoSpace(err) {
		return git.Full
	}
	return failure
}

// decide returns an error if the push is refused: a declined, a *change.RefusedError, or a failure to find out.
func (p *push) decide(ctx context.Context, asked hook.Push) error {
	quarantine, err := p.project.Repository.Quarantine(asked.Quarantine)
	if err != nil {
		return err
	}
	err = p.within(ctx, quarantine, asked.Updates)
	if limit := git.LimitReached(err); limit != "" {
		return declined(summary([]change.Refusal{{Reason: limit}}))
	} else if err != nil {
		return err
	}
	return p.change.Decide(ctx, quarantine, asked.Updates...)
}

// within returns a *git.LimitError if the push exceeds the limits of the server.
func (p *push) within(ctx context.Context, q *git.Quarantine, listed []update.Ref) error {
	if err := transfer.CheckPush(ctx, p.project.Repository, q, listed...); err != nil {
		return err
	}
	release, err := refs.Reserve(p.project.Repository, listed...)
	if err != nil {
		return err
	}
	end := p.end
	p.end = func() { release(); end() }
	return nil
}

// Messages for a pusher whose token or account has ended since the push began.
const (
	tokenEnded declined = "The access token has expired or was revoked since this push began. Nothing was changed. Push again with another token."
	blocked    declined = "Your account has been blocked since this push began. Nothing was changed."
)

// authorize returns the pusher as an actor, and the protections of some branches, as they are declared now: tokens, roles and rules may have
// changed since the push began.
func (p *push) authorize(ctx context.Context, branches []string) (actor protection.Actor, rules []protection.Rule, err error) {
	caller, err := p.Authenticator.Again(ctx, p.caller)
	switch {
	case errors.Is(err, ErrUnauthenticated):
		return actor, nil, tokenEnded
	case errors.Is(err, ErrBlocked):
		return actor, nil, blocked
	case err != nil:
		return actor, nil, fmt.Errorf("checking the caller again: %w", err)
	case !caller.has(scopes[transfer.ReceivePack]):
		return actor, nil, declined(missingScope[transfer.ReceivePack].text)
	}
	project, err := p.find(ctx, p.path, caller)
	if err == nil {
		err = project.Open(ctx)
	}
	switch {
	case errors.Is(err, ErrNotFound), err == nil && project.Repository.Dir() != p.project.Repository.Dir():
		return actor, nil, declined("The project has been moved or removed. Nothing was changed.")
	case err != nil:
		return actor, nil, err
	case p.readOnly(project) != "":
		return actor, nil, declined(p.readOnly(project))
	}
	if may, err := project.Actor.MayWrite(ctx, ""); err != nil {
		return actor, nil, err
	} else if !may {
		return actor, nil, declined(notAllowed)
	}
	rules, err = project.Rules(ctx, branches)
	return project.Actor, rules, err
}

// maxLines is the maximum number of refusals in the message to the pusher.
const maxLines = 20

// summary returns the message for a pusher whose updates are refused.
func summary(refusals []change.Refusal) string {
	var b strings.Builder
	b.WriteString("The push is refused, and nothing was changed.\n")
	for _, r := range refusals[:min(len(refusals), maxLines)] {
		b.WriteString(r.Reason + "\n")
	}
	if more := len(refusals) - maxLines; more > 0 {
		fmt.Fprintf(&b, "and %d more.\n", more)
	}
	return b.String()
}
