// Package entity is how the REST API shows the users, projects and namespaces that occur in the answers of several families.
package entity

import (
	"strings"

	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// Namespace is a group as the holder of projects.
type Namespace struct {
	ID        int64   `json:"id"`
	Name      string  `json:"name"`
	Path      string  `json:"path"`
	Kind      string  `json:"kind" doc:"group, or user for a personal namespace."`
	FullPath  string  `json:"full_path"`
	ParentID  *int64  `json:"parent_id"`
	AvatarURL *string `json:"avatar_url"`
	WebURL    string  `json:"web_url"`
}

// ShowNamespace shows the first group of a chain that catalog.Ancestors returned; webURL is the address of the installation.
func ShowNamespace(chain []*v1alpha1.Group, webURL string) Namespace {
	g, path := chain[0], catalog.FullPath(chain)
	n := Namespace{
		ID: g.RESTID(), Name: catalog.Title(g.Spec.Name, g.Spec.Path), Path: g.Spec.Path, Kind: "group",
		FullPath: path, AvatarURL: AvatarURL(g, webURL), WebURL: webURL + "/groups/" + path,
	}
	if namespace.Personal(g) {
		n.Kind, n.WebURL = "user", webURL+"/"+g.Spec.Path
	}
	if len(chain) > 1 {
		n.ParentID = ptr.To(chain[1].RESTID())
	}
	return n
}

// FullName joins what people call the groups of a chain and what is below them.
func FullName(chain []*v1alpha1.Group, below ...string) string {
	names := make([]string, 0, len(chain)+len(below))
	for i := len(chain) - 1; i >= 0; i-- {
		names = append(names, catalog.Title(chain[i].Spec.Name, chain[i].Spec.Path))
	}
	return strings.Join(append(names, below...), " / ")
}

// Visibility is a visibility in the words of the REST API.
func Visibility(v v1alpha1.Visibility) string { return strings.ToLower(string(v)) }

// Visibilities are the words of the REST API for the declared ones.
var Visibilities = map[string]v1alpha1.Visibility{
	"private": v1alpha1.VisibilityPrivate, "internal": v1alpha1.VisibilityInternal, "public": v1alpha1.VisibilityPublic,
}
