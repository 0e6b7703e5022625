package mergerequests

import (
	"context"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// refresh brings a merge request of the project of a request up to date with its branches, and returns it.
func (f *Family) refresh(_ context.Context, _ auth.Subject, m mergerequest.MergeRequest) (mergerequest.MergeRequest, error) {
	return m, nil
}
