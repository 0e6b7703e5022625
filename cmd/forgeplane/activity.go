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
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/forgeplane/forgeplane/internal/activity"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/pipeline"
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

// openActivity opens the activity database of a process. The caller closes it.
func (o *options) openActivity(ctx context.Context) (activity.Stores, error) {
	name, err := o.activityName()
	if err != nil {
		return activity.Stores{}, err
	}
	return activity.Open(ctx, name, clock.RealClock{})
}

// addSweeper adds to mgr the sweeper that removes the activity of objects that are gone, and the watch that ends abandoned jobs.
func addSweeper(mgr ctrl.Manager, s shared) error {
	sweeper := s.Sweeper(s.catalog, s.registry != nil, clock.RealClock{}, mgr.GetLogger().WithName("activity"))
	if err := mgr.Add(sweeper); err != nil {
		return fmt.Errorf("adding the sweeper of the activity database: %w", err)
	}
	if err := mgr.Add(pipeline.NewWatch(s.Pipelines, clock.RealClock{}, mgr.GetLogger().WithName("pipelines"))); err != nil {
		return fmt.Errorf("adding the watch of abandoned jobs: %w", err)
	}
	return nil
}

// activityReachable checks whether the database answers. It logs the reason of a failure, because the answer does not contain the reason.
func activityReachable(db *database.DB, log logr.Logger) healthz.Checker {
	return func(r *http.Request) error {
		// A probe that gives up says nothing about the database, and a database that hangs must not be hidden by probes that give up earlier.
		err := db.Check(context.WithoutCancel(r.Context()))
		if err != nil {
			log.Error(err, "Failed to reach the activity database")
		}
		return err
	}
}
