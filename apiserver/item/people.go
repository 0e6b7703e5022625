package item

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/internal/database"
)

// People are the users who take part in an item, apart from the writers of its notes: the author, the assignees and the reviewers.
type People []database.User

// Have reports whether a user is one of the people.
func (p People) Have(user types.UID) bool {
	return slices.ContainsFunc(p, func(u database.User) bool { return u.UID == user })
}

// Followers are the choices of users to follow items of a kind, or not to follow them. See follower.Choices.
type Followers interface {
	Subscribe(ctx context.Context, id int64, u database.User, on bool) error
	Subscribed(ctx context.Context, id int64, user types.UID) (on, known bool, err error)
}

// Subscribed reports whether the caller follows an item: by choice, or by taking part in it.
func Subscribed(ctx context.Context, k *family.Kit, s auth.Subject, f Followers, i database.Item, p People) (bool, error) {
	viewer := Viewer(s)
	if viewer == "" {
		return false, nil
	}
	on, known, err := f.Subscribed(ctx, i.ID, viewer)
	if err != nil || known {
		return on, err
	}
	if p.Have(viewer) {
		return true, nil
	}
	return k.Activity.Notes.Wrote(ctx, i, viewer)
}

// Subscribe records the choice of the caller to follow an item, or not to follow it. The error is endpoint.NotModified if nothing changes.
func Subscribe(ctx context.Context, k *family.Kit, s auth.Subject, f Followers, i database.Item, p People, on bool) error {
	u, err := s.Caller.Person()
	if err != nil {
		return err
	}
	was, err := Subscribed(ctx, k, s, f, i, p)
	if err == nil && was == on {
		err = endpoint.NotModified()
	}
	if err != nil {
		return err
	}
	return f.Subscribe(ctx, i.ID, User(u), on)
}

// Participants returns a page of the people of an item and the writers of its notes. Each is there once, and deleted users are left out.
func Participants(ctx context.Context, k *family.Kit, i database.Item, p People, page endpoint.Paging) (none endpoint.List[*entity.UserSummary], err error) {
	writers, err := k.Activity.Notes.Writers(ctx, i)
	if err != nil {
		return none, err
	}
	all := slices.Concat(p, writers)
	users, err := Users(ctx, k.Catalog, k.WebURL, all...)
	if err != nil {
		return none, err
	}
	var shown []*entity.UserSummary
	for _, u := range Known(users, all) {
		if !slices.Contains(shown, u) {
			shown = append(shown, u)
		}
	}
	return endpoint.Page(page, shown, func(u *entity.UserSummary) *entity.UserSummary { return u }), nil
}
