package badges

import (
	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/badge"
)

// Preview is a badge that is not necessarily declared.
type Preview struct {
	Name             *string `json:"name"`
	LinkURL          string  `json:"link_url" doc:"As declared, with placeholders."`
	ImageURL         string  `json:"image_url" doc:"As declared, with placeholders."`
	RenderedLinkURL  string  `json:"rendered_link_url" doc:"With the values of the project in place of the placeholders."`
	RenderedImageURL string  `json:"rendered_image_url" doc:"With the values of the project in place of the placeholders."`
}

// Badge is "Badge" of the core interface document.
type Badge struct {
	ID int64 `json:"id"`
	Preview
	Kind string `json:"kind" doc:"project, or group for a badge of a group."`
}

// show renders the spec, because the status can be outdated.
func show(b *v1alpha1.Badge, v badge.Values) Badge {
	kind := "project"
	if b.Spec.GroupRef != nil {
		kind = "group"
	}
	return Badge{ID: b.RESTID(), Preview: preview(b.Spec, v), Kind: kind}
}

func preview(spec v1alpha1.BadgeSpec, v badge.Values) Preview {
	shown := Preview{
		LinkURL: spec.LinkURL, ImageURL: spec.ImageURL,
		RenderedLinkURL: badge.Render(spec.LinkURL, v), RenderedImageURL: badge.Render(spec.ImageURL, v),
	}
	if spec.Name != "" {
		shown.Name = &spec.Name
	}
	return shown
}

// maxName is the maximum number of characters in a name.
const maxName = 255

// check returns the validation errors of a badge.
func check(spec v1alpha1.BadgeSpec) error {
	var a endpoint.Attributes
	a.Text("name", spec.Name, maxName)
	if err := badge.Check(spec.LinkURL); err != nil {
		a.Refuse("link_url", err.Error())
	}
	if err := badge.Check(spec.ImageURL); err != nil {
		a.Refuse("image_url", err.Error())
	}
	return a.Err()
}
