package users

import (
	"context"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/avatar"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
)

func (f *Family) avatar(ctx context.Context, s auth.User, _ *endpoint.None) (endpoint.Content, error) {
	return f.Avatars.Content(ctx, s.User)
}

type avatarRequest struct {
	Avatar avatar.Upload `param:"avatar" required:"" doc:"A picture of at most 200 KiB; empty to remove it."`
}

// AvatarAddress is the URL of the avatar of a user.
type AvatarAddress struct {
	AvatarURL *string `json:"avatar_url"`
}

func (f *Family) setAvatar(ctx context.Context, s auth.Instance, r *avatarRequest) (AvatarAddress, error) {
	u, err := s.Caller.Account()
	if err != nil {
		return AvatarAddress{}, err
	}
	picture, err := f.Avatars.Check(ctx, r.Avatar)
	if err != nil {
		return AvatarAddress{}, err
	}
	u, err = avatar.Set(ctx, f.Avatars, f.users, s.Subject, u, picture)
	return AvatarAddress{entity.AvatarURL(u, f.WebURL)}, err
}
