package projects_test

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/projects"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/internal/registry/registrytest"
)

// counted is the part of a project that changes with pushes.
type counted struct {
	ID             int64                `json:"id"`
	LastActivityAt time.Time            `json:"last_activity_at"`
	Statistics     *projects.Statistics `json:"statistics"`
}

func TestStatistics_areShownToReporters(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "README.md", "hello\n")
	c.Commit(t, "LICENSE", "Take it.\n")
	s := familytest.NewShop(t, c,
		familytest.User("rita", 2), familytest.User("gus", 3),
		familytest.InProject("acme", "web", "rita", v1alpha1.RoleReporter), familytest.InProject("acme", "web", "gus", v1alpha1.RoleGuest),
	)
	s.Activity = familytest.Activity(t, s.Clock)
	s.Serve(projects.New(s.Kit).Table())
	var web v1alpha1.Project
	s.Named(&web, "acme/web")
	web.Status.HeadCommit, web.Status.SizeBytes = c.Git(t, "rev-parse", "HEAD"), 4096
	if err := s.Client.Status().Update(t.Context(), &web); err != nil {
		t.Fatal(err)
	}
	want := projects.Statistics{CommitCount: ptr.To(2), StorageSize: 4096, RepositorySize: 4096}
	for _, request := range []string{"GET /projects/20?statistics=true", "GET /projects/acme%2Fweb?statistics=1"} {
		if got := familytest.Decode[counted](t, s.As("rita", request, "")); !reflect.DeepEqual(got.Statistics, &want) {
			t.Errorf("%s: got %+v, want %+v", request, got.Statistics, want)
		}
		for _, other := range []string{"gus", ""} {
			if got := familytest.Decode[counted](t, s.As(other, request, "")); got.ID != 20 || got.Statistics != nil {
				t.Errorf("%s by %q: got %+v", request, other, got)
			}
		}
	}
	images := registrytest.New(t, s.Catalog, databasetest.Open(t, databasetest.SQLite(t), record.Migrations()), s.Clock)
	if _, err := images.Records.Ensure(t.Context(), 20, web.UID, ""); err != nil {
		t.Fatal(err)
	}
	registrytest.Push(t, images, "acme/web", "1.0", "{}")
	s.Images = images
	s.Serve(projects.New(s.Kit).Table())
	got := familytest.Decode[counted](t, s.As("rita", "GET /projects/20?statistics=true", "")).Statistics
	if got.ContainerRegistrySize < 100 || got.StorageSize != 4096+got.ContainerRegistrySize {
		t.Errorf("with an image: got %+v", got)
	}
	if got := familytest.Decode[counted](t, s.As("rita", "GET /projects/20", "")); got.Statistics != nil {
		t.Errorf("without a request: got %+v", got)
	}
	for _, p := range familytest.Decode[[]counted](t, s.As("rita", "GET /projects?statistics=true", "")) {
		if has := p.Statistics != nil; has != (p.ID == 20) {
			t.Errorf("%d: got %+v", p.ID, p.Statistics)
		}
	}
}

func TestStatistics_doNotCountCommitsOfLostRepository(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "README.md", "hello\n")
	s := familytest.NewShop(t, c, familytest.User("rita", 2), familytest.InProject("acme", "web", "rita", v1alpha1.RoleReporter))
	s.Activity = familytest.Activity(t, s.Clock)
	s.Serve(projects.New(s.Kit).Table())
	var web v1alpha1.Project
	s.Named(&web, "acme/web")
	if err := s.Repositories.Observe(t.Context(), &web); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Client.Status().Update(t.Context(), &web), os.RemoveAll(s.Git.Dir())); err != nil {
		t.Fatal(err)
	}
	for _, request := range []string{"GET /projects/20?statistics=true", "GET /projects?statistics=true"} {
		if got := s.As("rita", request, "").String(); !strings.HasPrefix(got, "200 ") || !strings.Contains(got, `"statistics":{"commit_count":null,`) {
			t.Errorf("%s: got %s", request, got)
		}
	}
}

func TestListProjects_ordersByLastActivity(t *testing.T) {
	f := newForge(t)
	list := func() (ids []int64) {
		for _, p := range familytest.Decode[[]counted](t, f.As("root", "GET /projects?order_by=last_activity_at&sort=desc", "")) {
			ids = append(ids, p.ID)
		}
		return ids
	}
	before := list()
	for _, name := range []string{"hidden/secret", "acme/site"} {
		var p v1alpha1.Project
		f.Named(&p, name)
		f.Clock.SetTime(f.Clock.Now().Add(time.Hour))
		p.Status.LastActivityTime = &metav1.Time{Time: f.Clock.Now()}
		if err := f.Client.Status().Update(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
		if got := list(); got[0] != p.Spec.ID || len(got) != len(before) {
			t.Errorf("after a push to %s: got %v", name, got)
		}
	}
	got := familytest.Decode[counted](t, f.As("root", "GET /projects/20", ""))
	if !got.LastActivityAt.Equal(f.Clock.Now()) {
		t.Errorf("got %s, want %s", got.LastActivityAt, f.Clock.Now())
	}
}
