package mergerequests

import (
	"context"
	"fmt"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/role"
)

// maxFromOutsider is the maximum number of open merge requests from forks of a user who is not a Developer of the target project. Each one keeps
// commits of the fork in the target project, and is checked after every push to its target branch.
const maxFromOutsider = 50

// limitOutsider refuses a merge request that its author has opened in the same transaction, if that makes too many. target is the target project.
func (f *Family) limitOutsider(ctx context.Context, target auth.Subject, m mergerequest.MergeRequest) error {
	if m.Source.UID == m.In.UID || target.Access.Role >= role.Developer {
		return nil
	}
	n, err := f.Activity.MergeRequests.CountFromForks(ctx, m.In.UID, m.Author.UID)
	if err == nil && n > maxFromOutsider {
		err = endpoint.Unprocessable(fmt.Sprintf(
			"You already have %d open merge requests from forks into this project. Close one of them first, or ask for the Developer role.", maxFromOutsider))
	}
	return err
}
