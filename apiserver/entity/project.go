package entity

import (
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// ProjectSummary is the part of a project that is shown to everybody who can see it.
type ProjectSummary struct {
	ID                int64         `json:"id"`
	Description       string        `json:"description"`
	Name              string        `json:"name"`
	NameWithNamespace string        `json:"name_with_namespace"`
	Path              string        `json:"path"`
	PathWithNamespace string        `json:"path_with_namespace"`
	CreatedAt         endpoint.Time `json:"created_at"`
	DefaultBranch     string        `json:"default_branch"`
	TagList           []string      `json:"tag_list"`
	Topics            []string      `json:"topics"`
	SSHURLToRepo      string        `json:"ssh_url_to_repo" doc:"Always empty: Git is served over HTTP."`
	HTTPURLToRepo     string        `json:"http_url_to_repo"`
	WebURL            string        `json:"web_url"`
	AvatarURL         *string       `json:"avatar_url"`
	StarCount         int           `json:"star_count"`
	LastActivityAt    endpoint.Time `json:"last_activity_at"`
	Namespace         Namespace     `json:"namespace"`
}

// SummarizeProject shows the project of a scope; webURL is the address of the installation, without a slash at its end.
func SummarizeProject(s catalog.Scope, webURL string) ProjectSummary {
	p := s.Project
	path, name := s.Path(), catalog.Title(p.Spec.Name, p.Spec.Path)
	topics := p.Spec.Topics
	if topics == nil {
		topics = []string{}
	}
	return ProjectSummary{
		ID: p.RESTID(), Description: p.Spec.Description,
		Name: name, NameWithNamespace: FullName(s.Groups, name), Path: p.Spec.Path, PathWithNamespace: path,
		CreatedAt: endpoint.Time(p.CreationTimestamp.Time), LastActivityAt: endpoint.Time(p.LastActivity().Time), DefaultBranch: catalog.DefaultBranch(p),
		TagList: topics, Topics: topics,
		HTTPURLToRepo: webURL + "/" + path + ".git", WebURL: webURL + "/" + path,
		AvatarURL: AvatarURL(p, webURL), Namespace: ShowNamespace(s.Groups, webURL),
	}
}

// UnseenProject returns a project for callers who may not see it but must identify it: it has only the id.
func UnseenProject(id int64) ProjectSummary {
	return ProjectSummary{ID: id, TagList: []string{}, Topics: []string{}}
}

// ProjectIdentity is the part of a project that says which one it is.
type ProjectIdentity struct {
	ID                int64         `json:"id"`
	Description       string        `json:"description"`
	Name              string        `json:"name"`
	NameWithNamespace string        `json:"name_with_namespace"`
	Path              string        `json:"path"`
	PathWithNamespace string        `json:"path_with_namespace"`
	CreatedAt         endpoint.Time `json:"created_at"`
}

// IdentifyProject shows which project a scope is about.
func IdentifyProject(s catalog.Scope) ProjectIdentity {
	p := s.Project
	name := catalog.Title(p.Spec.Name, p.Spec.Path)
	return ProjectIdentity{
		ID: p.RESTID(), Description: p.Spec.Description, Name: name, NameWithNamespace: FullName(s.Groups, name),
		Path: p.Spec.Path, PathWithNamespace: s.Path(), CreatedAt: endpoint.Time(p.CreationTimestamp.Time),
	}
}
