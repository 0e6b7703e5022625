package item

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/search"
)

// maxFilters is the maximum number of filters of a list. Each label and each assignee counts as one. SQLite has a limit of its own.
const maxFilters = 200

// CheckFilters refuses a list with too many filters.
func CheckFilters(all []database.Condition) error {
	if len(all) > maxFilters {
		return endpoint.Parameters("there are too many filters")
	}
	return nil
}

// PageOf returns the requested page of a list of the database, without a version.
func PageOf(p endpoint.Paging) database.Page {
	page := database.Page{Enough: p.Enough()}
	page.Skip, page.Limit = p.Window()
	return page
}

// Page returns the requested page of a list of the items of a kind in some projects. It has the version of the items, unless there are several projects.
// alone says that the list is about the items alone: what else its filters are about can change without the version, such as titles of milestones.
func (f Finder) Page(ctx context.Context, kind string, projects []types.UID, p endpoint.Paging, alone bool) (page database.Page, err error) {
	page = PageOf(p)
	if alone && len(projects) == 1 {
		page.Version, err = f.Stores.Revisions.Version(ctx, kind, projects[0])
	}
	return page, err
}

// Is returns a condition or its negation.
func Is(c database.Condition, holds bool) database.Condition {
	if holds {
		return c
	}
	return database.Not(c)
}

// AnyWord is the word for anything in filters.
const AnyWord = "Any"

// OrWord returns the condition of a filter: anything for the word Any, its negation for None, and otherwise the value that was sent.
func OrWord[T any](sent endpoint.Either[T], anything database.Condition, is func(T) database.Condition) []database.Condition {
	switch {
	case !sent.Set:
		return nil
	case sent.Word != "":
		return []database.Condition{Is(anything, sent.Word == AnyWord)}
	default:
		return []database.Condition{is(sent.Value)}
	}
}

// Nonempty returns a filter that counts as not sent if it is empty.
func Nonempty(sent endpoint.Either[string]) endpoint.Either[string] {
	sent.Set = sent.Set && (sent.Word != "" || sent.Value != "")
	return sent
}

// Among returns the condition of the parameter scope: written is true of the items that the caller has written, and assigned of those that the caller
// is assigned to.
func Among(scope string, written, assigned database.Condition) []database.Condition {
	switch strings.ReplaceAll(scope, "-", "_") {
	case "created_by_me":
		return []database.Condition{written}
	case "assigned_to_me":
		return []database.Condition{assigned}
	default:
		return nil
	}
}

// When returns the condition of a filter for a time.
func When(sent endpoint.Optional[time.Time], is func(time.Time) database.Condition) []database.Condition {
	if !sent.Set || sent.Null {
		return nil
	}
	return []database.Condition{is(sent.Value)}
}

// Part returns the part of items that a search looks through.
func Part(in []string) search.Part {
	if len(in) != 1 {
		return ""
	}
	return search.Part(in[0])
}

// Labeled returns for each title the condition that items have a label with it.
func Labeled(ctx context.Context, find LabelFinder, titles []string, with func(...types.UID) database.Condition) (all []database.Condition, err error) {
	for _, title := range titles {
		uids, err := find(ctx, title)
		if err != nil {
			return nil, err
		}
		all = append(all, with(uids...))
	}
	return all, nil
}

// By returns the condition that the author of items has an id or username, of which at most one is sent.
func By(ctx context.Context, c *catalog.Catalog, id endpoint.Optional[int64], username endpoint.Optional[string],
	by func(...types.UID) database.Condition,
) (all []database.Condition, err error) {
	var uids []types.UID
	switch {
	case id.Set && !id.Null:
		uids, err = UserUIDs(ctx, c, id.Value)
	case username.Or("") != "":
		uids, err = NamedUIDs(ctx, c, username.Value)
	default:
		return nil, nil
	}
	return []database.Condition{by(uids...)}, err
}

// AssignedTo returns the condition that a user with an id, or all users with some names, are assigned to items; anybody is true of items with
// an assignee. The id 0 means no assignee. It serves for reviewers, too.
func AssignedTo(ctx context.Context, c *catalog.Catalog, id endpoint.Either[int64], usernames endpoint.Either[[]string], anybody database.Condition,
	to func(...types.UID) database.Condition,
) (all []database.Condition, err error) {
	var uids []types.UID
	switch {
	case id.Word != "" || usernames.Word != "":
		all = append(all, Is(anybody, id.Word == AnyWord || usernames.Word == AnyWord))
	case id.Set && id.Value == 0:
		all = append(all, database.Not(anybody))
	case id.Set:
		uids, err = UserUIDs(ctx, c, id.Value)
		all = append(all, to(uids...))
	}
	for _, name := range usernames.Value {
		if err == nil {
			uids, err = NamedUIDs(ctx, c, name)
			all = append(all, to(uids...))
		}
	}
	return all, err
}

// AnyOf returns the condition that one of the users with some ids and names is a person of items, such as the author.
func AnyOf(ctx context.Context, c *catalog.Catalog, ids []int64, usernames []string, is func(...types.UID) database.Condition) (database.Condition, error) {
	known, err := UserUIDs(ctx, c, ids...)
	if err != nil {
		return nil, err
	}
	named, err := NamedUIDs(ctx, c, usernames...)
	return is(append(known, named...)...), err
}
