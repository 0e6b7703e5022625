package aggregated

import (
	"context"
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/internal/audit"
)

// audited writes a line for each write, those included that are refused before they reach the tree, and for reads that a job token scope refuses.
func (o Options) audited(p proxy, next http.Handler) http.Handler {
	address := func(r *http.Request) string { return p.client(r).String() }
	return o.Writes.Handler(audit.At{Door: audit.Kubernetes, Address: address, Writes: writes, Reads: auth.CarriesJobToken}, next)
}

// writes reports whether a request may change something by the REST API.
func writes(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions &&
		strings.HasPrefix(r.URL.Path, Prefix+"/")
}

// identified notes for the audit who calls, before RBAC decides whether they may.
type identified struct{ authorizer.Authorizer }

// Authorize implements authorizer.Authorizer.
func (i identified) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if record := audit.From(ctx); record != nil && a.GetUser() != nil {
		record.Identity(a.GetUser().GetName())
	}
	return i.Authorizer.Authorize(ctx, a)
}
