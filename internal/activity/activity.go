// Package activity opens the activity database, with the stores of all its aggregates.
package activity

import (
	"context"
	"io/fs"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/draftnote"
	"github.com/forgeplane/forgeplane/internal/epic"
	"github.com/forgeplane/forgeplane/internal/iid"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/milestone"
	"github.com/forgeplane/forgeplane/internal/note"
	"github.com/forgeplane/forgeplane/internal/pipeline"
	"github.com/forgeplane/forgeplane/internal/reaction"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/internal/revision"
	"github.com/forgeplane/forgeplane/internal/runner"
	"github.com/forgeplane/forgeplane/internal/schedule"
	"github.com/forgeplane/forgeplane/internal/stateevent"
	"github.com/forgeplane/forgeplane/internal/storagemove"
	"github.com/forgeplane/forgeplane/internal/subscription"
	"github.com/forgeplane/forgeplane/internal/tokenuse"
	"github.com/forgeplane/forgeplane/internal/watermark"
)

// Stores are the activity database, and the stores of its aggregates. Add new aggregates here, and to the table of aggregates.
type Stores struct {
	Database      *database.DB
	Subscriptions Subscriptions
	Uses          Uses
	Written       *watermark.Written
	Moves         *storagemove.History
	Containers    *record.Store
	Milestones    *milestone.Store
	Issues        *issue.Store
	MergeRequests *mergerequest.Store
	Epics         *epic.Store
	Notes         *note.Store
	DraftNotes    *draftnote.Store
	Reactions     *reaction.Store
	StateEvents   *stateevent.Store
	Revisions     *revision.Store
	Pipelines     *pipeline.Store
	Runners       *runner.Store
	Schedules     *schedule.Store

	swept []swept
}

// Subscriptions are the users who are notified about a subject, such as a label. A subscription.Store implements it.
type Subscriptions interface {
	// Subscribe and Unsubscribe report whether they changed anything.
	Subscribe(ctx context.Context, u database.User, s database.Subject) (changed bool, err error)
	Unsubscribe(ctx context.Context, u database.User, s database.Subject) (changed bool, err error)
	// Subscribed returns the UIDs of the subjects of a kind that a user is subscribed to.
	Subscribed(ctx context.Context, u database.User, kind string) (sets.Set[types.UID], error)
	Move(ctx context.Context, from, to database.Subject) error
	Remove(ctx context.Context, s database.Subject) error
}

// Uses are the times at which tokens were last used. A tokenuse.Store implements it.
type Uses interface {
	tokenuse.Reader
	tokenuse.Writer
}

// aggregate is a part of the activity database. Its open sets the store of the aggregate, and returns the rows that belong to declared objects.
type aggregate struct {
	migrations func() fs.FS
	open       func(s *Stores, c clock.PassiveClock) []swept
}

var aggregates = []aggregate{
	{subscription.Migrations, func(s *Stores, c clock.PassiveClock) []swept {
		a := subscription.New(s.Database, c)
		s.Subscriptions = a
		return []swept{rows[*v1alpha1.Label](subscription.KindLabel, a.Subjects())}
	}},
	{tokenuse.Migrations, func(s *Stores, _ clock.PassiveClock) []swept {
		a := tokenuse.New(s.Database)
		s.Uses = a
		return []swept{
			rows[*v1alpha1.AccessToken](tokenuse.KindAccessToken, a.Subjects()),
			rows[*v1alpha1.BotToken](tokenuse.KindBotToken, a.Subjects()),
			rows[*v1alpha1.TriggerToken](tokenuse.KindTriggerToken, a.Subjects()),
		}
	}},
	{watermark.Migrations, func(s *Stores, c clock.PassiveClock) []swept {
		s.Written = watermark.NewWritten(s.Database, c)
		return nil
	}},
	{job.Migrations, func(*Stores, clock.PassiveClock) []swept { return nil }},
	{storagemove.Migrations, func(s *Stores, _ clock.PassiveClock) []swept {
		s.Moves = storagemove.NewHistory(s.Database)
		return nil
	}},
	{record.Migrations, func(s *Stores, c clock.PassiveClock) []swept {
		s.Containers = record.New(s.Database, c)
		tasks := job.NewQueue(s.Database, job.QueueOptions{Name: registry.DeletionQueue})
		move := func(ctx context.Context, from, to database.Subject) error {
			return s.Containers.Adopt(ctx, from.UID, to.ID, to.UID)
		}
		return []swept{{kind: record.KindProject, having: knownOrRetained, rows: registry.Leftovers(s.Containers, tasks), images: true, move: move}}
	}},
	// The numbers move before the items that have them.
	{iid.Migrations, func(s *Stores, _ clock.PassiveClock) []swept {
		return places(iid.Subjects(s.Database, iid.Items{
			"milestone": (*milestone.Milestone)(nil), issue.Kind: (*issue.Issue)(nil), mergerequest.Kind: (*mergerequest.MergeRequest)(nil),
			pipeline.Kind: (*pipeline.Pipeline)(nil),
		}))
	}},
	{milestone.Migrations, func(s *Stores, c clock.PassiveClock) []swept {
		s.Milestones = milestone.New(s.Database, c)
		return places(s.Milestones.Subjects(), "title")
	}},
	{issue.Migrations, func(s *Stores, c clock.PassiveClock) []swept {
		s.Issues = issue.New(s.Database, c)
		return append(places(s.Issues.Subjects()), rows[*v1alpha1.Label](subscription.KindLabel, s.Issues.Labels()))
	}},
	{mergerequest.Migrations, func(s *Stores, c clock.PassiveClock) []swept {
		s.MergeRequests = mergerequest.New(s.Database, c)
		closed := func(ctx context.Context, m mergerequest.MergeRequest) error {
			return s.RecordState(ctx, m.In, m.Item(), stateevent.Closed, database.User{}, m.ClosedAt)
		}
		return append(places(s.MergeRequests.Subjects(closed)), rows[*v1alpha1.Label](subscription.KindLabel, s.MergeRequests.Labels()))
	}},
	{epic.Migrations, func(s *Stores, c clock.PassiveClock) []swept {
		s.Epics = epic.New(s.Database, c)
		return append(places(s.Epics.Subjects()), rows[*v1alpha1.Label](subscription.KindLabel, s.Epics.Labels()))
	}},
	{note.Migrations, func(s *Stores, c clock.PassiveClock) []swept {
		s.Notes = note.New(s.Database, c)
		return places(s.Notes.Subjects())
	}},
	{draftnote.Migrations, func(s *Stores, _ clock.PassiveClock) []swept {
		s.DraftNotes = draftnote.New(s.Database)
		return places(s.DraftNotes.Subjects())
	}},
	{reaction.Migrations, func(s *Stores, c clock.PassiveClock) []swept {
		s.Reactions = reaction.New(s.Database, c)
		return places(s.Reactions.Subjects())
	}},
	{stateevent.Migrations, func(s *Stores, _ clock.PassiveClock) []swept {
		s.StateEvents = stateevent.New(s.Database)
		return places(s.StateEvents.Subjects())
	}},
	{pipeline.Migrations, func(s *Stores, c clock.PassiveClock) []swept {
		s.Pipelines = pipeline.New(s.Database, c)
		return slices.Concat(places(s.Pipelines.ResourceSubjects()), places(s.Pipelines.DeploymentSubjects()), places(s.Pipelines.JobSubjects()), places(s.Pipelines.Subjects()))
	}},
	// The changes come after the items, because triggers on the tables of the items write them.
	{revision.Migrations, func(s *Stores, _ clock.PassiveClock) []swept {
		s.Revisions = revision.New(s.Database)
		return nil
	}},
	{schedule.Migrations, func(s *Stores, c clock.PassiveClock) []swept {
		s.Schedules = schedule.New(s.Database, c)
		return places(s.Schedules.Subjects())
	}},
	{runner.Migrations, func(s *Stores, c clock.PassiveClock) []swept {
		s.Runners = runner.New(s.Database, c)
		// A project or group that takes over another one keeps its own registration token, which subject_kind stands for.
		return append(places(s.Runners.Subjects(), "runner_id"), places(s.Runners.Registrations(), "subject_kind")...)
	}},
}

// Open opens the activity database with a name, as database.Open does. The caller closes it.
func Open(ctx context.Context, name string, c clock.PassiveClock) (s Stores, err error) {
	migrations := make([]fs.FS, len(aggregates))
	for i, a := range aggregates {
		migrations[i] = a.migrations()
	}
	if s.Database, err = database.Open(ctx, name, migrations...); err != nil {
		return s, err
	}
	for _, a := range aggregates {
		s.swept = append(s.swept, a.open(&s, c)...)
	}
	return s, nil
}
