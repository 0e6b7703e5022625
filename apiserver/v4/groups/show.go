package groups

import (
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
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
}

func (f *Family) show(s catalog.Scope) Group {
	g := s.Groups[0]
	n := namespace.Show(s.Groups, f.webURL)
	return Group{
		ID: n.ID, Name: n.Name, Path: n.Path, Description: g.Spec.Description,
		Visibility: namespace.Visibility(catalog.Visibility(g.Spec.Visibility, s.Groups)),
		FullName:   namespace.FullName(s.Groups), FullPath: n.FullPath, ParentID: n.ParentID,
		WebURL: n.WebURL, CreatedAt: endpoint.Time(g.CreationTimestamp.Time),
	}
}
