package groups

import (
	"cmp"
	"encoding/base64"
	"encoding/json"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// position is where a group is in a list: by what the list is in order of, and by its id where that is the same.
type position struct {
	Value string `json:"value,omitempty"`
	ID    int64  `json:"id"`
}

func positionOf(by string, g *v1alpha1.Group) position {
	p := position{ID: g.RESTID()}
	switch by {
	case "name":
		p.Value = catalog.Title(g.Spec.Name, g.Spec.Path)
	case "path":
		p.Value = g.Spec.Path
	}
	return p
}

func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.Value, q.Value), cmp.Compare(p.ID, q.ID))
}

// cursor is the position as clients send it back.
func (p position) cursor() string {
	text, _ := json.Marshal(p) // It has nothing that cannot be written.
	return base64.RawURLEncoding.EncodeToString(text)
}

// past tells which groups come after the cursor of a request; nil without one.
func (r *listRequest) past() (func(catalog.Seen) bool, error) {
	if r.Cursor == "" {
		return nil, nil
	}
	var at position
	text, err := base64.RawURLEncoding.DecodeString(r.Cursor)
	if err == nil {
		err = json.Unmarshal(text, &at)
	}
	if err != nil {
		return nil, endpoint.Parameters("cursor is invalid")
	}
	return func(s catalog.Seen) bool {
		order := positionOf(r.OrderBy, s.Groups[0]).compare(at)
		if r.Sort == "desc" {
			return order < 0
		}
		return order > 0
	}, nil
}
