// Package repositorystorage reconciles shards: whether they are writable, and how full they are.
package repositorystorage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/internal/retained"
	"github.com/forgeplane/forgeplane/internal/storagemove"
)

// probeInterval is the interval at which a shard is probed, because no watch reports a full or missing volume, or a missing repository. A project
// must say within 30 seconds that its repository is gone.
const probeInterval = 20 * time.Second

// Options configure the controller.
type Options struct {
	// Live reads past the cache whether a project is gone.
	Live client.Reader
	// Clock determines when the content of a shard is scanned.
	Clock clock.PassiveClock
	// CountLater is the delay from the creation or deletion of a project until the projects of its shard are counted, so that many changes
	// are counted at once.
	CountLater time.Duration
	// Changed receives the projects whose repositories are gone or back.
	Changed chan<- event.TypedGenericEvent[*v1alpha1.Project]
	// Measure returns the size of the volume with a path, and the size of what is free on it; that of the file system by default.
	Measure Measure
}

// Measure returns the size of a volume and of what is free on it, in bytes.
type Measure func(path string) (capacity, available int64, err error)

// Controller reconciles shards.
type Controller struct {
	repositories *repository.Repositories
	options      Options
	frame        *frame.Frame[*v1alpha1.RepositoryStorage]
	// lookedThrough has the times of the last scans, looked the last looks at the repositories, and directories what was last seen at the path, by
	// the UIDs of shards.
	lookedThrough, looked, directories sync.Map
}

// New returns the controller.
func New(b frame.Base, repos *repository.Repositories, o Options) *Controller {
	if o.Measure == nil {
		o.Measure = statfs
	}
	c := &Controller{repositories: repos, options: o}
	c.frame = frame.New(b, frame.WithClaims(claims), frame.WithFinalizer(Finalizer, c.release))
	return c
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=repositorystorages,verbs=patch
// +kubebuilder:rbac:groups=forgeplane.dev,resources=repositorystorages/status,verbs=patch
// +kubebuilder:rbac:groups=forgeplane.dev,resources=retainedrepositories,verbs=create

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	return c.frame.Watch(mgr, o).
		OnCounted(&v1alpha1.Project{}, storage, c.options.CountLater, shardOf).
		OnReferred(&v1alpha1.RetainedRepository{}, shardOf).
		OnPart(&v1alpha1.StorageMove{}, moving, c.emptied).
		OnReleased(&v1alpha1.RepositoryStorage{}, c.others).
		Complete(reconcile.AsReconciler(c.frame.Client, c))
}

// Reconcile reconciles one shard.
func (c *Controller) Reconcile(ctx context.Context, s *v1alpha1.RepositoryStorage) (reconcile.Result, error) {
	return c.frame.Run(ctx, s, c.take, c.distinguish, c.recognize, c.recall, c.retainLeft, c.count, c.look, c.probe, c.measure)
}

func (c *Controller) count(ctx context.Context, s *v1alpha1.RepositoryStorage) error {
	projects, err := catalog.List[*v1alpha1.Project](ctx, c.frame.Catalog, catalog.IndexStorage, s.Name)
	s.Status.Repositories = int32(len(projects)) //nolint:gosec // one control plane holds far fewer objects
	if err != nil {
		return err
	}
	left, err := c.retainedOn(ctx, s)
	s.Status.Retained = int32(len(left)) //nolint:gosec // one control plane holds far fewer objects
	return err
}

// retainedOn returns the retained repositories on a shard, by the names of their records there.
func (c *Controller) retainedOn(ctx context.Context, s *v1alpha1.RepositoryStorage) (map[string]*v1alpha1.RetainedRepository, error) {
	all, err := retained.OnStorage(ctx, c.frame.Catalog, s.Name)
	if err != nil {
		return nil, err
	}
	on := make(map[string]*v1alpha1.RetainedRepository, len(all))
	for _, r := range all {
		on[repository.RecordName(r)] = r
	}
	return on, nil
}

// recall creates the RetainedRepositories of which only the shard has a record, for example after the data of the control plane was lost.
// An object that is being removed loses its record on the shard first, so it is not created again.
func (c *Controller) recall(ctx context.Context, s *v1alpha1.RepositoryStorage) error {
	names, err := repository.RecordNames(s)
	if err != nil {
		return frame.WaitingFor(probeInterval, v1alpha1.ReasonStorageUnavailable, "%s cannot be read: %w", s.Spec.Path, cause(err))
	}
	known, err := c.retainedOn(ctx, s)
	if err != nil {
		return err
	}
	for _, name := range names {
		if known[name] != nil {
			continue
		}
		// One unreadable file must not put a whole shard out of use.
		if err := c.recallOne(ctx, s, name); err != nil {
			log.FromContext(ctx).Error(err, "Failed to recall a retained repository", "storage", s.Name, "record", name)
		}
	}
	return nil
}

// recallOne creates the RetainedRepository that a file describes, unless the file or the repository is gone.
func (c *Controller) recallOne(ctx context.Context, s *v1alpha1.RepositoryStorage, name string) error {
	r, err := repository.ReadRecord(s, name)
	if r == nil || err != nil {
		return err
	}
	repo, err := c.repositories.OfRetained(ctx, r)
	if err != nil {
		return err
	}
	if errors.Is(repo.Check(), git.ErrNotFound) {
		return nil
	}
	told := audit.WithReason(ctx, audit.Event{Action: "recall", Reason: "its shard has the record"})
	return client.IgnoreAlreadyExists(c.frame.Client.Create(told, r))
}

// probe writes a file, which is the only reliable test that repositories can be written.
func (c *Controller) probe(_ context.Context, s *v1alpha1.RepositoryStorage) error {
	f, err := os.CreateTemp(s.Spec.Path, ".probe-*")
	if err == nil {
		_, err = f.WriteString("forgeplane")
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		if removeErr := os.Remove(f.Name()); err == nil {
			err = removeErr
		}
	}
	if err != nil {
		return frame.WaitingFor(probeInterval, v1alpha1.ReasonStorageUnavailable, "%s cannot be written to: %w", s.Spec.Path, cause(err))
	}
	return nil
}

// cause returns err without the name of the probed file, which differs each time.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

func (c *Controller) measure(_ context.Context, s *v1alpha1.RepositoryStorage) error {
	capacity, available, err := c.options.Measure(filepath.Clean(s.Spec.Path))
	if err != nil {
		return fmt.Errorf("measuring %s: %w", s.Spec.Path, err)
	}
	s.Status.CapacityBytes = capacity
	s.Status.AvailableBytes = round(available, capacity, s.Status.AvailableBytes)
	return frame.RequeueAfter(wait.Jitter(probeInterval, 0.1))
}

func statfs(path string) (capacity, available int64, err error) {
	var volume unix.Statfs_t
	if err := unix.Statfs(path, &volume); err != nil {
		return 0, 0, err
	}
	return int64(volume.Blocks) * volume.Bsize, int64(volume.Bavail) * volume.Bsize, nil //nolint:gosec // volumes are below 8 EiB
}

// round rounds down to a hundredth of the capacity. The shown value stays until it is off by more than a hundredth, so that a volume at the
// edge between two values does not change the status at every probe.
func round(available, capacity, shown int64) int64 {
	percent := max(capacity/100, 1) // an empty volume has no hundredth
	if shown > 0 && shown%percent == 0 && shown-percent <= available && available < shown+2*percent {
		return shown
	}
	return available / percent * percent
}

func storage(obj client.Object) string {
	p := obj.(*v1alpha1.Project)
	return cmp.Or(p.Status.Storage, p.PlannedStorage())
}

// moving returns the shards that a move needs.
func moving(obj client.Object) string {
	return fmt.Sprint(storagemove.UsedBy(obj.(*v1alpha1.StorageMove)))
}

// emptied maps a move to its shards that are being deleted, which wait for it.
func (c *Controller) emptied(ctx context.Context, obj client.Object) (requests []reconcile.Request) {
	m := obj.(*v1alpha1.StorageMove)
	for _, name := range []string{m.Status.Source, m.Status.Destination} {
		s, err := catalog.Get[*v1alpha1.RepositoryStorage](ctx, c.frame.Catalog, "", name)
		if err == nil && !s.DeletionTimestamp.IsZero() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s)})
		}
	}
	return requests
}

func shardOf(_ context.Context, obj client.Object) []reconcile.Request {
	var name string
	switch o := obj.(type) {
	case *v1alpha1.Project:
		name = storage(o)
	case *v1alpha1.RetainedRepository:
		name = o.Spec.Storage
	}
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: name}}}
}
