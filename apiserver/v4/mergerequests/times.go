package mergerequests

import (
	"context"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// timeTable lists the endpoints about the estimated and the spent time of a merge request.
func (f *Family) timeTable() endpoint.Table {
	return item.Timekeeping[item.MergeRequest]{Kind: f.items.MergeRequests(), Write: auth.UpdateMergeRequests, Update: f.setTimes}.Table()
}

// setTimes changes the times of a merge request.
func (f *Family) setTimes(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], change func(estimate, spent *int64) error) (item.TimeStats, error) {
	m, err := f.Activity.MergeRequests.Update(ctx, s.Scope.Project.UID, s.Record.IID, func(m *mergerequest.MergeRequest) error {
		return change(&m.Estimate, &m.Spent)
	})
	if err != nil {
		return item.TimeStats{}, answer(err)
	}
	did(ctx, "update", s.Scope, m)
	return item.Times(m.Estimate, m.Spent), nil
}
