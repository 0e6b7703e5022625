// Package family has what the families of endpoints share.
package family

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/avatar"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/apiserver/visible"
	"github.com/forgeplane/forgeplane/internal/accesslevel"
	"github.com/forgeplane/forgeplane/internal/activity"
	"github.com/forgeplane/forgeplane/internal/artifact"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/egress"
	"github.com/forgeplane/forgeplane/internal/feature"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/quota"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// Kit has the collaborators of the families of endpoints, which embed it.
type Kit struct {
	// Catalog reads declared objects.
	Catalog *catalog.Catalog
	// Guard decides what callers can see and do.
	Guard *auth.Guard
	// Visible finds the projects that callers can see.
	Visible *visible.Projects
	// Writer writes declared objects for requests, and Background for jobs.
	Writer, Background store.Backend
	// IDs allocates ids of access levels.
	IDs accesslevel.Allocator
	// Credentials are the credentials that REST receives or generates for objects of tenants.
	Credentials *credential.Store
	// Avatars are the pictures of projects, groups and users.
	Avatars *avatar.Avatars
	// Artifacts are the files that jobs keep.
	Artifacts *artifact.Store
	// Repositories are the repositories of projects, and Refs changes their refs.
	Repositories *repository.Repositories
	Refs         *ref.Updater
	// Maintain schedules the maintenance of the repository of a project, and reports false if maintenance is turned off.
	Maintain func(project types.NamespacedName) bool
	// Images are the images of projects; nil if the container registry is off. ImagesHost is the host, with a port, at which clients reach them.
	Images     *registry.Registry
	ImagesHost string
	// Activity is the activity database.
	Activity activity.Stores
	// Queue returns a queue of background work, which the server runs. It logs to the log of the server.
	Queue func(job.QueueOptions) Tasks
	// OnWritten adds a follower of the writes of refs, as change.Feed.Follow does.
	OnWritten func(follower string, follow func(context.Context, change.Event) error)
	// Audit records the writes of background work; nil if the audit log is off. Handlers record those of requests.
	Audit *audit.Log
	// Features are the features that are turned on.
	Features *feature.Flags
	// Quotas limit what users create.
	Quotas quota.Limits
	// Targets are the hosts outside that users can name.
	Targets *egress.Policy
	Clock   clock.PassiveClock
	// WebURL is the address of the installation, without a slash at its end.
	WebURL string
	// Version is the version of Forgeplane.
	Version string
	// Namespace is the namespace of Forgeplane.
	Namespace string
	// Home is the namespace of personal projects, and of objects that are created over REST without a parent group.
	Home string
}

// Tasks is a queue to which work is added. A job.Queue implements it.
type Tasks interface {
	Add(ctx context.Context, t job.Task) error
	// AddAfter adds a task that is not due before a delay has passed.
	AddAfter(ctx context.Context, t job.Task, delay time.Duration) error
}
