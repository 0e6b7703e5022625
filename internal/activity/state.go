package activity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/note"
	"github.com/forgeplane/forgeplane/internal/stateevent"
)

// RecordState adds the state event and the system note of a change of the state of an item, in the transaction of the change.
func (s Stores) RecordState(ctx context.Context, in database.Subject, of database.Item, became stateevent.State, by database.User, at time.Time) error {
	return s.recordState(ctx, stateevent.Event{In: in, Of: of, State: became, User: by, Created: at}, string(became))
}

// CloseIssue closes an issue of a project if it is open, because a merge request was merged there, with its state event and system note. It is part of
// the transaction of the merge.
func (s Stores) CloseIssue(ctx context.Context, iid int64, m mergerequest.MergeRequest) error {
	i, err := s.Issues.Update(ctx, m.In.UID, iid, func(i *issue.Issue) error {
		if !i.Close(m.Merger, m.MergedAt) {
			return errUnchanged
		}
		return nil
	})
	if errors.Is(err, errUnchanged) || errors.Is(err, issue.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.recordState(ctx, stateevent.Event{
		In: i.In, Of: i.Item(), State: stateevent.Closed, User: m.Merger, Created: m.MergedAt, MergeRequestID: m.ID,
	}, fmt.Sprintf("closed via merge request !%d", m.IID))
}

// errUnchanged says that an issue is closed already.
var errUnchanged = errors.New("the issue is closed")

func (s Stores) recordState(ctx context.Context, e stateevent.Event, text string) error {
	if err := s.StateEvents.Add(ctx, &e); err != nil {
		return err
	}
	return s.Notes.Create(ctx, &note.Note{In: e.In, On: e.Of, Individual: true, System: true, Body: text, Author: e.User, Created: e.Created})
}
