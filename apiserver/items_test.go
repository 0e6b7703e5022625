package apiserver

import (
	"archive/zip"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/uptrace/bun"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/activity"
	"github.com/forgeplane/forgeplane/internal/artifact"
	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/draftnote"
	"github.com/forgeplane/forgeplane/internal/epic"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/mergecheck"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/milestone"
	"github.com/forgeplane/forgeplane/internal/note"
	"github.com/forgeplane/forgeplane/internal/pipeline"
	"github.com/forgeplane/forgeplane/internal/reaction"
	"github.com/forgeplane/forgeplane/internal/runner"
	"github.com/forgeplane/forgeplane/internal/schedule"
	"github.com/forgeplane/forgeplane/internal/stateevent"
)

// itemTables are the tables that reset restores.
var itemTables = []string{
	"iids", "issues", "issue_labels", "issue_assignees", "issue_subscriptions", "epics", "epic_labels", "notes", "reactions", "state_events", "milestones",
	"merge_requests", "merge_request_labels", "merge_request_assignees", "merge_request_reviewers", "merge_request_approvals",
	"merge_request_subscriptions", "merge_request_issues", "merge_request_versions", "merge_request_approval_rules", "merge_request_deployments", "merge_request_approvers",
	"draft_notes", "pipelines", "pipeline_jobs", "pipeline_variables", "deployments", "pipeline_outputs", "pipeline_resources", "pipeline_logs", "pipeline_artifacts", "pipeline_schedules", "pipeline_schedule_variables", "runners", "runner_places", "runner_registrations",
}

// items are issue 1 and merge request 1 of the project, and epic 1 of the group. Each has a note of each user and one of the author. All users have
// reacted to each item and to the note of its author, and each item was closed once. Merge request 1 has a version and an approval rule, and all users
// have approved merge request 2, whose merge waits for pipeline 1. Merge request 3 is from the branch ci. All users have a draft note on merge request 1. Milestone 1 is of the project, and milestone 2 of the group. Pipeline 1
// of the branch topic has job 1, which has succeeded, job 2, which is pending, the manual job 3, and job 4, which is running. Pipeline 2
// of the branch main has job 5, build, and has succeeded. Jobs 1 and 5 have an archive with notes.txt. Schedule 1
// of the branch ci has the variable HOST. Runner 1 is of the project and of the other one.
type items struct {
	t *testing.T
	// conn has a copy of the initial state attached, and version is the version of the data after the last reset.
	conn    *sql.Conn
	version int
}

func newItems(t *testing.T, stores activity.Stores, kept *artifact.Store, objects []client.Object, checker *mergecheck.Checker) *items {
	t.Helper()
	app := project(objects, "app")
	in := database.Subject{Kind: database.KindProject, ID: projectID, UID: app.UID}
	var users []database.User
	var above database.Subject
	for _, o := range objects {
		switch o := o.(type) {
		case *v1alpha1.User:
			users = append(users, database.User{ID: o.Spec.ID, UID: o.UID})
		case *v1alpha1.Group:
			if o.Spec.ID == groupID {
				above = database.Subject{Kind: database.KindGroup, ID: groupID, UID: o.UID}
			}
		}
	}
	author := users[slices.IndexFunc(users, func(u database.User) bool { return u.ID == targetID })]
	i, e := issue.Issue{In: in, Title: "Broken", Type: "issue", Author: author}, epic.Epic{In: above, Title: "Big", Author: author}
	noted, notedAbove := note.Note{In: in, Body: "Hello", Author: author, Discussion: "1"}, note.Note{In: above, Body: "Hello", Author: author, Discussion: "2"}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	m := mergerequest.MergeRequest{In: in, Source: in, SourceBranch: "signed", TargetBranch: "main", Title: "Signed", Author: author}
	reviewed := mergerequest.MergeRequest{In: in, Source: in, SourceBranch: "signed", TargetBranch: "topic", Title: "Improve", Author: author}
	configured := mergerequest.MergeRequest{In: in, Source: in, SourceBranch: "ci", TargetBranch: "main", Title: "Test", Author: author}
	discussed := note.Note{In: in, Body: "Hello", Author: author, Discussion: "3", Resolvable: true}
	var file string
	check(stores.Database.Atomically(t.Context(), "adding items", func(ctx context.Context, db bun.IDB) error {
		for _, of := range []database.Subject{in, above} {
			check(stores.Milestones.Create(ctx, &milestone.Milestone{In: of, Title: "Milestone of the " + of.Kind, State: milestone.Active}))
		}
		check(stores.Issues.Create(ctx, &i))
		check(stores.Issues.Create(ctx, &issue.Issue{In: in, Title: "Slow", Type: "issue", Author: author}))
		check(stores.Epics.Create(ctx, &e))
		check(stores.MergeRequests.Create(ctx, &m))
		noted.On, notedAbove.On = i.Item(), e.Item()
		check(stores.MergeRequests.Create(ctx, &reviewed))
		check(stores.MergeRequests.Create(ctx, &configured))
		check(stores.MergeRequests.SaveApprovalRule(ctx, &mergerequest.ApprovalRule{MergeRequestID: m.ID, Name: "Rule", Required: 1}))
		noted.On, notedAbove.On, discussed.On = i.Item(), e.Item(), m.Item()
		check(stores.Notes.Create(ctx, &noted))
		check(stores.Notes.Create(ctx, &notedAbove))
		check(stores.Notes.Create(ctx, &discussed))
		for n, to := range []database.Item{i.Item(), noted.Item(), e.Item(), notedAbove.Item(), m.Item(), discussed.Item()} {
			of := []database.Subject{in, above, in}[n/2]
			for _, u := range users {
				check(stores.Reactions.Add(ctx, &reaction.Reaction{ID: reactionID(reactedTo[n], u.ID), In: of, To: to, Name: "heart", User: u}))
			}
			if to.Kind != note.Kind {
				check(stores.StateEvents.Add(ctx, &stateevent.Event{In: of, Of: to, State: stateevent.Closed, User: author, Created: noon}))
			}
		}
		for n, on := range []database.Item{i.Item(), e.Item(), m.Item()} {
			for _, u := range users {
				check(stores.Notes.Create(ctx, &note.Note{
					ID: ownNoteID(n, u.ID), In: []database.Subject{in, above, in}[n], On: on, Body: "Mine", Author: u, Discussion: ownDiscussions[n],
				}))
			}
		}
		for _, u := range users {
			check(stores.DraftNotes.Create(ctx, &draftnote.Draft{ID: draftNoteID(u.ID), In: in, On: m.Item(), Author: u, Body: "Mine"}))
			_, err := stores.MergeRequests.Approve(ctx, reviewed.ID, u)
			check(err)
		}
		return db.NewSelect().ColumnExpr("file").TableExpr("pragma_database_list").Where("name = 'main'").Scan(ctx, &file)
	}))
	for _, open := range []mergerequest.MergeRequest{m, reviewed, configured} {
		now, err := checker.Refresh(t.Context(), open)
		check(err)
		if open.ID == reviewed.ID {
			addPipelines(t, stores.Pipelines, kept, pipeline.Pipeline{In: in, SHA: now.Start, Source: "push", User: author})
			check(stores.MergeRequests.Wait(t.Context(), now, 1, mergerequest.AutoMerge{User: author}))
			addSchedule(t, stores.Schedules, schedule.Schedule{In: in, Owner: author})
			other := database.Subject{Kind: database.KindProject, ID: otherProjectID, UID: project(objects, "other").UID}
			check(stores.Runners.Create(t.Context(), &runner.Runner{Type: runner.OfProject, RunUntagged: true, Tags: []string{}}, runnerToken, in, other))
			check(stores.Runners.ResetRegistration(t.Context(), in, registrationToken))
		}
	}
	conn, err := databasetest.SQL(t, file).Conn(t.Context())
	check(err)
	was := filepath.Join(t.TempDir(), "was.db")
	all := &items{t: t, conn: conn}
	all.exec("VACUUM INTO '" + was + "'")
	all.exec("ATTACH '" + was + "' AS was")
	all.watch()
	all.version = all.now()
	return all
}

// The tokens of runner 1 and of job 4, and that with which runners of the project register themselves.
const runnerToken, jobToken, registrationToken = "the-token-of-the-runner", "the-token-of-the-job", "the-registration-token"

// addPipelines adds pipeline 1, with a job that has succeeded, a pending one, a manual one and a running one, and pipeline 2, with a job that has succeeded.
func addPipelines(t *testing.T, s *pipeline.Store, kept *artifact.Store, like pipeline.Pipeline) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	create := func(branch string, names ...string) []*pipeline.Job {
		p, jobs := like, []*pipeline.Job{}
		p.Ref = branch
		for i, name := range names {
			j := &pipeline.Job{Name: name, Stage: "test", When: "on_success", Needs: []pipeline.Need{}, Tags: []string{}, Spec: &config.Job{}}
			if i == 2 {
				j.When = "manual"
			}
			jobs = append(jobs, j)
		}
		check(s.Create(t.Context(), &p, jobs, nil))
		_, err := s.Advance(t.Context(), p.ID)
		check(err)
		return jobs
	}
	take := func(j *pipeline.Job, token string) {
		_, err := s.Take(t.Context(), *j, 1, token)
		check(err)
	}
	archive := notesArchive(t)
	succeed := func(j *pipeline.Job) {
		take(j, pipeline.NewToken())
		a := pipeline.Artifact{JobID: j.ID, Type: pipeline.Archive, Format: "zip", Name: "artifacts.zip", Access: "all", Size: int64(len(archive))}
		check(kept.Add(t.Context(), &a, bytes.NewReader(archive)))
		_, err := s.Succeed(t.Context(), *j)
		check(err)
	}
	jobs := create("topic", "build", "lint", "deploy", "test")
	succeed(jobs[0])
	take(jobs[3], jobToken)
	succeed(create("main", "build")[0])
}

// addSchedule adds a schedule of the branch ci with a variable.
func addSchedule(t *testing.T, s *schedule.Store, of schedule.Schedule) {
	t.Helper()
	of.Description, of.Ref, of.Cron, of.Zone, of.Active = "Every night", "ci", "0 3 * * *", "UTC", true
	err := s.Create(t.Context(), &of)
	if err == nil {
		err = s.AddVariable(t.Context(), schedule.Variable{ScheduleID: of.ID, Key: "HOST", Value: "example.com", Type: "env_var"})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// notesArchive returns an archive with the file notes.txt.
func notesArchive(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	into, err := w.Create("notes.txt")
	if err == nil {
		_, err = into.Write([]byte("notes"))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// watch makes the database record in the table touched which of itemTables were written.
func (i *items) watch() {
	i.t.Helper()
	i.checkTables()
	i.exec("CREATE TABLE main.touched (name TEXT PRIMARY KEY)")
	for _, table := range itemTables {
		for _, write := range []string{"INSERT", "UPDATE", "DELETE"} {
			i.exec(fmt.Sprintf("CREATE TRIGGER main.touched_by_%[2]s_of_%[1]s AFTER %[2]s ON %[1]s BEGIN INSERT OR IGNORE INTO touched VALUES ('%[1]s'); END", table, write))
		}
	}
}

// checkTables fails if a table belongs to one of itemTables and is not one of them: the connection does not enforce foreign keys, so reset would leave its rows.
func (i *items) checkTables() {
	i.t.Helper()
	var belonging sql.NullString
	err := i.conn.QueryRowContext(i.t.Context(), `WITH item AS (SELECT value AS name FROM json_each('["`+strings.Join(itemTables, `","`)+`"]'))
		SELECT group_concat(DISTINCT t.name) FROM main.sqlite_master AS t, pragma_foreign_key_list(t.name) AS key
		WHERE t.type = 'table' AND key."table" IN (SELECT name FROM item) AND t.name NOT IN (SELECT name FROM item)`).Scan(&belonging)
	if err != nil || belonging.Valid {
		i.t.Fatalf("itemTables lacks %q: %v", belonging.String, err)
	}
}

// touched returns the tables of itemTables that were written since the last reset.
func (i *items) touched() (tables []string) {
	i.t.Helper()
	rows, err := i.conn.QueryContext(i.t.Context(), "SELECT name FROM main.touched")
	if err != nil {
		i.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var table string
		if err := rows.Scan(&table); err != nil {
			i.t.Fatal(err)
		}
		tables = append(tables, table)
	}
	if err := rows.Err(); err != nil {
		i.t.Fatal(err)
	}
	return tables
}

func (i *items) exec(statement string) {
	i.t.Helper()
	if _, err := i.conn.ExecContext(i.t.Context(), statement); err != nil {
		i.t.Fatalf("%s: %v", statement, err)
	}
}

// now returns the version of the data, which changes with each write of another connection.
func (i *items) now() (version int) {
	i.t.Helper()
	if err := i.conn.QueryRowContext(i.t.Context(), "PRAGMA main.data_version").Scan(&version); err != nil {
		i.t.Fatal(err)
	}
	return version
}

// writes returns whether something was written since the last reset, as a number.
func (i *items) writes() int {
	if i.now() != i.version {
		return 1
	}
	return 0
}

// reset restores the initial state.
func (i *items) reset() {
	i.t.Helper()
	if i.writes() == 0 {
		return
	}
	i.exec("BEGIN IMMEDIATE")
	for _, table := range i.touched() {
		i.exec(fmt.Sprintf("DELETE FROM main.%[1]s; INSERT INTO main.%[1]s SELECT * FROM was.%[1]s", table))
	}
	i.exec("DELETE FROM main.touched")
	i.exec("COMMIT")
	i.version = i.now()
}

// reactedTo are the items that have reactions, in the words of reactionID.
var reactedTo = []string{"issue", "note", "epic", "note on an epic", "merge request", "note on a merge request"}

const (
	reactionToNote             = "/projects/{id}/issues/{issue_iid}/notes/{note_id}/award_emoji/{award_id}"
	reactionToEpicNote         = "/groups/{id}/epics/{epic_id}/notes/{note_id}/award_emoji/{award_id}"
	reactionToMergeRequestNote = "/projects/{id}/merge_requests/{merge_request_iid}/notes/{note_id}/award_emoji/{award_id}"
)

// reactionID is the id of the reaction of a user to an item.
func reactionID(to string, user int64) int64 {
	return int64(10_000*(1+slices.Index(reactedTo, to))) + user
}

func reactionTo(to string, user int64) string { return strconv.FormatInt(reactionID(to, user), 10) }

// ownReaction is a sample about the reaction of the caller to an item.
func ownReaction(to string) sample {
	const key = "award_emoji/{award_id}"
	return sample{
		note: "their own", names: map[string]string{key: reactionTo(to, targetID)},
		own: map[string]func(int64) int64{key: func(user int64) int64 { return reactionID(to, user) }},
	}
}

// ownDiscussions are the discussions of the notes of all users on the issue, the epic and the merge request.
var ownDiscussions = []string{"mine", "mine-above", "mine-in-review"}

// ownNoteID is the id of the note of a user on the issue (0), the epic (1) or the merge request (2).
func ownNoteID(on int, user int64) int64 { return int64(10_000*(1+on)) + user }

// ownNote is a sample about the note of the caller on the issue (0), the epic (1) or the merge request (2).
func ownNote(on int, body string) sample {
	return sample{note: "their own", body: body, own: map[string]func(int64) int64{
		"notes/{note_id}": func(user int64) int64 { return ownNoteID(on, user) },
	}, names: map[string]string{"discussions/{discussion_id}": ownDiscussions[on]}}
}

const draftNote = "/projects/{id}/merge_requests/{merge_request_iid}/draft_notes/{draft_note_id}"

// draftNoteID is the id of the draft note of a user on merge request 1.
func draftNoteID(user int64) int64 { return 10_000 + user }

// targetDraftNote names the draft note of a user that no sample has as its caller.
var targetDraftNote = map[string]string{"draft_notes/{draft_note_id}": strconv.FormatInt(draftNoteID(targetID), 10)}

// ownDraftNote is a sample about the draft note of the caller.
func ownDraftNote(body string) sample {
	return sample{
		note: "their own", body: body, names: targetDraftNote, own: map[string]func(int64) int64{"draft_notes/{draft_note_id}": draftNoteID},
	}
}
