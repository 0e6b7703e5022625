// Package quota limits the number of objects that are created over REST: projects, groups and tokens of a user, and the settings of a
// project or group. Objects that are declared through Kubernetes are limited by a ResourceQuota of their namespace instead, and
// repositories of deleted projects by Retention.
package quota

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/accesstoken"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/fair"
)

// Limits are maximum numbers of objects. 0 means no limit.
type Limits struct {
	// Projects and Groups limit what a user creates over REST in the platform's namespace. In other namespaces, the ResourceQuota of the
	// namespace applies.
	Projects, Groups int
	// Tokens limits the active personal access tokens of a user, which are neither revoked nor expired.
	Tokens int
	// Settings limits the objects of one kind in one project or group, such as labels, trigger tokens and members.
	Settings int
}

// DefaultLimits returns the default limits.
func DefaultLimits() Limits { return Limits{Projects: 1000, Groups: 500, Tokens: 200, Settings: 5000} }

// Retention limits the repositories of deleted projects in a namespace. Deletions beyond the limit wait. 0 means no limit.
type Retention struct {
	// Repositories is the number of RetainedRepositories.
	Repositories int
	// Bytes is the size of their repositories on disk.
	Bytes int64
}

// DefaultRetention returns the default limits.
func DefaultRetention() Retention { return Retention{Repositories: 1000, Bytes: 100 << 30} }

// Exceeds reports whether the repositories or their bytes exceed a limit.
func (r Retention) Exceeds(repositories int, bytes int64) bool {
	return r.Repositories > 0 && repositories > r.Repositories || r.Bytes > 0 && bytes > r.Bytes
}

// ProjectsOf returns the maximum number of projects of a user, from the User or else from the limits. bounded is false if there is none.
func (l Limits) ProjectsOf(u *v1alpha1.User) (limit int, bounded bool) {
	if u.Spec.ProjectsLimit != nil {
		return int(*u.Spec.ProjectsLimit), true
	}
	return l.Projects, l.Projects > 0
}

func (l Limits) groupsOf(*v1alpha1.User) (limit int, bounded bool) { return l.Groups, l.Groups > 0 }

// Exceeded is the error for an object beyond a limit.
type Exceeded struct {
	// The owner, such as "The user otto", and the objects in the plural.
	Whose, What string
	// Held is the number of objects, and Limit is the maximum.
	Held, Limit int
}

// Error returns a message for the caller.
func (e *Exceeded) Error() string {
	return fmt.Sprintf("%s has %d of %d %s. Remove some that are no longer needed, or ask an administrator for a higher limit.", e.Whose, e.Held, e.Limit, e.What)
}

// Quota counts the objects in the cache. It is safe for use by several goroutines. Each replica counts separately, so concurrent requests
// to n replicas can exceed a limit by n-1 objects.
type Quota struct {
	catalog *catalog.Catalog
	clock   clock.PassiveClock
	limits  Limits
	// home is the Kubernetes namespace of objects that belong to users.
	home string
	// turns serializes the creations of a holder, so that each counts the previous ones.
	turns *fair.Slots
}

// New returns a quota. home is the Kubernetes namespace of objects that are created over REST and have no other namespace.
func New(cat *catalog.Catalog, clk clock.PassiveClock, l Limits, home string) *Quota {
	const atOnce = 1 << 16
	return &Quota{
		catalog: cat, clock: clk, limits: l, home: home,
		turns: fair.New("quotas", "requests that make the same", fair.Limits{Total: atOnce, Share: 1, Wait: 30 * time.Second}),
	}
}

// bound is the limit that applies to an object.
type bound struct {
	// holder identifies the holder of the objects.
	holder      string
	whose, what string
	limit       int
	// count counts the existing objects. It is nil if there is no limit.
	count func() (int, error)
}

// Admit waits for its turn and checks the limit of an object. The caller creates the object, waits until the cache shows it, and calls
// done. The error is *Exceeded if the limit is reached.
func (q *Quota) Admit(ctx context.Context, obj client.Object) (done func(), err error) {
	b, err := q.of(ctx, obj)
	if errors.Is(err, catalog.ErrNotFound) {
		err = nil // the holder was deleted, so no limit applies
	}
	if err != nil {
		return nil, fmt.Errorf("finding the quota of an object: %w", err)
	}
	if b.count == nil {
		return func() {}, nil
	}
	done, err = q.turns.Enter(fair.With(ctx, fair.Identity(b.holder)))
	if err != nil {
		return nil, err
	}
	held, err := b.count()
	if err == nil && held >= b.limit {
		err = &Exceeded{Whose: b.whose, What: b.what, Held: held, Limit: b.limit}
	}
	if err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// of returns the limit of an object. It is zero if there is none.
func (q *Quota) of(ctx context.Context, obj client.Object) (bound, error) {
	switch o := obj.(type) {
	case *v1alpha1.Project:
		return q.made(ctx, o, "projects", q.limits.ProjectsOf, q.catalog.ProjectsMadeBy)
	case *v1alpha1.Group:
		return q.made(ctx, o, "groups", q.limits.groupsOf, q.catalog.GroupsMadeBy)
	case *v1alpha1.AccessToken:
		return q.tokens(ctx, o)
	default:
		return q.setting(ctx, obj)
	}
}

// made returns the limit of objects that a user creates.
func (q *Quota) made(ctx context.Context, obj client.Object, what string, limit func(*v1alpha1.User) (int, bool),
	count func(ctx context.Context, namespace string, user int64) (int, error),
) (bound, error) {
	id, err := strconv.ParseInt(obj.GetLabels()[v1alpha1.LabelCreator], 10, 64)
	if err != nil || obj.GetNamespace() != q.home {
		return bound{}, nil //nolint:nilerr // objects without a creator and objects in other namespaces do not count
	}
	u, err := q.catalog.User(ctx, v1alpha1.Reference{ID: id})
	if err != nil {
		return bound{}, err
	}
	most, bounded := limit(u)
	if !bounded {
		return bound{}, nil
	}
	return bound{
		holder: fmt.Sprintf("%s of %d", what, id), whose: "The user " + u.Spec.Username, what: what, limit: most,
		count: func() (int, error) { return count(ctx, q.home, id) },
	}, nil
}

// tokens returns the limit of the access tokens of a user.
func (q *Quota) tokens(ctx context.Context, t *v1alpha1.AccessToken) (bound, error) {
	if q.limits.Tokens == 0 {
		return bound{}, nil
	}
	u, err := q.catalog.User(ctx, t.Spec.UserRef)
	if err != nil {
		return bound{}, err
	}
	return bound{
		holder: fmt.Sprintf("tokens of %d", u.RESTID()), whose: "The user " + u.Spec.Username, what: "personal access tokens", limit: q.limits.Tokens,
		count: func() (int, error) {
			all, err := accesstoken.Of(ctx, q.catalog, u)
			number, now := 0, q.clock.Now()
			for _, t := range all {
				if !t.Spec.Revoked && (t.Spec.ExpiresAt == nil || now.Before(t.Spec.ExpiresAt.Time)) {
					number++
				}
			}
			return number, err
		},
	}, nil
}

// setting returns the limit of objects of a project or group.
func (q *Quota) setting(ctx context.Context, obj client.Object) (bound, error) {
	setting, ok := obj.(v1alpha1.Targeted)
	if !ok || q.limits.Settings == 0 {
		return bound{}, nil
	}
	of, err := q.catalog.Target(ctx, setting)
	if err != nil {
		return bound{}, err
	}
	whose := "The group " + of.GetName()
	switch o := of.(type) {
	case *v1alpha1.Project:
		whose = "The project " + o.Spec.Path
	case *v1alpha1.Group:
		whose = "The group " + o.Spec.Path
	}
	what := plural(setting)
	return bound{
		holder: what + " of " + string(of.GetUID()), whose: whose, what: what, limit: q.limits.Settings,
		count: func() (int, error) { return q.catalog.CountOf(ctx, setting, of) },
	}, nil
}

var capital = regexp.MustCompile("[A-Z]")

// plural returns the name of objects of a kind, such as "protected branches".
func plural(kind v1alpha1.Object) string {
	name := reflect.TypeOf(kind).Elem().Name()
	words := strings.ToLower(strings.TrimSpace(capital.ReplaceAllString(name, " $0")))
	words = strings.TrimSuffix(words, "ship") // the API calls them members
	if strings.HasSuffix(words, "ch") {
		return words + "es"
	}
	return words + "s"
}
