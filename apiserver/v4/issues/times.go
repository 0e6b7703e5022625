package issues

import (
	"context"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/issue"
)

// timeTable lists the endpoints about the estimated and the spent time of an issue.
func (f *Family) timeTable() endpoint.Table {
	return item.Timekeeping[item.Issue]{Kind: f.items.Issues(), Write: auth.AdminIssues, Update: f.setTimes}.Table()
}

// setTimes changes the times of an issue.
func (f *Family) setTimes(ctx context.Context, s auth.ProjectRecord[item.Issue], change func(estimate, spent *int64) error) (item.TimeStats, error) {
	i, err := f.Activity.Issues.Update(ctx, s.Scope.Project.UID, s.Record.IID, func(i *issue.Issue) error { return change(&i.Estimate, &i.Spent) })
	if err != nil {
		return item.TimeStats{}, answer(err)
	}
	did(ctx, "update", s.Scope, i)
	return item.Times(i.Estimate, i.Spent), nil
}
