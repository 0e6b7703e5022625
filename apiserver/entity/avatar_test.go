package entity_test

import (
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/entity"
)

func TestAvatarURL_leadsToItsEndpoint(t *testing.T) {
	p, g, u := &v1alpha1.Project{}, &v1alpha1.Group{}, &v1alpha1.User{}
	p.Spec.ID, g.Spec.ID, u.Spec.ID = 7, 8, 9
	for want, of := range map[string]v1alpha1.Pictured{"/projects/7/avatar": p, "/groups/8/avatar": g, "/users/9/avatar": u} {
		if got := entity.AvatarURL(of, "https://forge.example"); got != nil {
			t.Errorf("without an avatar: got %s", *got)
		}
		*of.Avatar() = "x"
		url := entity.AvatarURL(of, "https://forge.example")
		if url == nil {
			t.Fatalf("%s: there is no URL", want)
		}
		path, found := strings.CutPrefix(*url, "https://forge.example")
		if got, is := entity.AvatarEndpoint(path); !found || !is || got != want {
			t.Errorf("%s: got %q, %t; want %s", *url, got, is, want)
		}
	}
}

func TestAvatarEndpoint_refusesOtherPaths(t *testing.T) {
	for _, path := range []string{
		"/uploads/-/system/project/avatar/7/other.png", "/uploads/-/system/project/avatar/a%2Fb/avatar.png", "/uploads/-/system/tag/avatar/7/avatar.png",
		"/uploads/-/system/project/avatar/7/avatar.png/", "/x/uploads/-/system/project/avatar/7/avatar.png",
	} {
		if got, is := entity.AvatarEndpoint(path); is {
			t.Errorf("%s: got %s", path, got)
		}
	}
}
