package refs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/update"
)

// Errors of Apply that concern the refs.
var (
	// ErrMoved: a ref does not have the expected value.
	ErrMoved = errors.New("a ref has changed in the meantime")
	// ErrInTheWay: two refs cannot coexist, such as "a" and "a/b".
	ErrInTheWay = errors.New("another ref is in the way")
)

// updateTimeout limits a transaction that changes refs.
const updateTimeout = 30 * time.Second

// Apply applies all updates or none. The error is ErrMoved if a ref does not have the expected value, ErrInTheWay if a new name
// conflicts with another ref, and a *git.LimitError if the repository would have too many refs. It does not check whether the updates are
// permitted. If this process is killed meanwhile, some of the updates may have been applied.
func Apply(ctx context.Context, r *git.Repository, updates ...update.Ref) error {
	if len(updates) == 0 {
		return nil
	}
	var script strings.Builder
	for _, u := range updates {
		line, err := command(u)
		if err != nil {
			return err
		}
		script.WriteString(line)
	}
	release, err := Reserve(r, updates...)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithTimeoutCause(ctx, updateTimeout, fmt.Errorf("changing refs took longer than %s", updateTimeout))
	defer cancel()
	c := process.In(r.Dir(), "update-ref", "--no-deref", "--stdin", "-z")
	c.Stdin = strings.NewReader(script.String())
	err = r.Run(ctx, c)
	if failed := (*process.Error)(nil); !errors.As(err, &failed) || failed.ExitCode < 0 {
		return err
	}
	switch moved, lookErr := moved(ctx, r, updates); {
	case lookErr != nil:
		return errors.Join(err, lookErr)
	case moved != "":
		return fmt.Errorf("%s: %w", moved, ErrMoved)
	case strings.Contains(err.Error(), "cannot create"):
		return fmt.Errorf("%w: %w", ErrInTheWay, err)
	}
	return err
}

// command returns the input of update-ref.
func command(u update.Ref) (string, error) {
	ids := slices.DeleteFunc([]string{u.Old, u.New}, func(id string) bool { return id == "" })
	if err := object.CheckIDs(ids...); err != nil {
		return "", err
	}
	// It must be possible to remove a ref with a malformed name.
	if !strings.HasPrefix(u.Name, "refs/") || strings.ContainsAny(u.Name, "\x00\n") {
		return "", fmt.Errorf("%.100q is not a ref", u.Name)
	}
	switch {
	case u.Deletes() && u.Expects(""):
		return "", fmt.Errorf("%s: it does not exist, so it cannot be deleted", u.Name)
	case u.Deletes():
		return fmt.Sprintf("delete %s\x00%s\x00", u.Name, u.Old), nil
	}
	if err := object.CheckRefName(u.Name); err != nil {
		return "", err
	}
	if u.Creates() {
		return fmt.Sprintf("create %s\x00%s\x00", u.Name, u.New), nil
	}
	return fmt.Sprintf("update %s\x00%s\x00%s\x00", u.Name, u.New, u.Old), nil
}

// moved returns the name of a ref that does not have the value that its update expects, or "".
func moved(ctx context.Context, r *git.Repository, updates []update.Ref) (string, error) {
	names := make([]string, len(updates))
	for i, u := range updates {
		names[i] = u.Name
	}
	is, err := r.Objects(ctx, names...)
	if err != nil {
		return "", err
	}
	for i, u := range updates {
		if !u.Expects(is[i].ID) {
			return u.Name, nil
		}
	}
	return "", nil
}

// Order is a sort order of refs. Refs that are equal in it are sorted by name.
type Order string

// The orders of refs.
const (
	// ByName compares names byte by byte.
	ByName Order = "refname"
	// ByDate sorts by the date of the commit or the annotated tag.
	ByDate Order = "creatordate"
	// ByVersion compares the numbers in names as numbers.
	ByVersion Order = "version:refname"
)

// Sorted lists the refs below a prefix, such as "refs/tags/", in an order, which descending reverses. The list is remembered until any
// process changes a ref. Callers must not change it.
func Sorted(ctx context.Context, r *git.Repository, prefix string, by Order, descending bool) ([]Ref, error) {
	if descending {
		by = "-" + by
	}
	of, known := refList{prefix, by}, lookUpKnown(r)
	rests := known.atRest() // must be known before git lists the refs
	if rests {
		if refs, ok := known.lists[of]; ok {
			return refs, nil
		}
	}
	refs, err := listRefs(ctx, r, "--sort="+string(by), "--", prefix)
	if err == nil && rests {
		rememberRefs(r, known.with(of, refs))
	}
	return refs, err
}

// Merged lists the refs with these names or prefixes whose commits are reachable from a commit, sorted by name.
func Merged(ctx context.Context, r *git.Repository, commit string, names ...string) ([]Ref, error) {
	if err := object.CheckIDs(commit); err != nil {
		return nil, err
	}
	return listRefs(ctx, r, append([]string{"--merged=" + commit, "--"}, names...)...)
}

func listRefs(ctx context.Context, r *git.Repository, args ...string) (all []Ref, err error) {
	c := process.In(r.Dir(), append([]string{"for-each-ref", "--format=%(objectname) %(objecttype) %(refname)"}, args...)...)
	err = r.WalkLines(ctx, c, func(line string) error {
		id, rest, _ := strings.Cut(line, " ")
		kind, name, ok := strings.Cut(rest, " ")
		if !ok {
			return fmt.Errorf("git for-each-ref: unexpected line %.100q", line)
		}
		all = append(all, Ref{Name: name, Object: id, Type: kind})
		return nil
	})
	return all, err
}

// Tips returns the object ids of the refs below the prefixes, sorted by ref name.
func Tips(ctx context.Context, r *git.Repository, prefixes ...string) (ids []string, err error) {
	c := process.In(r.Dir(), append([]string{"for-each-ref", "--format=%(objectname)", "--"}, prefixes...)...)
	err = r.WalkLines(ctx, c, func(line string) error {
		ids = append(ids, line)
		return nil
	})
	return ids, err
}

// Containing lists the refs below the prefixes from which a commit is reachable, sorted by name.
func Containing(ctx context.Context, r *git.Repository, commit string, prefixes ...string) ([]Ref, error) {
	if err := object.CheckIDs(commit); err != nil {
		return nil, err
	}
	return listRefs(ctx, r, append([]string{"--contains=" + commit, "--"}, prefixes...)...)
}
