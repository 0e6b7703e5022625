package launch

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// maxDeployed is the maximum number of commits of a deployment among which merge requests are looked for, the newest first.
const maxDeployed = 10_000

// Deployed runs a task of pipeline.DeployQueue: it records a deployment, and the merge requests that it has brought to the environment.
func (l *Launcher) Deployed(ctx context.Context, a job.Attempt, _ func(string)) error {
	id, err := strconv.ParseInt(a.Key, 10, 64)
	if err != nil {
		return fmt.Errorf("reading the id of a job: %w", err)
	}
	d, before, err := l.Activity.Pipelines.Deploy(ctx, id)
	if errors.Is(err, pipeline.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	in, err := l.Guard.Project(ctx, fmt.Sprint(d.In.ID))
	if err != nil || in.Project.UID != d.In.UID {
		return catalog.IgnoreNotFound(err)
	}
	repo, err := l.Repositories.Content(ctx, in.Project)
	if ref.Missing(err) {
		return nil
	} else if err != nil {
		return err
	}
	if _, err := repo.ReadCommit(ctx, d.SHA); ref.Missing(err) {
		return nil
	} else if err != nil {
		return err
	}
	of := history.Log{Tips: []string{d.SHA}, Limit: maxDeployed}
	if before != "" {
		if _, err := repo.ReadCommit(ctx, before); err == nil {
			of.Without = []string{before}
		} else if !errors.Is(err, git.ErrObjectNotFound) {
			return err
		}
	}
	found, _, err := history.List(ctx, repo, of)
	if err != nil {
		return fmt.Errorf("listing the commits of a deployment: %w", err)
	}
	commits := make([]string, len(found))
	for i, c := range found {
		commits[i] = c.ID
	}
	to := mergerequest.Deployment{Environment: d.Environment, Tier: d.Tier, JobID: d.JobID, At: d.Deployed}
	return l.Activity.MergeRequests.Deployed(ctx, d.In.UID, to, commits)
}

// tiers are the tiers of environments by their names, in the order in which they are tried.
var tiers = []struct {
	name *regexp.Regexp
	tier string
}{
	{regexp.MustCompile(`(?i)(dev|review|trunk)`), "development"},
	{regexp.MustCompile(`(?i)(test|tst|int|ac(ce|)pt|qa|qc|control|quality)`), "testing"},
	{regexp.MustCompile(`(?i)(sta?g|mode?l|pre|demo|non)`), "staging"},
	{regexp.MustCompile(`(?i)(pro?d|live)`), mergerequest.Production},
}

// tierOf returns the tier of an environment: the declared one, or one that follows from the name.
func tierOf(e config.Environment) string {
	if e.Tier != "" {
		return e.Tier
	}
	for _, t := range tiers {
		if t.name.MatchString(e.Name) {
			return t.tier
		}
	}
	return "other"
}
