package reactions

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/item"
)

// Reaction is "Emoji reaction" of the core interface document.
type Reaction struct {
	ID            int64               `json:"id"`
	Name          string              `json:"name"`
	User          *entity.UserSummary `json:"user" doc:"null if the user is gone."`
	CreatedAt     endpoint.Time       `json:"created_at"`
	UpdatedAt     endpoint.Time       `json:"updated_at" doc:"The same time: reactions do not change."`
	AwardableID   int64               `json:"awardable_id" doc:"Id of the item, which is not its iid."`
	AwardableType string              `json:"awardable_type" doc:"Issue, MergeRequest, Epic or Note."`
	URL           *string             `json:"url" doc:"null: there are no custom emoji."`
}

// shown shows one reaction.
func (f *Family) shown(ctx context.Context, g given) (Reaction, error) {
	users, err := item.Users(ctx, f.Catalog, f.WebURL, g.User)
	return show(g, users), err
}

func show(g given, users map[types.UID]*entity.UserSummary) Reaction {
	at := endpoint.Time(g.Created)
	return Reaction{
		ID: g.ID, Name: g.Name, User: users[g.User.UID], CreatedAt: at, UpdatedAt: at, AwardableID: g.To.ID, AwardableType: g.to.Type(),
	}
}
