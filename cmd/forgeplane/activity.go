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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/forgeplane/forgeplane/internal/activity"
)

// activityEnv is the environment variable with the URL of the activity database.
const activityEnv = "FORGEPLANE_ACTIVITY_DATABASE"

// activityDatabase says where the activity database is.
type activityDatabase struct {
	// path is that of a SQLite file.
	path string
	// urlFile holds the URL of a PostgreSQL database; its password must not be read from the arguments of the process.
	urlFile string
}

func (a *activityDatabase) bind(f *pflag.FlagSet) {
	f.StringVar(&a.path, "activity-database", a.path,
		"file of the activity database, which is SQLite, on a local disk; made where it is missing; not used where there is a URL of PostgreSQL")
	f.StringVar(&a.urlFile, "activity-database-file", a.urlFile,
		"file that holds the URL of the activity database, which is PostgreSQL, as in postgres://user:password@host/database; by default the URL is in the environment variable "+activityEnv)
}

// name is what the database is opened by. A process that is alone may have it in a file.
func (a *activityDatabase) name(alone bool) (string, error) {
	if strings.Contains(a.path, "://") {
		return "", fmt.Errorf("--activity-database is to be the path of a file: everybody on the machine can read the password of a URL there; write the URL into a file for --activity-database-file, or into the environment variable %s", activityEnv)
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
	case text != "" && !activity.IsPostgres(text) || a.urlFile != "" && text == "":
		return "", fmt.Errorf("%s is to hold a URL that begins with postgres://", source)
	case text != "":
		return text, nil
	case !alone:
		return "", fmt.Errorf("several processes share the activity database, which takes PostgreSQL: name it by --activity-database-file or the environment variable %s, or run a single process of \"forgeplane all\" without --leader-elect", activityEnv)
	case a.path == "":
		return "", errors.New("--activity-database is to name a file")
	default:
		return a.path, nil
	}
}

// activity is what the activity database is opened by.
func (o *options) activity() (string, error) {
	// In development all processes are on one machine, where they can share a file.
	return o.activityDatabase.name(o.development || o.single && !o.leaderElect)
}

// openActivity opens the activity database; the caller closes it.
func openActivity(ctx context.Context, o *options) (*activity.Store, error) {
	database, err := o.activity()
	if err != nil {
		return nil, err
	}
	return activity.Open(ctx, activity.Options{Database: database})
}

// addSweeper adds to mgr what removes the activity of objects that are gone.
func addSweeper(mgr ctrl.Manager, s shared) error {
	sweeper := activity.NewSweeper(s.activity, map[string]activity.Having{
		activity.KindLabel: known(s.catalog.LabelsWithID), activity.KindTriggerToken: known(s.catalog.TriggerTokensWithID),
		activity.KindUser: known(s.catalog.UsersWithID),
	}, clock.RealClock{}, mgr.GetLogger().WithName("activity"))
	if err := mgr.Add(sweeper); err != nil {
		return fmt.Errorf("adding the sweeper of the activity database: %w", err)
	}
	return nil
}

// known turns a look-up of the catalog into one of the activity database.
func known[T client.Object](with func(context.Context, int64) ([]T, error)) activity.Having {
	return func(ctx context.Context, id int64) ([]activity.Known, error) {
		found, err := with(ctx, id)
		all := make([]activity.Known, len(found))
		for i, o := range found {
			all[i] = activity.Known{UID: o.GetUID(), Created: o.GetCreationTimestamp().Time}
		}
		return all, err
	}
}

// activityReachable checks whether the database answers. Who asks is told no reason, so the log is.
func activityReachable(store *activity.Store, log logr.Logger) healthz.Checker {
	return func(r *http.Request) error {
		err := store.Check(r.Context())
		if err != nil {
			log.Error(err, "not ready")
		}
		return err
	}
}
