// Package users is the family of users.
package users

import (
	"context"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// Family serves users.
type Family struct {
	webURL string
}

// New returns the family; webURL is the address of the installation, without a slash at its end.
func New(webURL string) *Family { return &Family{webURL: webURL} }

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/user", f.current).Scopes("api", "read_api", "read_user").Doc("Get the user who calls."),
	}
}

func (f *Family) current(ctx context.Context, _ *endpoint.None) (User, error) {
	u := auth.From(ctx).Caller.User
	return full(u, f.webURL, u.Spec.Admin), nil
}
