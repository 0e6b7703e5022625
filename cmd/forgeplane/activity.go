package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/internal/retained"
	"github.com/forgeplane/forgeplane/internal/storagemove"
	"github.com/forgeplane/forgeplane/internal/subscription"
	"github.com/forgeplane/forgeplane/internal/sweep"
	"github.com/forgeplane/forgeplane/internal/tokenuse"
	"github.com/forgeplane/forgeplane/internal/watermark"
)

// activityEnv is the environment variable with the URL of the activity database.
const activityEnv = "FORGEPLANE_ACTIVITY_DATABASE"

// activityDatabase is the location of the activity database.
type activityDatabase struct {
	// path is the path of a SQLite file.
	path string
	// urlFile is a file with the URL of a PostgreSQL database, whose password must not be among the arguments of the process.
	urlFile string
}

func (a *activityDatabase) bind(f *pflag.FlagSet) {
	f.StringVar(&a.path, "activity-database", a.path,
		"SQLite file of the activity database, on a local disk; created if it is missing; not used if there is a URL of PostgreSQL")
	f.StringVar(&a.urlFile, "activity-database-file", a.urlFile,
		"file with the URL of a PostgreSQL database as the activity database, as in postgres://user:password@host/database; by default the URL is in the environment variable "+activityEnv)
}

// name returns the name by which the database is opened. A single process can use a file.
func (a *activityDatabase) name(alone bool) (string, error) {
	if strings.Contains(a.path, "://") {
		return "", fmt.Errorf("--activity-database must be the path of a file: everybody on the machine can read the password of a URL there; write the URL into a file for --activity-database-file, or into the environment variable %s", activityEnv)
	}
	source, text := activityEnv, os.Getenv(activityEnv)
	if a.urlFile != "" {
		content, err := os.ReadFile(a.urlFile)
		if err != nil {
			return "", fmt.Errorf("reading --activity-database-file: %w", err)
		}
		source, text = "the file of --activity-database-file", string(content)
	}
	text = strings.TrimSpace(text)
	switch {
	case text != "" && !database.IsPostgres(text) || a.urlFile != "" && text == "":
		return "", fmt.Errorf("%s must contain a URL that begins with postgres://", source)
	case text != "":
		return text, nil
	case !alone:
		return "", fmt.Errorf("several processes share the activity database, which requires PostgreSQL: set its URL with --activity-database-file or the environment variable %s, or run a single process of \"forgeplane all\" without --leader-elect and --registry=separate", activityEnv)
	case a.path == "":
		return "", errors.New("--activity-database must name a file")
	default:
		return a.path, nil
	}
}

// activityName returns the name by which the activity database is opened.
func (o *options) activityName() (string, error) {
	// In development, all processes are on one machine, where they can share a file.
	return o.activityDatabase.name(o.development || o.single() && !o.leaderElect)
}

// activity is the record of what happens in the forge: a database, and its aggregates.
type activity struct {
	database      *database.DB
	subscriptions *subscription.Store
	uses          *tokenuse.Store
	written       *watermark.Written
	moves         *storagemove.History
	containers    *record.Store
}

// openActivity opens the activity database of a process.
func (o *options) openActivity(ctx context.Context) (activity, error) {
	name, err := o.activityName()
	if err != nil {
		return activity{}, err
	}
	return openActivity(ctx, name, clock.RealClock{})
}

// openActivity opens the activity database with a name. The caller closes it. New aggregates are added here.
func openActivity(ctx context.Context, name string, c clock.PassiveClock) (a activity, err error) {
	a.database, err = database.Open(ctx, name, subscription.Migrations(), tokenuse.Migrations(), watermark.Migrations(), job.Migrations(),
		storagemove.Migrations(), record.Migrations())
	if err != nil {
		return a, err
	}
	a.subscriptions, a.uses, a.written = subscription.New(a.database, c), tokenuse.New(a.database), watermark.NewWritten(a.database, c)
	a.moves, a.containers = storagemove.NewHistory(a.database), record.New(a.database, c)
	return a, nil
}

// addSweeper adds to mgr the sweeper that removes the activity of objects that are gone.
func addSweeper(mgr ctrl.Manager, s shared) error {
	swept := []sweep.Objects{
		{Kind: subscription.KindLabel, Having: known[*v1alpha1.Label](s.catalog), Rows: s.subscriptions.Subjects()},
		{Kind: tokenuse.KindAccessToken, Having: known[*v1alpha1.AccessToken](s.catalog), Rows: s.uses.Subjects()},
		{Kind: tokenuse.KindBotToken, Having: known[*v1alpha1.BotToken](s.catalog), Rows: s.uses.Subjects()},
		{Kind: tokenuse.KindTriggerToken, Having: known[*v1alpha1.TriggerToken](s.catalog), Rows: s.uses.Subjects()},
	}
	if s.registry != nil {
		tasks := job.NewQueue(s.database, job.QueueOptions{Name: registry.DeletionQueue})
		swept = append(swept, sweep.Objects{Kind: record.KindProject, Having: knownOrRetained(s.catalog), Rows: registry.Leftovers(s.containers, tasks)})
	}
	sweeper := sweep.New(swept, s.written.Forget, clock.RealClock{}, mgr.GetLogger().WithName("activity"))
	if err := mgr.Add(sweeper); err != nil {
		return fmt.Errorf("adding the sweeper of the activity database: %w", err)
	}
	return nil
}

// known looks up for the sweeper which objects of a kind declare an id.
func known[T v1alpha1.Identified](c *catalog.Catalog) sweep.Having {
	return func(ctx context.Context, id int64) ([]types.UID, error) {
		found, err := catalog.AllWithID[T](ctx, c, id)
		all := make([]types.UID, len(found))
		for i, o := range found {
			all[i] = o.GetUID()
		}
		return all, err
	}
}

// knownOrRetained looks up for the sweeper which projects declare an id, and which deleted ones have left a repository. Their images stay for as
// long as a project can adopt them.
func knownOrRetained(c *catalog.Catalog) sweep.Having {
	projects := known[*v1alpha1.Project](c)
	return func(ctx context.Context, id int64) ([]types.UID, error) {
		all, err := projects(ctx, id)
		if err != nil {
			return nil, err
		}
		left, err := retained.WithID(ctx, c, id)
		for _, r := range left {
			all = append(all, types.UID(r.Spec.Project.UID))
		}
		return all, err
	}
}

// activityReachable checks whether the database answers. It logs the reason of a failure, because the answer does not contain the reason.
func activityReachable(db *database.DB, log logr.Logger) healthz.Checker {
	return func(r *http.Request) error {
		err := db.Check(r.Context())
		if err != nil {
			log.Error(err, "not ready")
		}
		return err
	}
}
