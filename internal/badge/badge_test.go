package badge_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	. "github.com/forgeplane/forgeplane/internal/badge"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// commit is a well-formed commit id.
const commit = "0123456789abcdef0123456789abcdef01234567"

// scope returns the scope of the project acme/sub/web.
func scope(change ...func(p *v1alpha1.Project)) catalog.Scope {
	group := func(path string) *v1alpha1.Group { return &v1alpha1.Group{Spec: v1alpha1.GroupSpec{Path: path}} }
	p := &v1alpha1.Project{
		Spec:   v1alpha1.ProjectSpec{ID: 17, Path: "web", Name: "The Web", DefaultBranch: "release/1.0"},
		Status: v1alpha1.ProjectStatus{HeadCommit: commit},
	}
	for _, c := range change {
		c(p)
	}
	return catalog.Scope{Project: p, Groups: []*v1alpha1.Group{group("sub"), group("acme")}}
}

func TestRender_replacesPlaceholders(t *testing.T) {
	for template, want := range map[string]string{
		"https://a/%{project_path}":                   "https://a/acme/sub/web",
		"https://a/%{project_namespace}":              "https://a/acme/sub",
		"https://a/%{project_title}":                  "https://a/The%20Web",
		"https://a/%{project_name}":                   "https://a/web",
		"https://a/?id=%{project_id}":                 "https://a/?id=17",
		"https://a/%{default_branch}.svg":             "https://a/release/1.0.svg",
		"https://a/%{commit_sha}#%{commit_sha}":       "https://a/" + commit + "#" + commit,
		"https://a/%{group_name}":                     "https://a/acme",
		"http://a/%{project_id}%{project_id}":         "http://a/1717",
		"HTTPS://a/%{project_name}":                   "HTTPS://a/web",
		"https://%{project_name}.pages.example.com/":  "https://web.pages.example.com/",
		"https://a:80%{project_id}/":                  "https://a:8017/",
		"https://a/%{unknown}/%{project_name}":        "https://a/%{unknown}/web",
		"https://a/%{latest_tag}%{gitlab_server}":     "https://a/%{latest_tag}%{gitlab_server}",
		"https://a/%{}%{ project_name}%{PROJECT_ID}":  "https://a/%{}%{ project_name}%{PROJECT_ID}",
		"https://a/%%{project_id}%{%{project_id}}":    "https://a/%17%{17}",
		"https://a/%{project_id":                      "https://a/%{project_id",
		"https://%{project_path}/":                    "https://%{project_path}/",
		"https://%{project_title}.example.com/":       "https://%{project_title}.example.com/",
		"https://a?%{project_path}":                   "https://a?acme/sub/web",
		"https://a#%{project_path}":                   "https://a#acme/sub/web",
		"https://%{nothing/%{project_path}@b/":        "https://%{nothing/acme/sub/web@b/",
		"https://a/plain%20text?q=%7B#f":              "https://a/plain%20text?q=%7B#f",
		"https://%{default_branch}:%{project_id}/x/y": "https://%{default_branch}:17/x/y",
	} {
		if got := Render(template, ValuesOf(scope())); got != want {
			t.Errorf("%s became %s, want %s", template, got, want)
		}
	}
}

func TestRender_keepsPlaceholdersWithoutValue(t *testing.T) {
	all := "https://a/%{project_id}/%{commit_sha}/%{default_branch}/%{group_name}/%{project_title}"
	bare := scope(func(p *v1alpha1.Project) {
		p.Spec = v1alpha1.ProjectSpec{Path: "web", ImportURL: "https://b", Name: ".."}
		p.Status = v1alpha1.ProjectStatus{}
	})
	bare.Groups[1].Labels = map[string]string{v1alpha1.LabelPersonal: "1"}
	if got := Render(all, ValuesOf(bare)); got != all {
		t.Errorf("got %s", got)
	}
	if got := Render(all, nil); got != all {
		t.Errorf("without values: %s", got)
	}
}

func TestRender_knowsOnlyRootGroupOfGroup(t *testing.T) {
	s := scope()
	s.Project = nil
	if got := Render("https://a/%{group_name}/%{project_name}/%{project_namespace}", ValuesOf(s)); got != "https://a/acme/%{project_name}/%{project_namespace}" {
		t.Errorf("got %s", got)
	}
}

func TestRender_fallsBackToDefaultBranchOfRepository(t *testing.T) {
	for want, change := range map[string]func(p *v1alpha1.Project){
		"https://a/main":  func(p *v1alpha1.Project) { p.Spec.DefaultBranch = "" },
		"https://a/trunk": func(p *v1alpha1.Project) { p.Spec.DefaultBranch, p.Status.DefaultBranch = "", "trunk" },
	} {
		if got := Render("https://a/%{default_branch}", ValuesOf(scope(change))); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// hostile are values that have a meaning in a URL, in a page, or if a template is rendered twice.
var hostile = []string{
	`" onerror="alert(1)`, "<script>", "a b", "a#b", "a?b=c&d", "a/../../b", "//evil.example", "@evil.example", "a:b@evil.example", `a\b`, "%2e%2e", "%{commit_sha}",
	"%{project_path}", "{commit_sha}", "javascript:alert(1)", "\r\nSet-Cookie: a=b", "\x00", "\x1b[31m", "\u202e", "日本", "a\xff\xfe", "'", ";", "`", "..", ".", "evil.example",
}

func TestRender_escapesHostileValues(t *testing.T) {
	for _, text := range hostile {
		s := scope(func(p *v1alpha1.Project) {
			p.Spec.Name, p.Spec.DefaultBranch, p.Spec.Path, p.Status.HeadCommit = text, text, text, text
		})
		for _, name := range []string{"project_title", "default_branch", "project_name", "project_path", "commit_sha"} {
			expectInPlace(t, "https://img.example.com/a/%{"+name+"}/b?c=%{"+name+"}&d=e#%{"+name+"}f", ValuesOf(s))
		}
	}
}

// expectInPlace fails the test if the rendered URL does not have the same structure as the template.
func expectInPlace(t *testing.T, template string, v Values) {
	t.Helper()
	got := Render(template, v)
	if strings.ContainsAny(got, "\"<>\\^` \r\n\t\x00") {
		t.Errorf("%s became %q", template, got)
	}
	if strings.Count(got, "#") != strings.Count(template, "#") || strings.Count(got, "?") != strings.Count(template, "?") ||
		strings.Count(got, "&") != strings.Count(template, "&") || strings.Count(got, "@") != strings.Count(template, "@") {
		t.Errorf("%s has other parts: %q", template, got)
	}
	if before, after := authority(template), authority(got); !strings.Contains(before, "%{") && before != after {
		t.Errorf("%s is of another host: %q", template, got)
	}
	if again := Render(got, v); strings.Contains(template, "%{") && !strings.Contains(got, "%{") && again != got {
		t.Errorf("%s became %q, and that %q", template, got, again)
	}
	if err := Check(got); Check(template) == nil && err != nil && !errors.Is(err, ErrLong) {
		t.Errorf("%s became %q, which %v", template, got, err)
	}
}

// authority returns the scheme, host and port of a URL as browsers understand them.
func authority(u string) string {
	scheme, rest, _ := strings.Cut(u, "://")
	if end := strings.IndexAny(rest, `/?#\`); end >= 0 {
		rest = rest[:end]
	}
	return scheme + "://" + rest
}

func TestRender_keepsTemplateIfResultIsTooLong(t *testing.T) {
	long := scope(func(p *v1alpha1.Project) { p.Spec.Name = strings.Repeat("日", 255) })
	template := "https://a/" + strings.Repeat("%{project_title}", 100)
	if got := Render(template, ValuesOf(long)); got != template {
		t.Errorf("it has %d characters", len(got))
	}
	one := "https://a/%{project_title}"
	if got := Render(one, ValuesOf(long)); len(got) != len("https://a/")+255*9 {
		t.Errorf("one of them has %d characters", len(got))
	}
}

func TestCheck_refusesInvalidURLs(t *testing.T) {
	for u, want := range map[string]error{
		"https://ci.example.com/badge.svg": nil, "http://a": nil, "HTTPS://A/": nil, "https://%{project_name}.example.com/%{x}": nil,
		"https://a/@b": nil, "https://a?b@c": nil, "https://[::1]:80/": nil, "https://münchen.example/ü": nil, "http://a/'": nil,
		"": ErrBlank, " ": ErrBlank, "\t\n": ErrBlank,
		"javascript:alert(1)": ErrScheme, "ftp://a/b": ErrScheme, "data:text/html,x": ErrScheme, "//a/b": ErrScheme, "a": ErrScheme, "%{project_path}": ErrScheme,
		" https://a": ErrScheme, "xhttps://a": ErrScheme, "http2://a": ErrScheme,
		"https:": ErrMalformed, "https://": ErrMalformed, "https:///a": ErrMalformed, "https://?a": ErrMalformed, "https:a": ErrMalformed, "https:/a": ErrMalformed,
		"https://:80/": ErrMalformed, "https://a b": ErrMalformed, "https://a\nb": ErrMalformed, `https://a"`: ErrMalformed, `https://a\@b`: ErrMalformed,
		"https://a/<b>": ErrMalformed, "https://a/\x00": ErrMalformed, "https://a/`": ErrMalformed, "https://a/^": ErrMalformed,
		"https://a:b@c/": ErrCredentials, "https://a@b": ErrCredentials, "https://%{project_name}@evil.example/": ErrCredentials, "https://a@b?c": ErrCredentials,
		"https://a/" + strings.Repeat("a", MaxURL): ErrLong,
	} {
		if got := Check(u); !errors.Is(got, want) {
			t.Errorf("%.60q: got %v, want %v", u, got, want)
		}
	}
}

func FuzzRender(f *testing.F) {
	for i, text := range hostile {
		f.Add("https://a/%{project_title}?%{default_branch}#%{project_path}", text, hostile[(i+7)%len(hostile)])
		f.Add("https://%{project_title}.a:%{commit_sha}/%{project_title}", text, text)
	}
	f.Add("https://%{project_title}", "a.b", "-")
	f.Add("http://a%{default_branch}@b/", "/", "")
	f.Fuzz(func(t *testing.T, template, one, other string) {
		if Check(template) != nil {
			return
		}
		v := ValuesOf(scope(func(p *v1alpha1.Project) {
			p.Spec.Name, p.Spec.Path, p.Spec.DefaultBranch, p.Status.HeadCommit = one, other, one, other
		}))
		got := Render(template, v)
		was, _, _ := strings.Cut(template, ":")
		if is, _, _ := strings.Cut(got, ":"); is != was {
			t.Errorf("%q became %q, of another scheme", template, got)
		}
		if len(got) > 8192 {
			t.Errorf("%q became %d bytes", template, len(got))
		}
		if u, err := url.Parse(got); err == nil && (u.User != nil || u.Host == "") {
			t.Errorf("%q became %q, of the host %q with the user %v", template, got, u.Host, u.User)
		}
		expectInPlace(t, template, v)
	})
}
