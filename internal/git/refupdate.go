package git

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// RefUpdate is a requested change of a ref.
type RefUpdate struct {
	// Ref is the full name.
	Ref string
	// Old is the current object id of the ref, and New the requested one. An empty or all-zero Old means that the ref does not exist, and
	// such a New removes it.
	Old, New string
}

// Errors of UpdateRefs that concern the refs.
var (
	// ErrRefMoved: a ref does not have the expected value.
	ErrRefMoved = errors.New("a ref has changed in the meantime")
	// ErrRefInTheWay: two refs cannot coexist, such as "a" and "a/b".
	ErrRefInTheWay = errors.New("another ref is in the way")
)

// updateTimeout limits a transaction that changes refs.
const updateTimeout = 30 * time.Second

// UpdateRefs applies all updates or none. The error is ErrRefMoved if a ref does not have the expected value, ErrRefInTheWay if a new name
// conflicts with another ref, and a *LimitError if the repository would have too many refs. It does not check whether the updates are
// permitted.
func (r *Repository) UpdateRefs(ctx context.Context, updates ...RefUpdate) error {
	if len(updates) == 0 {
		return nil
	}
	var script strings.Builder
	for _, u := range updates {
		line, err := u.line()
		if err != nil {
			return err
		}
		script.WriteString(line)
	}
	release, err := r.ReserveRefs(updates...)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithTimeoutCause(ctx, updateTimeout, fmt.Errorf("changing refs took longer than %s", updateTimeout))
	defer cancel()
	c := r.command("update-ref", "--no-deref", "--stdin", "-z")
	c.stdin = strings.NewReader(script.String())
	err = r.run(ctx, c)
	if failed := (*Error)(nil); !errors.As(err, &failed) || failed.ExitCode < 0 {
		return err
	}
	switch moved, lookErr := r.moved(ctx, updates); {
	case lookErr != nil:
		return errors.Join(err, lookErr)
	case moved != "":
		return fmt.Errorf("%s: %w", moved, ErrRefMoved)
	case strings.Contains(err.Error(), "cannot create"):
		return fmt.Errorf("%w: %w", ErrRefInTheWay, err)
	}
	return err
}

// line returns the input of update-ref.
func (u RefUpdate) line() (string, error) {
	old, gone := u.Old, u.New == "" || IsZeroID(u.New)
	if IsZeroID(old) {
		old = ""
	}
	ids := slices.DeleteFunc([]string{u.Old, u.New}, func(id string) bool { return id == "" })
	if err := checkIDs(ids...); err != nil {
		return "", err
	}
	// It must be possible to remove a ref with a malformed name.
	if !strings.HasPrefix(u.Ref, "refs/") || strings.ContainsAny(u.Ref, "\x00\n") {
		return "", fmt.Errorf("%.100q is not a ref", u.Ref)
	}
	if gone {
		if old == "" {
			return "", fmt.Errorf("%s: it does not exist, so it cannot be deleted", u.Ref)
		}
		return fmt.Sprintf("delete %s\x00%s\x00", u.Ref, old), nil
	}
	if err := CheckRefName(u.Ref); err != nil {
		return "", err
	}
	if old == "" {
		return fmt.Sprintf("create %s\x00%s\x00", u.Ref, u.New), nil
	}
	return fmt.Sprintf("update %s\x00%s\x00%s\x00", u.Ref, u.New, old), nil
}

// moved returns the name of a ref that does not have the value that its update expects, or "".
func (r *Repository) moved(ctx context.Context, updates []RefUpdate) (string, error) {
	names := make([]string, len(updates))
	for i, u := range updates {
		names[i] = u.Ref
	}
	is, err := r.Objects(ctx, names...)
	if err != nil {
		return "", err
	}
	for i, u := range updates {
		if old := u.Old; is[i].ID != old && (is[i].ID != "" || !IsZeroID(old)) {
			return u.Ref, nil
		}
	}
	return "", nil
}

// RefOrder is a sort order of refs. Refs that are equal in it are sorted by name.
type RefOrder string

// The orders of refs.
const (
	// ByName compares names byte by byte.
	ByName RefOrder = "refname"
	// ByDate sorts by the date of the commit or the annotated tag.
	ByDate RefOrder = "creatordate"
	// ByVersion compares the numbers in names as numbers.
	ByVersion RefOrder = "version:refname"
)

// SortedRefs lists the refs below a prefix, such as "refs/tags/", in an order, which descending reverses. The list is remembered until any
// process changes a ref. Callers must not change it.
func (r *Repository) SortedRefs(ctx context.Context, prefix string, by RefOrder, descending bool) ([]Ref, error) {
	if descending {
		by = "-" + by
	}
	of, known := refList{prefix, by}, r.knownRefs()
	rests := known.atRest() // must be known before git lists the refs
	if rests {
		if refs, ok := known.lists[of]; ok {
			return refs, nil
		}
	}
	refs, err := r.listRefs(ctx, "--sort="+string(by), "--", prefix)
	if err == nil && rests {
		r.rememberRefs(known.with(of, refs))
	}
	return refs, err
}

// MergedRefs lists the refs with these names or prefixes whose commits are reachable from a commit, sorted by name.
func (r *Repository) MergedRefs(ctx context.Context, commit string, names ...string) ([]Ref, error) {
	if err := checkIDs(commit); err != nil {
		return nil, err
	}
	return r.listRefs(ctx, append([]string{"--merged=" + commit, "--"}, names...)...)
}

func (r *Repository) listRefs(ctx context.Context, args ...string) (all []Ref, err error) {
	c := r.command(append([]string{"for-each-ref", "--format=%(objectname) %(objecttype) %(refname)"}, args...)...)
	err = r.walkLines(ctx, c, func(line string) error {
		object, rest, _ := strings.Cut(line, " ")
		kind, name, ok := strings.Cut(rest, " ")
		if !ok {
			return fmt.Errorf("git for-each-ref: unexpected line %.100q", line)
		}
		all = append(all, Ref{Name: name, Object: object, Type: kind})
		return nil
	})
	return all, err
}

// Tips returns the object ids of the refs below the prefixes, sorted by ref name.
func (r *Repository) Tips(ctx context.Context, prefixes ...string) (ids []string, err error) {
	c := r.command(append([]string{"for-each-ref", "--format=%(objectname)", "--"}, prefixes...)...)
	err = r.walkLines(ctx, c, func(line string) error {
		ids = append(ids, line)
		return nil
	})
	return ids, err
}
