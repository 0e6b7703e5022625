package markdown_test

import (
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/markdown"
)

func TestMarkdown_isRenderedSafely(t *testing.T) {
	f := familytest.New(t, familytest.User("otto", 1),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic),
		familytest.Project("acme", "secret", 21, "acme", v1alpha1.VisibilityPrivate))
	f.Serve(markdown.New(f.Kit).Table())
	const missing = `404 {"message":"404 Project Not Found"}`
	wide := strings.Repeat("a|", 300) + `\n` + strings.Repeat("-|", 300) + `\n` + strings.Repeat(`x\n`, 300)
	for body, want := range map[string]string{
		`{"text":"` + wide + `"}`:                      `400 {"message":"400 Bad request - text takes too long to render: send a shorter text, or less nested, with smaller tables, and with fewer links and brackets"}`,
		`{"text":"# Hi *there*"}`:                      `201 {"html":"<h1>Hi <em>there</em></h1>\n"}`,
		`{"text":"~~old~~","gfm":true}`:                `201 {"html":"<p><del>old</del></p>\n"}`,
		`{"text":"<script>alert(1)</script>x"}`:        `201 {"html":"x"}`,
		`{"text":"x","gfm":true,"project":"acme/web"}`: `201 {"html":"<p>x</p>\n"}`,
		`{"text":"x","project":"20"}`:                  `201 {"html":"<p>x</p>\n"}`,
		`{"text":"x","project":"acme/secret"}`:         missing,
		`{"text":"x","project":"acme/none"}`:           missing,
		`{"text":""}`:                                  `201 {"html":""}`,
		`{"project":"acme/web"}`:                       `400 {"error":"text is missing"}`,
	} {
		if got := f.As("otto", "POST /markdown", body).String(); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
}
