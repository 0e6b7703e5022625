package launch

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/ci"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

const (
	// maxRefs is the maximum number of pipelines for one push.
	maxRefs = 4
	// PushQueue is the name of the queue of pushes that may need a pipeline.
	PushQueue = "pipeline-pushes"
)

// Pushes creates pipelines for pushes, in the background. A process that is killed before it has added a task loses the event.
type Pushes struct {
	*Launcher
	tasks family.Tasks
}

// NewPushes returns a Pushes with a queue that runs Create.
func NewPushes(l *Launcher) *Pushes {
	p := &Pushes{Launcher: l}
	p.tasks = l.Queue(job.QueueOptions{Name: PushQueue, Limits: fair.Halves(concurrentLaunches), Run: p.Create})
	return p
}

// push is the payload of a task.
type push struct {
	Project database.Subject `json:"project"`
	Update  update.Ref       `json:"update"`
	By      database.User    `json:"by"`
}

// Written adds a task for each of the first branches and tags of a write of refs. Writes that no user made start no pipeline.
func (p *Pushes) Written(ctx context.Context, e change.Event) error {
	if e.By.UID == "" {
		return nil
	}
	var pushed []update.Ref
	for _, u := range e.Updates {
		name, _, ok := branchOrTag(u.Name)
		if ok && utf8.ValidString(name) && !u.Deletes() && len(pushed) < maxRefs {
			pushed = append(pushed, u)
		}
	}
	if len(pushed) == 0 {
		return nil
	}
	project, err := catalog.Get[*v1alpha1.Project](ctx, p.Catalog, e.Project.Namespace, e.Project.Name)
	if err != nil {
		return catalog.IgnoreNotFound(err)
	}
	for _, u := range pushed {
		in := database.Subject{Kind: database.KindProject, ID: project.RESTID(), UID: project.UID}
		payload, failed := json.Marshal(push{Project: in, Update: u, By: e.By})
		if failed == nil {
			failed = p.tasks.Add(ctx, job.Task{Key: rand.Text(), Tenant: p.Repositories.Tenant(project), Payload: payload})
		}
		err = errors.Join(err, failed)
	}
	return err
}

// branchOrTag returns the name of a branch or tag.
func branchOrTag(full string) (name string, tag, ok bool) {
	if name, ok = strings.CutPrefix(full, ref.Branches); ok {
		return name, false, true
	}
	name, ok = strings.CutPrefix(full, ref.Tags)
	return name, true, ok
}

// Create runs a task of the queue. It does nothing if the project, the user or the commit is gone, or the user is blocked.
func (p *Pushes) Create(ctx context.Context, a job.Attempt, _ func(string)) error {
	var of push
	if err := json.Unmarshal(a.Payload, &of); err != nil {
		return fmt.Errorf("reading a push: %w", err)
	}
	return ignoreGone(p.create(ctx, of, a.Key))
}

// ignoreGone returns nil for an error that says that the project, the user or the commit of an event is gone, or that the user is blocked.
func ignoreGone(err error) error {
	blocked := errors.As(err, new(*endpoint.Error))
	if blocked || errors.Is(err, catalog.ErrNotFound) || errors.Is(err, git.ErrNotFound) || ref.Missing(err) {
		return nil
	}
	return err
}

func (p *Pushes) create(ctx context.Context, of push, origin string) error {
	scope, err := p.Guard.Project(ctx, fmt.Sprint(of.Project.ID))
	if err != nil || scope.Project.UID != of.Project.UID || scope.Project.Spec.Archived {
		return err
	}
	r := Request{In: scope, Source: SourcePush, SHA: of.Update.New, Origin: origin}
	if r.By, err = p.Guard.Known(ctx, of.By); err != nil {
		return err
	}
	r.Ref, r.Tag, _ = branchOrTag(of.Update.Name)
	repo, err := p.Repositories.Content(ctx, scope.Project)
	if err != nil {
		return err
	}
	if r.Tag { // it can be a tag object
		r.SHA, err = refs.Commit(ctx, repo, r.Ref)
	} else if !of.Update.Creates() {
		if _, err = repo.ReadCommit(ctx, of.Update.Old); err == nil {
			r.Before = of.Update.Old
		} else if errors.Is(err, git.ErrObjectNotFound) {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	return p.push(ctx, r, repo)
}

// skipping matches a commit message that wants no pipeline.
var skipping = regexp.MustCompile(`(?i)\[(ci[ _-]skip|skip[ _-]ci)\]`)

// push creates the pipeline of a push. If the configuration has mistakes, the pipeline has failed with them. If the commit message wants no
// pipeline, it is skipped.
func (p *Pushes) push(ctx context.Context, r Request, repo *git.Repository) error {
	head, err := repo.ReadCommit(ctx, r.SHA)
	if err != nil {
		return err
	}
	row := r.row()
	if skipping.MatchString(head.Message) {
		if _, err = p.plan(ctx, r, repo, head); err == nil {
			row.Status = pipeline.Skipped
			err = p.Activity.Pipelines.Create(ctx, &row, nil, nil)
		}
	} else if row, err = p.launchOrFail(ctx, r, repo, head); err == nil {
		_, err = p.Activity.Pipelines.CancelRedundant(ctx, row)
	}
	if err = ignorePlan(err); err != nil || r.Tag || skipping.MatchString(head.Message) {
		return err
	}
	return p.mergeRequests(ctx, r, repo)
}

// ignorePlan returns nil for an error that says that an event has no pipeline: the configuration does not exist, has mistakes or wants none, or the
// pipeline exists.
func ignorePlan(err error) error {
	if errors.Is(err, ErrNoConfiguration) || errors.Is(err, ci.ErrFiltered) || errors.Is(err, pipeline.ErrExists) || errors.As(err, new(*ConfigurationError)) {
		return nil
	}
	return err
}
