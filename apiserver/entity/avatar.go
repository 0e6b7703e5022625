package entity

import (
	"fmt"
	"regexp"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// AvatarURL returns the address of the avatar of an object at Forgeplane's own listener, or nil if the object has none. webURL is the address
// of the installation.
func AvatarURL(of v1alpha1.Pictured, webURL string) *string {
	if *of.Avatar() == "" {
		return nil
	}
	kind := "user"
	switch of.(type) {
	case *v1alpha1.Project:
		kind = "project"
	case *v1alpha1.Group:
		kind = "group"
	}
	url := fmt.Sprintf("%s/uploads/-/system/%s/avatar/%d/avatar.png", webURL, kind, of.RESTID())
	return &url
}

var avatarPath = regexp.MustCompile(`^/uploads/-/system/(project|group|user)/avatar/([0-9]{1,19})/avatar\.png$`)

// AvatarEndpoint returns the path of the endpoint of the REST API that serves what is at a path of Forgeplane's own listener, if AvatarURL
// returns such a path.
func AvatarEndpoint(path string) (endpoint string, is bool) {
	parts := avatarPath.FindStringSubmatch(path)
	if parts == nil {
		return "", false
	}
	return "/" + parts[1] + "s/" + parts[2] + "/avatar", true
}
