package avatar_test

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"net/http"
	"strings"
	"testing"

	_ "gocloud.dev/blob/memblob" // the driver of mem:// URLs
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/avatar"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/groups"
	"github.com/forgeplane/forgeplane/apiserver/v4/users"
	stored "github.com/forgeplane/forgeplane/internal/avatar"
	"github.com/forgeplane/forgeplane/internal/blob"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// newForge returns a forge with users, and groups that have avatars.
func newForge(t *testing.T) (*familytest.Forge, *blob.Store) {
	t.Helper()
	return newForgeAt(t, "mem://")
}

// newForgeAt is newForge with a place for the avatars.
func newForgeAt(t *testing.T, place string) (*familytest.Forge, *blob.Store) {
	t.Helper()
	f := familytest.New(t,
		familytest.User("root", 1, familytest.Admin), familytest.User("ann", 2), familytest.User("bob", 3),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPrivate),
		familytest.InGroup("acme", "acme", "ann", v1alpha1.RoleOwner),
	)
	blobs, err := blob.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = blobs.Close() })
	f.Avatars, f.Home = avatar.New(stored.NewStore(blobs)), familytest.Namespace
	f.Serve(groups.New(f.Kit).Table(), users.New(f.Kit).Table())
	return f, blobs
}

func picture(t *testing.T, width int) string {
	t.Helper()
	var text bytes.Buffer
	if err := png.Encode(&text, image.NewNRGBA(image.Rect(0, 0, width, 5))); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// width returns the width of a served avatar.
func width(t *testing.T, a familytest.Answer) int {
	t.Helper()
	if a.Code != http.StatusOK || a.Header.Get("Content-Type") != "image/png" || a.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Fatalf("got %d %v", a.Code, a.Header)
	}
	config, err := png.DecodeConfig(strings.NewReader(a.Body))
	if err != nil {
		t.Fatal(err)
	}
	return config.Width
}

// shown is the part of an answer that this package is about.
type shown struct {
	AvatarURL *string `json:"avatar_url"`
}

// number returns how many avatars are stored.
func number(t *testing.T, blobs *blob.Store) (n int) {
	t.Helper()
	if err := blobs.Each(t.Context(), "", func(blob.Blob) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAvatar_isUploadedReplacedAndRemoved(t *testing.T) {
	f, blobs := newForge(t)
	for i, c := range []struct{ user, put, get, url string }{
		{"ann", "PUT /groups/10", "GET /groups/10/avatar", "/uploads/-/system/group/avatar/10/avatar.png"},
		{"ann", "PUT /user/avatar", "GET /users/2/avatar", "/uploads/-/system/user/avatar/2/avatar.png"},
		{"root", "PUT /users/3", "GET /users/3/avatar", "/uploads/-/system/user/avatar/3/avatar.png"},
	} {
		for _, w := range []int{7, 9} {
			a := f.Upload(c.user, c.put, "avatar", picture(t, w))
			if got := familytest.Decode[shown](t, a).AvatarURL; a.Code != http.StatusOK || got == nil || *got != familytest.WebURL+c.url {
				t.Fatalf("%s: got %s", c.put, a)
			}
			if got := width(t, f.As(c.user, c.get, "")); got != w {
				t.Errorf("%s: got a width of %d, want %d", c.get, got, w)
			}
			if got := number(t, blobs); got != 1 {
				t.Errorf("%s: %d avatars are stored, want 1", c.put, got)
			}
		}
		if a := f.As(c.user, c.put, `{"avatar":""}`); familytest.Decode[shown](t, a).AvatarURL != nil {
			t.Errorf("%d: got %s", i, a)
		}
		if got := f.As(c.user, c.get, "").String(); got != `404 {"message":"404 Avatar Not Found"}` {
			t.Errorf("%s: got %s", c.get, got)
		}
		if got := number(t, blobs); got != 0 {
			t.Errorf("%s: %d avatars are stored, want none", c.put, got)
		}
	}
}

func TestAvatar_goesWithANewObject(t *testing.T) {
	f, _ := newForge(t)
	a := f.As("ann", "POST /groups", `{"name":"New","path":"new","avatar":""}`)
	if got := familytest.Decode[shown](t, a).AvatarURL; a.Code != http.StatusCreated || got != nil {
		t.Errorf("got %s", a)
	}
	a = f.Upload("root", "POST /users?username=max&name=Max&email=max@forge.example", "avatar", picture(t, 8))
	if got := familytest.Decode[shown](t, a).AvatarURL; a.Code != http.StatusCreated || got == nil {
		t.Errorf("got %s", a)
	}
}

func TestAvatar_isRefusedWithAReason(t *testing.T) {
	f, blobs := newForge(t)
	for content, want := range map[string]string{
		"<svg xmlns='http://www.w3.org/2000/svg'/>": `400 {"message":{"avatar":["file format is not supported. Please try one of the following supported formats: image/png, image/jpeg, image/gif, image/bmp, image/webp"]}}`,
		strings.Repeat("x", 200<<10+1):              `400 {"message":{"avatar":["is too big (should be at most 200 KiB)"]}}`,
		strings.Repeat("x", 1<<20+1):                `413 {"message":"413 Request Entity Too Large"}`,
		picture(t, 2<<20):                           `400 {"message":{"avatar":["has too many pixels (should be at most 2048 x 2048)"]}}`,
	} {
		for _, put := range []string{"PUT /groups/10", "POST /groups?name=New&path=new", "PUT /user/avatar"} {
			if got := f.Upload("ann", put, "avatar", content).String(); got != want {
				t.Errorf("%s with %.20q\ngot  %s\nwant %s", put, content, got, want)
			}
		}
	}
	if got := f.As("ann", "PUT /user/avatar", "{}").String(); got != `400 {"error":"avatar is missing"}` {
		t.Errorf("got %s", got)
	}
	if got := number(t, blobs); got != 0 {
		t.Errorf("%d avatars are stored, want none", got)
	}
}

func TestAvatar_isRefusedIfTheStoreIsFull(t *testing.T) {
	f, _ := newForgeAt(t, gittest.Mount(t, "nr_inodes=1"))
	const want = `507 {"message":"The storage of avatars and artifacts has no space left. Please tell an administrator."}`
	for _, put := range []string{"PUT /groups/10", "POST /groups?name=New&path=new", "PUT /user/avatar"} {
		if got := f.Upload("ann", put, "avatar", picture(t, 7)).String(); got != want {
			t.Errorf("%s: got %s", put, got)
		}
	}
}

// The write can have succeeded although its answer is an error.
func TestAvatar_staysStoredIfTheObjectMayHaveIt(t *testing.T) {
	f, blobs := newForge(t)
	f.Before = func(verb string, _ client.Object) error {
		if verb == "patch status" {
			return context.DeadlineExceeded
		}
		return nil
	}
	if a := f.Upload("ann", "PUT /user/avatar", "avatar", picture(t, 8)); a.Code != http.StatusInternalServerError {
		t.Errorf("got %s", a)
	}
	if got := number(t, blobs); got != 1 {
		t.Errorf("%d avatars are stored, want one", got)
	}
}
