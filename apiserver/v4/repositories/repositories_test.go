package repositories_test

import (
	"testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/repositories"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// shop is a forge with the public project web, whose repository is what a client has, and projects without one: the empty
// project "empty" and "new", for which no shard was chosen yet.
type shop struct {
	*familytest.Forge

	client *gittest.Client
	git    *git.Repository
}

func newShop(t *testing.T, c *gittest.Client) *shop {
	t.Helper()
	web := familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic)
	empty := familytest.Project("acme", "empty", 21, "acme", v1alpha1.VisibilityPublic)
	shard := familytest.Shard(t, web, empty)
	f := familytest.New(t, familytest.User("dora", 3), familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		shard, web, empty, familytest.Project("acme", "new", 22, "acme", v1alpha1.VisibilityPublic))
	repos := familytest.Repositories(t, f.Catalog)
	s := &shop{Forge: f.Serve(New(repos, f.Catalog, f.Guard, nil, NoMergeRequests{}, f.Clock, familytest.WebURL).Table()), client: c, git: familytest.Push(t, repos, web, c)}
	nothing, err := repos.Of(t.Context(), empty)
	if err == nil {
		err = nothing.Init(t.Context(), git.InitOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asks is a request and what is answered.
type asks struct{ request, want string }

func (s *shop) expect(t *testing.T, all ...asks) {
	t.Helper()
	for _, a := range all {
		if got := s.As("", a.request, "").String(); got != a.want {
			t.Errorf("%s\ngot  %.600s\nwant %.600s", a.request, got, a.want)
		}
	}
}
