// Package project is how the REST API shows a project wherever one occurs.
package project

import (
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// Summary is what everybody who sees a project is shown of it.
type Summary struct {
	ID                int64               `json:"id"`
	Description       string              `json:"description"`
	Name              string              `json:"name"`
	NameWithNamespace string              `json:"name_with_namespace"`
	Path              string              `json:"path"`
	PathWithNamespace string              `json:"path_with_namespace"`
	CreatedAt         endpoint.Time       `json:"created_at"`
	DefaultBranch     string              `json:"default_branch"`
	TagList           []string            `json:"tag_list"`
	Topics            []string            `json:"topics"`
	SSHURLToRepo      string              `json:"ssh_url_to_repo" doc:"Always empty: Git is served over HTTP."`
	HTTPURLToRepo     string              `json:"http_url_to_repo"`
	WebURL            string              `json:"web_url"`
	AvatarURL         *string             `json:"avatar_url"`
	StarCount         int                 `json:"star_count"`
	LastActivityAt    endpoint.Time       `json:"last_activity_at"`
	Namespace         namespace.Namespace `json:"namespace"`
}

// Of shows the project of a scope; webURL is the address of the installation, without a slash at its end.
func Of(s catalog.Scope, webURL string) Summary {
	p := s.Project
	path, name := s.Path(), catalog.Title(p.Spec.Name, p.Spec.Path)
	created := endpoint.Time(p.CreationTimestamp.Time)
	return Summary{
		ID: p.RESTID(), Description: p.Spec.Description,
		Name: name, NameWithNamespace: namespace.FullName(s.Groups, name), Path: p.Spec.Path, PathWithNamespace: path,
		CreatedAt: created, LastActivityAt: created, DefaultBranch: catalog.DefaultBranch(p),
		TagList: []string{}, Topics: []string{},
		HTTPURLToRepo: webURL + "/" + path + ".git", WebURL: webURL + "/" + path,
		Namespace: namespace.Show(s.Groups, webURL),
	}
}

// Unseen returns a project for callers who may not see it but must identify it: it has only the id.
func Unseen(id int64) Summary { return Summary{ID: id, TagList: []string{}, Topics: []string{}} }
