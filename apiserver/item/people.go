package item

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/auth"
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
