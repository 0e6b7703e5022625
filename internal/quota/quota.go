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

// Limits are how many objects there may be. 0 stands for any number.
type Limits struct {
	// Projects and Groups limit what a user creates over REST in the platform's namespace. In other namespaces, the ResourceQuota of the
	// namespace applies.
	Projects, Groups int
	// Tokens are personal access tokens of a user that are accepted: neither revoked nor expired.
	Tokens int
	// Settings are the objects of one kind that belong to one project or group: labels, trigger tokens, members and so on.
	Settings int
}

// DefaultLimits are the limits that nobody has set.
func DefaultLimits() Limits { return Limits{Projects: 1000, Groups: 500, Tokens: 200, Settings: 5000} }

// Retention limits what the deleted projects of a namespace leave. Beyond it, further deletions wait. 0 means no limit.
type Retention struct {
	// Repositories are RetainedRepositories.
	Repositories int
	// Bytes is the size of their repositories on disk.
	Bytes int64
}

// DefaultRetention is the limit that nobody has set.
func DefaultRetention() Retention { return Retention{Repositories: 1000, Bytes: 100 << 30} }

// Exceeds reports whether there would be too many repositories, or too many bytes in them.
func (r Retention) Exceeds(repositories int, bytes int64) bool {
	return r.Repositories > 0 && repositories > r.Repositories || r.Bytes > 0 && bytes > r.Bytes
}

// ProjectsOf is how many projects a user may make: what the User declares, or the limit of all users. bounded is false for any
// number.
func (l Limits) ProjectsOf(u *v1alpha1.User) (limit int, bounded bool) {
	if u.Spec.ProjectsLimit != nil {
		return int(*u.Spec.ProjectsLimit), true
	}
	return l.Projects, l.Projects > 0
}

func (l Limits) groupsOf(*v1alpha1.User) (limit int, bounded bool) { return l.Groups, l.Groups > 0 }

// Exceeded is the error for one object too many.
type Exceeded struct {
	// The owner, such as "The user otto", and the objects in the plural.
	Whose, What string
	// Held is how many there are, and Limit how many there may be.
	Held, Limit int
}

// Error is a sentence for the caller.
func (e *Exceeded) Error() string {
	return fmt.Sprintf("%s has %d of %d %s. Remove some that are no longer needed, or ask an administrator for a higher limit.", e.Whose, e.Held, e.Limit, e.What)
}

// Quota counts what there is in the cache. It is safe for use by several goroutines. Each replica counts for itself, so as many
// objects as there are other replicas may be made beyond a limit when they are asked at the same moment.
type Quota struct {
	catalog *catalog.Catalog
	clock   clock.PassiveClock
	limits  Limits
	// home is the Kubernetes namespace of what belongs to users.
	home string
	// turns let one object of a holder be made at a time, so that each counts those before it.
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

// bound is what one object counts against.
type bound struct {
	// holder tells holders of objects apart.
	holder      string
	whose, what string
	limit       int
	// count is nil where nothing is bounded.
	count func() (int, error)
}

// Admit waits for its turn and reports whether an object may be made. The caller makes it, waits until the cache shows it, and calls
// done. The error is *Exceeded for one too many.
func (q *Quota) Admit(ctx context.Context, obj client.Object) (done func(), err error) {
	b, err := q.of(ctx, obj)
	if errors.Is(err, catalog.ErrNotFound) {
		err = nil // whatever it belongs to has gone away: nothing is held by it
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

// of returns what an object counts against; the zero bound where nothing bounds it.
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

// made is the bound of what a user makes.
func (q *Quota) made(ctx context.Context, obj client.Object, what string, limit func(*v1alpha1.User) (int, bool),
	count func(ctx context.Context, namespace string, user int64) (int, error),
) (bound, error) {
	id, err := strconv.ParseInt(obj.GetLabels()[v1alpha1.LabelCreator], 10, 64)
	if err != nil || obj.GetNamespace() != q.home {
		return bound{}, nil //nolint:nilerr // what nobody has made, or what is in another namespace, counts for nobody
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

// tokens is the bound of the access tokens of a user.
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

// setting is the bound of what belongs to a project or group.
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

// plural is what objects of a kind are called, as in "protected branches".
func plural(kind v1alpha1.Object) string {
	name := reflect.TypeOf(kind).Elem().Name()
	words := strings.ToLower(strings.TrimSpace(capital.ReplaceAllString(name, " $0")))
	words = strings.TrimSuffix(words, "ship") // the API calls them members
	if strings.HasSuffix(words, "ch") {
		return words + "es"
	}
	return words + "s"
}
