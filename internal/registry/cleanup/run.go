package cleanup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
)

// Root names the repository with the path of its project.
const Root = "."

// MaxTags is the maximum number of tags that a dry run names.
const MaxTags = 100

// repositoriesAtOnce is the number of records of repositories that are read at once.
const repositoriesAtOnce = 100

// Run is one run of a cleanup.
type Run struct {
	// ID names the run. A run with the same ID goes on where an earlier attempt has ended, in any process.
	ID string
	// Due is the time at which the run became due. Interval counts from there if the run begins soon after, so that an hourly schedule is not late.
	Due time.Time
	// Project is the project whose repositories are cleaned up.
	Project types.UID
	// Repository is the part of the repository's name that follows the path of the project, or Root; empty for all repositories.
	Repository string
	Policy     *Policy
	// DryRun finds out what would be deleted, and deletes nothing. It does not count as a cleanup.
	DryRun bool
	// Deleted is told which tags of a repository the run has deleted; it may be nil.
	Deleted func(repository string, tags []string)
}

// Progress is the progress of a run, in all of its attempts.
type Progress struct {
	Repositories int64
	// Selected is the number of tags that the run deletes, or would delete. Kept is the number of other tags.
	Selected, Deleted, Kept, Failed int64
	// Unreadable is the number of repositories that could not be read.
	Unreadable int64
	// Tags are the first tags that a dry run would delete, as repository:tag, at most MaxTags.
	Tags []string
	// Failure is the error of the first tag, or the first repository, that failed.
	Failure error
	// Removed is the number of tags that this attempt has deleted.
	Removed int64
}

// HeldError says that a repository was cleaned up less than an Interval ago.
type HeldError struct {
	Repository string
	// Until is the time at which the next cleanup of the repository can begin.
	Until time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("the container repository %s was cleaned up less than an hour ago", shown(e.Repository))
}

// shown returns how a repository is named to users.
func shown(name string) string { return cmp.Or(name, Root) }

// Cleaner cleans up the repositories of a registry. It is safe for concurrent use.
type Cleaner struct {
	registry *registry.Registry
	clock    clock.PassiveClock
}

// New returns the cleaner of a registry.
func New(r *registry.Registry, c clock.PassiveClock) *Cleaner { return &Cleaner{r, c} }

// Clean does the work of a run, and tells report now and then what it has done. Call it again after an error: it goes on. The error is a
// HeldError if nothing is left but repositories that were cleaned up less than an Interval ago. Tags that cannot be deleted, and repositories that
// cannot be read, cause no error: the Progress counts them. A repository that is being deleted is left out.
func (c *Cleaner) Clean(ctx context.Context, r Run, report func(Progress)) (Progress, error) {
	a := &attempt{Cleaner: c, run: r, report: report}
	var err error
	if a.begun, err = c.registry.Records.Cleanups(ctx, r.ID); err != nil {
		return Progress{}, err
	}
	var held *HeldError
	var failed error
	err = c.each(ctx, r, func(of record.Repository) error {
		err := a.clean(ctx, of)
		h := (*HeldError)(nil)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, record.ErrDeleted), errors.Is(err, record.ErrNotFound):
			return nil
		case errors.As(err, &h):
			if held == nil || h.Until.Before(held.Until) {
				held = h
			}
			return nil
		}
		failed = cmp.Or(failed, err) // the others can go on
		return nil
	})
	if err = cmp.Or(err, failed); err == nil && held != nil {
		err = held
	}
	return a.total(), err
}

// each calls do with each repository of a run.
func (c *Cleaner) each(ctx context.Context, r Run, do func(record.Repository) error) error {
	if r.Repository != "" {
		name := r.Repository
		if name == Root {
			name = ""
		}
		found, err := c.registry.Records.Find(ctx, r.Project, name)
		if errors.Is(err, record.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return do(found)
	}
	var all []record.Repository
	for more := true; more; {
		page, _, err := c.registry.Records.Of(ctx, []types.UID{r.Project}, len(all), repositoriesAtOnce)
		if err != nil {
			return err
		}
		all, more = append(all, page...), len(page) == repositoriesAtOnce
	}
	for _, found := range all {
		if err := do(found); err != nil {
			return err
		}
	}
	return nil
}

// outcome is the recorded result of a run in one repository.
type outcome struct {
	// Decided says that the tags to delete have been counted.
	Decided bool `json:"decided"`
	// Done says that nothing is left to do.
	Done     bool  `json:"done"`
	Selected int64 `json:"selected"`
	Deleted  int64 `json:"deleted"`
	Kept     int64 `json:"kept"`
	failed   int64
}

// attempt is an attempt of a run.
type attempt struct {
	*Cleaner
	run    Run
	report func(Progress)
	// begun has the outcomes that were recorded when the attempt began, by the ids of repositories.
	begun map[int64]record.Cleanup
	// ended is the sum of the repositories that the attempt has left, and current what it does in the present one.
	ended   Progress
	current outcome
}

// total returns the progress.
func (a *attempt) total() Progress {
	p := a.ended
	p.Selected += a.current.Selected
	p.Deleted += a.current.Deleted
	p.Kept += a.current.Kept
	p.Failed += a.current.failed
	return p
}

// leave adds the present repository to the sum.
func (a *attempt) leave() {
	a.ended, a.current = a.total(), outcome{}
	a.report(a.ended)
}

// clean cleans up one repository.
func (a *attempt) clean(ctx context.Context, of record.Repository) error {
	if of.Status != "" {
		return record.ErrDeleted
	}
	since := a.clock.Now()
	if !a.run.DryRun {
		begun, err := a.begin(ctx, of)
		if err != nil {
			return err
		}
		// Tags that are pushed from here on stay, also if another process goes on later.
		since = begun.Began
		if begun.Progress != "" {
			err = json.Unmarshal([]byte(begun.Progress), &a.current)
		}
		if err != nil {
			a.current = outcome{}
			return a.unreadable(ctx, fmt.Errorf("reading the progress of the cleanup of container repository %d: %w", of.ID, err))
		}
	}
	defer a.leave()
	if a.current.Done {
		a.ended.Repositories++
		return nil
	}
	images, err := a.registry.Images(ctx, of)
	var names []string
	if err == nil {
		names, err = images.Tags(ctx)
	}
	if err != nil {
		return a.unreadable(ctx, err)
	}
	a.ended.Repositories++
	selected, all, err := a.choose(ctx, images, names, since)
	if err != nil {
		return err
	}
	if a.run.DryRun {
		a.foresee(of.Name, selected, all)
		return nil
	}
	return a.remove(ctx, of, images, selected, all, since)
}

// unreadable counts a repository that cannot be read. It returns an error if no other can be read either.
func (a *attempt) unreadable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if down := a.registry.Check(ctx); down != nil {
		return down
	}
	a.ended.Unreadable++
	a.ended.Failure = cmp.Or(a.ended.Failure, err)
	return nil
}

// punctual is the maximum delay with which a run counts as having begun in time.
const punctual = 2 * time.Minute

// begin begins the run in a repository, unless it has begun there.
func (a *attempt) begin(ctx context.Context, of record.Repository) (record.Cleanup, error) {
	if begun, ok := a.begun[of.ID]; ok {
		return begun, nil
	}
	now, at := a.clock.Now(), a.run.Due
	free := of.Cleanup.Add(Interval)
	if free.After(at) {
		at = free
	}
	if at.After(now) {
		return record.Cleanup{}, &HeldError{of.Name, at.UTC()}
	}
	if now.Sub(at) > punctual {
		at = now
	}
	begun, ok, err := a.registry.Records.BeginCleanup(ctx, of.ID, a.run.ID, at, Interval)
	if err != nil || ok {
		return begun, err
	}
	if of, err = a.registry.Records.Get(ctx, of.ID); err != nil {
		return begun, err
	}
	return begun, &HeldError{of.Name, of.Cleanup.Add(Interval)} // another run has just begun there
}

// choose returns the tags to delete, and how many tags there are.
func (a *attempt) choose(ctx context.Context, images *registry.Images, names []string, now time.Time) (selected []Tag, all int, err error) {
	all = len(names)
	var matching []string
	for _, name := range names {
		if ctx.Err() != nil {
			return nil, 0, context.Cause(ctx)
		}
		if a.run.Policy.Matches(name) {
			matching = append(matching, name)
		}
	}
	tags, failures := make([]Tag, len(matching)), make([]error, len(matching))
	if err := registry.Parallel(ctx, matching, func(ctx context.Context, i int, name string) {
		tags[i], failures[i] = a.read(ctx, images, name)
	}); err != nil {
		return nil, 0, err
	}
	known := tags[:0]
	for i, t := range tags {
		switch err := failures[i]; {
		case errors.Is(err, registry.ErrNoTag): // it has just gone
			all--
		case err != nil:
			a.fail(err)
		default:
			known = append(known, t)
		}
	}
	if a.current.failed > 0 {
		if err := a.registry.Check(ctx); err != nil {
			return nil, 0, err
		}
	}
	return a.run.Policy.Select(known, now), all, nil
}

func (a *attempt) fail(err error) {
	a.current.failed++
	if a.ended.Failure == nil {
		a.ended.Failure = err
	}
}

// read reads a tag, with its time if the policy needs it.
func (a *attempt) read(ctx context.Context, images *registry.Images, name string) (Tag, error) {
	if a.run.Policy.Dated() {
		d, err := images.Detail(ctx, name)
		if err == nil && d.Created != nil {
			return Tag{name, d.Digest, *d.Created}, nil
		}
		if err == nil {
			return Tag{Name: name, Digest: d.Digest}, nil
		}
		if !errors.Is(err, registry.ErrNoTag) {
			return Tag{}, err
		}
	}
	d, err := images.Digest(ctx, name)
	if errors.Is(err, registry.ErrNoTag) && !a.run.DryRun {
		if _, failed := images.RemoveRest(ctx, name); failed != nil {
			err = failed
		}
	}
	return Tag{Name: name, Digest: d}, err
}

// foresee reports what would be deleted.
func (a *attempt) foresee(repository string, selected []Tag, all int) {
	a.current.Selected, a.current.Kept = int64(len(selected)), int64(all-len(selected))-a.current.failed
	for _, t := range selected[:min(len(selected), MaxTags-len(a.ended.Tags))] {
		a.ended.Tags = append(a.ended.Tags, shown(repository)+":"+t.Name)
	}
}
