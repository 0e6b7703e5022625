package githttp

import (
	"context"
	"net/http"
	"strings"

	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/hook"
)

// Writes reports whether a request is a push, or the request for refs before a push.
func Writes(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/"+string(transfer.ReceivePack)) ||
		strings.HasSuffix(r.URL.Path, infoRefs) && r.URL.Query().Get("service") == string(transfer.ReceivePack)
}

// action returns the name of a request in the audit log. A fetch has a line only if a job token scope refuses it.
func action(r *http.Request) string {
	if Writes(r) {
		return "push"
	}
	return "fetch"
}

// Reasons in the audit log for pushes without a decision.
const (
	undecided = "Git did not accept the request, or the client disconnected: nothing was changed"
	overtaken = "the ref does not have this value after the push"
)

// tell records the decision on a push in the audit log.
func (p *push) tell(updates []update.Ref, verdict hook.Verdict) {
	result := audit.Refused
	switch {
	case verdict.Accepted:
		result = audit.Done
	case verdict.Text == failure, verdict.Text == git.Full:
		result = audit.Failed
	}
	p.record.Result(result, verdict.Text)
	p.record.Updates(updates, result, p.reasons)
}

// made returns the updates after which the refs have the requested values, because git can fail to update a ref after the decision. It records the
// others as failed. If the refs cannot be read, it returns all updates.
func (p *push) made(ctx context.Context) (made []update.Ref) {
	names := make([]string, len(p.updates))
	for i, u := range p.updates {
		names[i] = u.Name
	}
	found, err := p.project.Repository.Objects(ctx, names...)
	if err != nil {
		p.record.Result(audit.Failed, "The refs could not be read after the push.")
		return p.updates
	}
	reason := overtaken
	if p.full {
		reason = git.Full
	}
	for i, u := range p.updates {
		if u.Made(found[i].ID) {
			made = append(made, u)
		} else {
			p.record.RefFailed(u.Name, reason)
		}
	}
	return made
}
