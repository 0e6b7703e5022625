package badges_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	. "github.com/forgeplane/forgeplane/apiserver/v4/badges"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// commit is a well-formed commit id.
const commit = "0123456789abcdef0123456789abcdef01234567"

func declared(id int64, name string, project, group string) *v1alpha1.Badge {
	b := &v1alpha1.Badge{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: fmt.Sprintf("badge-%d-%s", id, strings.ToLower(name))},
		Spec: v1alpha1.BadgeSpec{
			ID: id, Name: name, LinkURL: "https://ci.example/%{project_path}", ImageURL: "https://ci.example/%{commit_sha}.svg",
		},
	}
	if project != "" {
		b.Spec.ProjectRef = &v1alpha1.Reference{Name: project}
	} else {
		b.Spec.GroupRef = &v1alpha1.Reference{Name: group}
	}
	return b
}

// newForge returns a forge with the public project acme/sub/web, which has a head commit, and the empty private project
// acme/sub/secret. Web shows one badge of each group above it and two badges of its own.
func newForge(t *testing.T, more ...client.Object) *familytest.Forge {
	t.Helper()
	web := familytest.Project("acme", "web", 20, "sub", v1alpha1.VisibilityPublic)
	web.Spec.Name, web.Status.HeadCommit = "The Web", commit
	f := familytest.New(t, append([]client.Object{
		familytest.User("root", 1, familytest.Admin), familytest.User("mary", 2), familytest.User("dora", 3), familytest.User("otto", 4),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), familytest.Group("acme", "sub", 11, "acme", v1alpha1.VisibilityPublic),
		web, familytest.Project("acme", "secret", 21, "sub", v1alpha1.VisibilityPrivate),
		familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleMaintainer), familytest.InGroup("acme", "acme", "dora", v1alpha1.RoleDeveloper),
		declared(33, "Own", "web", ""), declared(32, "Build", "", "acme"), declared(31, "Build", "web", ""), declared(30, "build", "", "sub"),
		declared(40, "Own", "secret", ""),
	}, more...)...)
	f.Repositories = familytest.Repositories(t, f.Catalog)
	return f.Serve(New(f.Kit).Table())
}

func TestListBadges_keepsTheOrderOfCreation(t *testing.T) {
	for request, want := range map[string]string{
		"GET /projects/20/badges":                   "33 project, 32 group, 31 project, 30 group",
		"GET /projects/20/badges?name=Build":        "32 group, 31 project",
		"GET /projects/20/badges?name=build":        "30 group",
		"GET /projects/20/badges?name=Bui":          "",
		"GET /projects/20/badges?name=":             "33 project, 32 group, 31 project, 30 group",
		"GET /projects/20/badges?per_page=2&page=2": "31 project, 30 group",
		"GET /projects/acme%2Fsub%2Fsecret/badges":  "32 group, 30 group, 40 project",
	} {
		var got []string
		for _, b := range familytest.Decode[[]Badge](t, newForge(t, declared(0, "New", "web", "")).As("mary", request, "")) {
			got = append(got, fmt.Sprintf("%d %s", b.ID, b.Kind))
		}
		if all := strings.Join(got, ", "); all != want {
			t.Errorf("%s: got %s, want %s", request, all, want)
		}
	}
}

func TestGetBadge_fillsInProjectValues(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	g.Expect(f.As("", "GET /projects/20/badges/33", "").Body).To(MatchJSON(`{"id":33,"name":"Own","kind":"project",
		"link_url":"https://ci.example/%{project_path}","image_url":"https://ci.example/%{commit_sha}.svg",
		"rendered_link_url":"https://ci.example/acme/sub/web","rendered_image_url":"https://ci.example/` + commit + `.svg"}`))
	inherited := familytest.Decode[[]Badge](t, f.As("", "GET /projects/20/badges?name=build", ""))[0]
	g.Expect(inherited.RenderedLinkURL).To(Equal("https://ci.example/acme/sub/web"))
	empty := familytest.Decode[Badge](t, f.As("mary", "GET /projects/21/badges/40", ""))
	g.Expect(empty.RenderedImageURL).To(Equal("https://ci.example/%{commit_sha}.svg"))
	g.Expect(empty.RenderedLinkURL).To(Equal("https://ci.example/acme/sub/secret"))
}

func TestRenderBadge_previewsTheRenderedURLs(t *testing.T) {
	got := newForge(t).As("mary", "GET /projects/20/badges/render?link_url=http://%25%7Bproject_name%7D.a/%25%7Bproject_title%7D&image_url=https://a?%25%7Bx%7D%25%7Bproject_id%7D", "")
	want := `200 {"name":null,"link_url":"http://%{project_name}.a/%{project_title}","image_url":"https://a?%{x}%{project_id}",` +
		`"rendered_link_url":"http://web.a/The%20Web","rendered_image_url":"https://a?%{x}20"}`
	if got.String() != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestBadge_isStoredAsAnObject(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	const body = `{"link_url":"https://a/%{project_id}","image_url":"https://b","name":"Build"}`
	made := familytest.Decode[Badge](t, f.As("mary", "POST /projects/acme%2Fsub%2Fweb/badges", body))
	g.Expect(made.ID).To(BeNumerically(">=", 100))
	g.Expect(made.RenderedLinkURL).To(Equal("https://a/20"))
	g.Expect(made.Kind).To(Equal("project"))
	again := familytest.Decode[Badge](t, f.As("mary", "POST /projects/20/badges", body))
	g.Expect(again.ID).NotTo(Equal(made.ID), "there may be two of the same")
	b := stored(t, f, made.ID)
	g.Expect(b.Namespace).To(Equal("acme"))
	g.Expect(b.Name).To(HavePrefix("web-build-"))
	g.Expect(b.Spec.ProjectRef).To(HaveValue(Equal(f.Named(&v1alpha1.Project{}, "acme/web"))))

	path := "/projects/20/badges/" + strconv.FormatInt(made.ID, 10)
	changed := familytest.Decode[Badge](t, f.As("mary", "PUT "+path, `{"link_url":"https://c/%{project_name}"}`))
	g.Expect(changed.RenderedLinkURL).To(Equal("https://c/web"))
	g.Expect(changed.ImageURL).To(Equal("https://b"))
	g.Expect(changed.Name).To(HaveValue(Equal("Build")))
	g.Expect(stored(t, f, made.ID).Spec.LinkURL).To(Equal("https://c/%{project_name}"))
	unnamed := familytest.Decode[Badge](t, f.As("mary", "PUT "+path, `{"name":null}`))
	g.Expect(unnamed.Name).To(BeNil())
	g.Expect(familytest.Decode[Badge](t, f.As("", "GET "+path, ""))).To(Equal(unnamed))

	var writes []string
	f.Before = func(verb string, _ client.Object) error { writes = append(writes, verb); return nil }
	g.Expect(familytest.Decode[Badge](t, f.As("mary", "PUT "+path, `{}`))).To(Equal(unnamed))
	g.Expect(writes).To(BeEmpty(), "nothing was to be changed")

	g.Expect(f.As("mary", "DELETE "+path, "").String()).To(Equal("204"))
	g.Expect(f.As("mary", "GET "+path, "").String()).To(Equal(`404 {"message":"404 Not found"}`))
}

func TestInvalidRequests_areRefusedWithAReason(t *testing.T) {
	const scheme, malformed = `is blocked: Only allowed schemes are http, https`, `must be a valid URL`
	long := strings.Repeat("a", 256)
	tests := []struct{ request, body, want string }{
		{"POST /projects/20/badges", ``, `400 {"error":"link_url is missing, image_url is missing"}`},
		{"POST /projects/20/badges", `{"image_url":"https://a"}`, `400 {"error":"link_url is missing"}`},
		{"POST /projects/20/badges", `{"link_url":"javascript:alert(1)","image_url":"ftp://a"}`, `400 {"message":{"image_url":["` + scheme + `"],"link_url":["` + scheme + `"]}}`},
		{"POST /projects/20/badges", `{"link_url":"https://","image_url":"https://a b"}`, `400 {"message":{"image_url":["` + malformed + `"],"link_url":["` + malformed + `"]}}`},
		{"POST /projects/20/badges", `{"link_url":"","image_url":"https://a"}`, `400 {"message":{"link_url":["can't be blank"]}}`},
		{"POST /projects/20/badges", `{"link_url":"https://a:b@c","image_url":"https://a"}`, `400 {"message":{"link_url":["cannot hold credentials"]}}`},
		{"POST /projects/20/badges", `{"link_url":"https://a","image_url":"https://a","name":"` + long + `"}`, `400 {"message":{"name":["is too long (maximum is 255 characters)"]}}`},
		{"POST /projects/20/badges", `{"link_url":["a"],"image_url":"https://a"}`, `400 {"error":"link_url is invalid"}`},
		{"PUT /projects/20/badges/33", `{"image_url":"data:x"}`, `400 {"message":{"image_url":["` + scheme + `"]}}`},
		{"PUT /projects/20/badges/33", `{"link_url":null}`, `400 {"message":{"link_url":["can't be blank"]}}`},
		{"GET /projects/20/badges/render?link_url=https://a", ``, `400 {"error":"image_url is missing"}`},
		{"GET /projects/20/badges/render?link_url=a&image_url=https://a", ``, `400 {"message":{"link_url":["` + scheme + `"]}}`},
		{"GET /projects/20/badges/x", ``, `400 {"error":"badge_id is invalid"}`},
		{"GET /projects/20/badges/0", ``, `404 {"message":"404 Not found"}`},
		{"GET /projects/20/badges/99", ``, `404 {"message":"404 Not found"}`},
		{"GET /projects/20/badges/40", ``, `404 {"message":"404 Not found"}`},
		{"GET /projects/20/badges/32", ``, `404 {"message":"404 Not found"}`},
		{"PUT /projects/20/badges/32", `{"name":"x"}`, `404 {"message":"404 Not found"}`},
		{"DELETE /projects/20/badges/32", ``, `404 {"message":"404 Not found"}`},
		{"DELETE /projects/20/badges/40", ``, `404 {"message":"404 Not found"}`},
		{"GET /projects/99/badges", ``, `404 {"message":"404 Project Not Found"}`},
	}
	for _, tt := range tests {
		t.Run(tt.request+" "+tt.body, func(t *testing.T) {
			if got := newForge(t, declared(0, "New", "web", "")).As("mary", tt.request, tt.body).String(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestSchema_acceptsTheSameURLsAsREST(t *testing.T) {
	schemas, err := familytest.LoadSchemas("../../../config/crd")
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range []string{
		"https://a", "http://a", "HtTpS://a/%{project_path}?a=b#c", "https://%{project_name}.a:80/", "https://[::1]/", "https://ü/日本", "https://a/@", "https://a?@",
		"", " ", "https:///a", "https://", "https://:1", "https://?", "https://#", "ftp://a", "javascript:alert(1)", "a", "%{project_path}", "xhttps://a", " https://a",
		"https://a b", "https://a\tb", "https://a\x00", "https://a\x7f", `https://a\b`, `https://a"`, "https://a<b", "https://a>b", "https://a^b", "https://a`b",
		"https://a@b", "https://a:b@c", "https://%{x}@c/", "https://a/b@c", "httpſ://a", "https://a\u0085b", "https://" + strings.Repeat("a", 2040), "https://" + strings.Repeat("a", 2041),
		"https://" + strings.Repeat("ü", 2040), "https://" + strings.Repeat("ü", 2041),
	} {
		b := declared(1, "x", "web", "")
		b.Spec.LinkURL = u
		refused := schemas.Admit(context.Background(), b, nil)
		body := fmt.Sprintf(`{"link_url":%s,"image_url":"https://a"}`, strings.ReplaceAll(strconv.QuoteToASCII(u), `\x`, `\u00`))
		got := newForge(t).As("mary", "POST /projects/20/badges", body)
		if (refused == nil) != (got.Code == 201) {
			t.Errorf("%.60q: REST says %.200s, and the schema %v", u, got, refused)
		}
	}
}

func TestRESTWrites_canBeRefusedByAProject(t *testing.T) {
	p := familytest.Project("acme", "fixed", 22, "acme", v1alpha1.VisibilityPublic)
	p.Spec.RESTWrites = v1alpha1.RESTWritesRefuse
	f := newForge(t, p, declared(50, "Own", "fixed", ""))
	for request, body := range map[string]string{
		"POST /projects/22/badges":      `{"link_url":"https://a","image_url":"https://b"}`,
		"PUT /projects/22/badges/50":    `{}`,
		"DELETE /projects/22/badges/50": ``,
	} {
		if got := f.As("mary", request, body); got.Code != 403 {
			t.Errorf("%s: got %s", request, got)
		}
	}
	if got := f.As("mary", "GET /projects/22/badges/render?link_url=https://a&image_url=https://b", ""); got.Code != 200 {
		t.Errorf("a preview: got %s", got)
	}
}

// stored returns the object with an id.
func stored(t *testing.T, f *familytest.Forge, id int64) *v1alpha1.Badge {
	t.Helper()
	var all v1alpha1.BadgeList
	if err := f.Client.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		if all.Items[i].Spec.ID == id {
			return &all.Items[i]
		}
	}
	t.Fatalf("there is no badge %d", id)
	return nil
}

func TestBadge_showsTheNewestCommitDespiteStaleStatus(t *testing.T) {
	g := NewWithT(t)
	web := familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic)
	web.Status.HeadCommit, web.Status.RefsChecksum = commit, "of a moment ago"
	shard := familytest.Shard(t, web)
	f := familytest.New(t, familytest.User("root", 1, familytest.Admin), web, shard, declared(30, "Build", "web", ""),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic))
	repos := familytest.Repositories(t, f.Catalog)
	f.Repositories = repos
	f.Serve(New(f.Kit).Table())
	c, repo := gittest.New(t, "sha1"), familytest.Init(t, repos, web, "sha1")
	for range 2 {
		newest := c.Commit(t, "README.md", rand.Text())
		c.Git(t, "push", "--quiet", "--mirror", repo.Dir())
		for request, status := range map[string]int{
			"GET /projects/20/badges": 200, "GET /projects/20/badges/30": 200, "PUT /projects/20/badges/30": 200, "POST /projects/20/badges": 201,
			"GET /projects/20/badges/render?link_url=https://a&image_url=https://ci.example/%25{commit_sha}.svg": 200,
		} {
			got := f.As("root", request, `{"link_url":"https://a","image_url":"https://ci.example/%{commit_sha}.svg"}`)
			g.Expect(got.String()).To(HavePrefix(strconv.Itoa(status)), request)
			g.Expect(got.String()).To(ContainSubstring(`"rendered_image_url":"https://ci.example/`+newest+`.svg"`), request)
		}
	}
}

func TestGroupBadges_showValuesOfTheOldestVisibleProject(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	shown := func(user, request string) (all []string) {
		t.Helper()
		for _, b := range familytest.Decode[[]Badge](t, f.As(user, request, "")) {
			all = append(all, fmt.Sprint(b.ID, " ", b.Kind, " ", b.RenderedLinkURL))
		}
		return all
	}
	g.Expect(shown("", "GET /groups/11/badges")).To(Equal([]string{"30 group https://ci.example/acme/sub/web"}), "only those of the group itself")
	g.Expect(shown("root", "GET /groups/10/badges")).To(Equal([]string{"32 group https://ci.example/%{project_path}"}), "there is no project directly in the group")
	p := &v1alpha1.Project{}
	g.Expect(f.Client.Get(t.Context(), client.ObjectKey{Namespace: "acme", Name: "web"}, p)).To(Succeed())
	p.Spec.Visibility = v1alpha1.VisibilityPrivate
	g.Expect(f.Client.Update(t.Context(), p)).To(Succeed())
	g.Expect(shown("otto", "GET /groups/11/badges")).To(Equal([]string{"30 group https://ci.example/%{project_path}"}), "nothing of a project that the caller does not see")
	g.Expect(shown("mary", "GET /groups/11/badges?name=build")).To(Equal([]string{"30 group https://ci.example/acme/sub/web"}))
	g.Expect(shown("mary", "GET /groups/11/badges?name=Build")).To(BeEmpty())
}

func TestBadges_hideHeadFromThoseWhoCannotReadRepository(t *testing.T) {
	g := NewWithT(t)
	guarded := familytest.Group("acme", "guarded", 12, "acme", v1alpha1.VisibilityPrivate)
	inner := familytest.Project("acme", "inner", 22, "guarded", v1alpha1.VisibilityPrivate)
	inner.Status.HeadCommit, inner.Status.DefaultBranch = commit, "trunk"
	head := func(id int64, project, group string) client.Object {
		b := declared(id, "Head", project, group)
		b.Spec.LinkURL = "https://ci.example/%{project_name}/%{default_branch}/%{commit_sha}"
		return b
	}
	f := newForge(t, guarded, inner, head(50, "inner", ""), head(51, "", "guarded"),
		familytest.InGroup("acme", "guarded", "otto", v1alpha1.RoleGuest))
	for user, want := range map[string]string{
		"dora": "https://ci.example/inner/trunk/" + commit, "otto": "https://ci.example/inner/trunk/%{commit_sha}",
	} {
		for _, path := range []string{"/projects/22/badges/50", "/groups/12/badges/51"} {
			g.Expect(familytest.Decode[Badge](t, f.As(user, "GET "+path, "")).RenderedLinkURL).To(Equal(want), "%s as %s", path, user)
		}
	}
}

func TestGroupBadge_isWrittenByOwners(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	made := familytest.Decode[Badge](t, f.As("root", "POST /groups/acme%2Fsub/badges", `{"link_url":"https://a/%{project_id}","image_url":"https://b"}`))
	g.Expect(made.Kind).To(Equal("group"))
	g.Expect(made.RenderedLinkURL).To(Equal("https://a/20"))
	b := stored(t, f, made.ID)
	g.Expect(b.Spec.ProjectRef).To(BeNil())
	g.Expect(b.Spec.GroupRef).To(HaveValue(Equal(f.Named(&v1alpha1.Group{}, "acme/sub"))))
	path := "/groups/11/badges/" + strconv.FormatInt(made.ID, 10)
	g.Expect(familytest.Decode[Badge](t, f.As("root", "PUT "+path, `{"name":"Build"}`)).Name).To(HaveValue(Equal("Build")))
	g.Expect(f.As("root", "GET /groups/11/badges/render?link_url=https://%25%7Bproject_name%7D&image_url=https://b", "").Body).To(
		MatchJSON(`{"name":null,"link_url":"https://%{project_name}","image_url":"https://b","rendered_link_url":"https://web","rendered_image_url":"https://b"}`))
	const missing = `404 {"message":"404 Not found"}`
	for _, request := range []string{"GET /groups/11/badges/32", "PUT /groups/11/badges/31", "DELETE /groups/11/badges/32", "GET /groups/10/badges/30"} {
		g.Expect(f.As("root", request, `{}`).String()).To(Equal(missing), request)
	}
	g.Expect(f.As("root", "DELETE "+path, "").String()).To(Equal("204"))
	g.Expect(f.As("root", "GET "+path, "").String()).To(Equal(missing))
}
