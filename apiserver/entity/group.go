package entity

import (
	"cmp"
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// GroupPlace is a group as the place where a project or group is, or to which it can move.
type GroupPlace struct {
	ID        int64   `json:"id"`
	Name      string  `json:"name"`
	AvatarURL *string `json:"avatar_url"`
	WebURL    string  `json:"web_url"`
	FullName  string  `json:"full_name"`
	FullPath  string  `json:"full_path"`
}

// ShowGroupPlace shows the first group of a chain that catalog.Ancestors returned; webURL is the address of the installation.
func ShowGroupPlace(chain []*v1alpha1.Group, webURL string) GroupPlace {
	n := ShowNamespace(chain, webURL)
	return GroupPlace{ID: n.ID, Name: n.Name, WebURL: n.WebURL, AvatarURL: n.AvatarURL, FullName: FullName(chain), FullPath: catalog.FullPath(chain)}
}

// PageGroupPlaces returns a page of the groups whose name or full path contains a text, in the order of their ids.
func PageGroupPlaces(p endpoint.Paging, all []catalog.Seen, search, webURL string) endpoint.List[GroupPlace] {
	search = strings.ToLower(search)
	all = slices.DeleteFunc(all, func(s catalog.Seen) bool {
		g := s.Groups[0]
		return !strings.Contains(strings.ToLower(catalog.FullPath(s.Groups)+"\n"+catalog.Title(g.Spec.Name, g.Spec.Path)), search)
	})
	slices.SortFunc(all, func(a, b catalog.Seen) int { return cmp.Compare(a.Groups[0].RESTID(), b.Groups[0].RESTID()) })
	return endpoint.Page(p, all, func(s catalog.Seen) GroupPlace { return ShowGroupPlace(s.Groups, webURL) })
}
