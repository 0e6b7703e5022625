package groups

import (
	"context"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/sharing"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// Group is a group as the REST API shows it.
type Group struct {
	ID          int64         `json:"id"`
	Name        string        `json:"name"`
	Path        string        `json:"path"`
	Description string        `json:"description"`
	Visibility  string        `json:"visibility" doc:"private, internal or public."`
	FullName    string        `json:"full_name"`
	FullPath    string        `json:"full_path"`
	ParentID    *int64        `json:"parent_id"`
	AvatarURL   *string       `json:"avatar_url"`
	WebURL      string        `json:"web_url"`
	CreatedAt   endpoint.Time `json:"created_at"`
	Archived    bool          `json:"archived"`
	*Details
}

// Details are the fields of a single group that lists omit.
type Details struct {
	SharedWithGroups []sharing.Group `json:"shared_with_groups" doc:"Groups that the group itself is shared with, of those that the caller sees."`
}

// detailed shows a group with its details.
func (f *Family) detailed(ctx context.Context, by auth.Caller, s catalog.Scope) (Group, error) {
	shared, err := f.sharing.Show(ctx, by, s.Groups[0])
	if err != nil {
		return Group{}, err
	}
	shown := f.show(s)
	shown.Details = &Details{SharedWithGroups: shared}
	return shown, nil
}

func (f *Family) show(s catalog.Scope) Group {
	g := s.Groups[0]
	n := entity.ShowNamespace(s.Groups, f.WebURL)
	return Group{
		ID: n.ID, Name: n.Name, Path: n.Path, Description: g.Spec.Description,
		Visibility: entity.Visibility(catalog.Visibility(g.Spec.Visibility, s.Groups)),
		FullName:   entity.FullName(s.Groups), FullPath: n.FullPath, ParentID: n.ParentID,
		AvatarURL: n.AvatarURL, WebURL: n.WebURL, CreatedAt: endpoint.Time(g.CreationTimestamp.Time),
	}
}
