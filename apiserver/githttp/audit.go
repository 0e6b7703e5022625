package githttp

import (
	"context"
	"net/http"
	"strings"

	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/hook"
)

// Writes reports whether a request pushes, or asks for what a push begins with.
func Writes(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/"+string(transfer.ReceivePack)) ||
		strings.HasSuffix(r.URL.Path, infoRefs) && r.URL.Query().Get("service") == string(transfer.ReceivePack)
}

// The reasons that the audit gives where nobody has decided about a push.
const (
	undecided = "Git did not accept the request, or the client disconnected: nothing was changed"
	unmade    = "another update of this push was refused"
	overtaken = "the ref does not have this value after the push"
)

// tell notes for the audit what was decided about a push.
func (p *push) tell(updates []hook.Update, verdict hook.Verdict) {
	if p.record == nil {
		return
	}
	result := audit.Refused
	switch {
	case verdict.Accepted:
		result = audit.Done
	case verdict.Text == failure, verdict.Text == git.Full:
		result = audit.Failed
	}
	refs := make([]audit.Ref, len(updates))
	for i, u := range updates {
		refs[i] = audit.Ref{Name: u.Ref, Old: u.Old, New: u.New, Result: result, Reason: p.reasons[u.Ref]}
		if len(p.reasons) > 0 && refs[i].Reason == "" {
			refs[i].Reason = unmade
		}
	}
	p.record.Result(result, verdict.Text)
	p.record.Refs(refs...)
}

// confirm checks that the refs have the values that the push requested, because git may still have failed to change one.
func (p *push) confirm(ctx context.Context) {
	if p.record == nil {
		return
	}
	names := make([]string, len(p.updates))
	for i, u := range p.updates {
		names[i] = u.Ref
	}
	found, err := p.project.Repository.Objects(ctx, names...)
	if err != nil {
		p.record.Result(audit.Failed, "The refs could not be read after the push.")
		return
	}
	reason := overtaken
	if p.full {
		reason = git.Full
	}
	for i, u := range p.updates {
		if found[i].ID != u.New && (found[i].ID != "" || !object.IsZeroID(u.New)) {
			p.record.RefFailed(u.Ref, reason)
		}
	}
}
