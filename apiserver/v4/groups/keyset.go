package groups

import (
	"cmp"
	"encoding/base64"
	"encoding/json"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// position is the place of a group in a list: its value of the field that orders the list, and its id.
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

// cursor encodes the position for clients.
func (p position) cursor() string {
	text, _ := json.Marshal(p) // Encoding strings and numbers cannot fail.
	return base64.RawURLEncoding.EncodeToString(text)
}

// past returns a predicate for the groups behind the cursor of a request, or nil without a cursor.
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
