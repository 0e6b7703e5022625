package repositories_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/repositories"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/test/soak"
)

func (s *shop) compared(t *testing.T, from, to, more string) Compare {
	t.Helper()
	target := "GET /projects/20/repository/compare?from=" + url.QueryEscape(from) + "&to=" + url.QueryEscape(to) + more
	return familytest.Decode[Compare](t, s.As("", target, ""))
}

func ids(c Compare) (all []string) {
	for _, one := range c.Commits {
		all = append(all, one.ID)
	}
	return all
}

func paths(c Compare) (all []string) {
	for _, one := range c.Diffs {
		all = append(all, one.OldPath+">"+one.NewPath)
	}
	return all
}

func TestCompare_showsCommitsAndDiffs(t *testing.T) {
	s := newShop(t, forked(t))
	id := func(ref string) string { return s.client.Git(t, "rev-parse", ref) }
	for name, tt := range map[string]struct {
		from, to, more string
		commits, paths []string
		same           bool
		dots           string
	}{
		"since they parted": {"left", "right", "", []string{id("right~1"), id("right")}, []string{"right>right"}, false, "..."},
		"straight":          {"left", "right", "&straight=true", []string{id("right~1"), id("right")}, []string{"left>left", "right>right"}, false, ".."},
		"with its ancestor": {"right", "main", "", nil, nil, false, "..."},
		"back, straight":    {"right", "main", "&straight=1", nil, []string{"right>right"}, false, ".."},
		"with itself":       {"right", id("right"), "&straight=false", nil, nil, true, "..."},
		"nothing in common": {"left", "apart", "", []string{id("apart")}, []string{"file>file", "other>other", "right>right"}, false, "..."},
		"in this project":   {"main", "left", "&from_project_id=20", []string{id("left~1"), id("left")}, []string{"left>left"}, false, "..."},
	} {
		t.Run(name, func(t *testing.T) {
			c := s.compared(t, tt.from, tt.to, tt.more)
			if got, want := strings.Join(ids(c), " "), strings.Join(tt.commits, " "); got != want {
				t.Errorf("the commits are %s, want %s", got, want)
			}
			if got, want := strings.Join(paths(c), " "), strings.Join(tt.paths, " "); got != want {
				t.Errorf("the changes are %s, want %s", got, want)
			}
			if (c.Commit == nil) != (len(tt.commits) == 0) || c.Commit != nil && c.Commit.ID != tt.commits[len(tt.commits)-1] {
				t.Errorf("the last commit is %v", c.Commit)
			}
			if want := "https://forge.example/acme/web/-/compare/" + id(tt.from) + tt.dots + id(tt.to); c.WebURL != want {
				t.Errorf("the address is %s, want %s", c.WebURL, want)
			}
			if c.CompareSameRef != tt.same || c.CompareTimeout {
				t.Errorf("it is %+v", c)
			}
			if again := s.compared(t, tt.from, tt.to, tt.more); !reflect.DeepEqual(again, c) {
				t.Errorf("the same comparison is %+v, and was %+v", again, c)
			}
		})
	}
	s.Expect(t, asks{"GET /projects/20/repository/compare?from=main&to=main", `200 {"commit":null,"commits":[],"diffs":[],"compare_timeout":false,` +
		`"compare_same_ref":true,"web_url":"https://forge.example/acme/web/-/compare/` + id("main") + "..." + id("main") + `"}`})
}

func TestCompare_saysWhenItIsTruncated(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Nest(t, 101, 2) // 10,201 files
	c.Git(t, "update-ref", "refs/heads/empty", c.Git(t, "commit-tree", "-m", "Nothing", c.Git(t, "hash-object", "-w", "-t", "tree", "/dev/null")))
	got := familytest.Decode[Compare](t, newShop(t, c).As("", "GET /projects/20/repository/compare?from=empty&to=main&straight=true", ""))
	if len(got.Diffs) != 10_000 || !got.CompareTimeout {
		t.Errorf("there are %d diffs, and compare_timeout is %t", len(got.Diffs), got.CompareTimeout)
	}
}

func TestCompare_isRefusedWithAReason(t *testing.T) {
	s := newShop(t, forked(t))
	const noRef = `404 {"message":"404 Ref Not Found"}`
	s.Expect(t,
		asks{"GET /projects/20/repository/compare", `400 {"error":"from is missing, to is missing"}`},
		asks{"GET /projects/20/repository/compare?from=main", `400 {"error":"to is missing"}`},
		asks{"GET /projects/20/repository/compare?from=main&to=", `400 {"error":"to is empty"}`},
		asks{"GET /projects/20/repository/compare?from=main&to=main&straight=x", `400 {"error":"straight is invalid"}`},
		asks{"GET /projects/20/repository/compare?from=main&to=x", noRef},
		asks{"GET /projects/20/repository/compare?from=x&to=main", noRef},
		asks{"GET /projects/20/repository/compare?from=--all&to=main", noRef},
		asks{"GET /projects/21/repository/compare?from=main&to=main", noRef},
		asks{"GET /projects/22/repository/compare?from=main&to=main", noRef},
		asks{"GET /projects/20/repository/compare?from=main&to=left&from_project_id=21", `400 {"message":"Target project id:21 is not a fork of project id:20"}`},
		asks{"GET /projects/acme%2Fweb/repository/compare?from=main&to=left&from_project_id=9", `400 {"message":"Target project id:9 is not a fork of project id:20"}`},
	)
}

func TestCompare_readsOtherProjectsOfItsNetwork(t *testing.T) {
	c := forked(t)
	s := newShop(t, c)
	var fork, web v1alpha1.Project
	for name, p := range map[string]*v1alpha1.Project{"web": &web, "empty": &fork} {
		if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: "acme", Name: name}, p); err != nil {
			t.Fatal(err)
		}
	}
	fork.Spec.ForkOf = &v1alpha1.ForkOf{ProjectRef: catalog.Refer(&web)}
	if err := s.Client.Update(t.Context(), &fork); err != nil {
		t.Fatal(err)
	}
	c.Git(t, "checkout", "--quiet", "-b", "theirs", "main")
	id := c.Commit(t, "theirs", "only in the fork")
	familytest.Push(t, s.Repositories, &fork, c)
	got := familytest.Decode[Compare](t, s.As("", "GET /projects/21/repository/compare?from_project_id=20&from=main&to=theirs", ""))
	if strings.Join(ids(got), " ") != id || strings.Join(paths(got), " ") != "theirs>theirs" {
		t.Errorf("got %+v", got)
	}
	back := familytest.Decode[Compare](t, s.As("", "GET /projects/20/repository/compare?from_project_id=21&from=theirs&to=main&straight=true", ""))
	if len(back.Commits) != 0 || strings.Join(paths(back), " ") != "theirs>theirs" {
		t.Errorf("got %+v", back)
	}
	s.Expect(t,
		asks{"GET /projects/20/repository/compare?from_project_id=21&from=main&to=theirs", `404 {"message":"404 Ref Not Found"}`},
		asks{"GET /projects/20/repository/compare?from=main&to=" + id, `404 {"message":"404 Ref Not Found"}`},
	)
}

// TestCompare_returnsDiffsThatApply joins the diffs of a comparison, and applies them to the older commit with git.
func TestCompare_returnsDiffsThatApply(t *testing.T) {
	c := gittest.New(t, "sha1")
	for _, name := range []string{"a", "sp ace", `"quoted"`, "ümläut", "gone"} {
		c.Commit(t, name, "one\ntwo\nthree "+name)
	}
	for _, name := range []string{"a", "sp ace", `"quoted"`, "ümläut", "dir/new"} {
		c.Commit(t, name, "one\n2\nthree "+name+"\n")
	}
	c.Git(t, "rm", "--quiet", "gone")
	c.Git(t, "commit", "--quiet", "--message=gone")
	s := newShop(t, c)
	var patch strings.Builder
	for _, d := range s.compared(t, "main~6", "main", "&unidiff=true").Diffs {
		patch.WriteString(d.Diff)
	}
	if d := s.compared(t, "main~6", "main", "").Diffs[0].Diff; !strings.HasPrefix(d, "@@") {
		t.Errorf("without unidiff, a diff is %s", d)
	}
	file := filepath.Join(t.TempDir(), "patch")
	if err := os.WriteFile(file, []byte(patch.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Git(t, "checkout", "--quiet", "main~6")
	c.Git(t, "apply", "--index", file)
	if got, want := c.Git(t, "write-tree"), c.Git(t, "rev-parse", "main^{tree}"); got != want {
		t.Errorf("the patch makes another tree:\n%s", patch.String())
	}
}

func TestCompare_omitsDiffsOfLargeFiles(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "first", "1")
	c.Commit(t, "large", strings.Repeat("0123456789\n", 30_000))
	c.Commit(t, "small", "1\n")
	got := newShop(t, c).compared(t, "main~2", "main", "")
	if len(got.Diffs) != 2 || got.Diffs[0].Diff != "" || !got.Diffs[0].TooLarge || got.Diffs[1].Diff != "@@ -0,0 +1 @@\n+1\n" || got.Diffs[1].TooLarge {
		t.Errorf("the diffs are %.300v", got.Diffs)
	}
}

// A push of a few kilobytes can hold a file of 1 GiB. Git compares two versions of such a file as binary files, but reads the whole file if
// it was added or removed.
func TestCompare_limitsMemoryForHugeFiles(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "README", "hello")
	s, size := newShop(t, c), soak.Times(256<<20, 1<<30) // the size of the file, and the limit of memory
	engine := gittest.EngineOf(t, git.Options{Limits: git.Limits{Memory: int64(size)}})
	s.serve(repository.New(engine, s.Catalog))
	// The repositories share objects, because a push would take longer than the comparison.
	objects := filepath.Join(s.Git.Dir(), "objects/info/alternates")
	if err := os.WriteFile(objects, []byte(filepath.Join(c.Dir, ".git/objects")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lying := &gittest.Client{Dir: s.Git.Dir()}
	commit := func(branch string) {
		file := filepath.Join(c.Dir, "huge")
		if err := os.WriteFile(file, []byte(branch), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file, int64(size)); err != nil {
			t.Fatal(err)
		}
		c.Git(t, "checkout", "--quiet", "-b", branch)
		c.Git(t, "-c", "core.bigFileThreshold=1m", "-c", "core.compression=1", "add", "huge")
		c.Git(t, "commit", "--quiet", "--message", branch)
		lying.Git(t, "update-ref", "refs/heads/"+branch, c.Git(t, "rev-parse", "HEAD"))
	}
	commit("added")
	commit("changed")
	answer := s.As("", "GET /projects/20/repository/compare?from=main&to=added", "")
	want := fmt.Sprintf(`413 {"message":"This takes more than the %s of memory that the server allows a Git process."}`,
		map[int]string{256 << 20: "256 MiB", 1 << 30: "1 GiB"}[size])
	if answer.String() != want {
		t.Errorf("got  %.300s\nwant %s", answer, want)
	}
	if changed := s.compared(t, "added", "changed", ""); strings.Join(paths(changed), " ") != "huge>huge" || len(changed.Diffs[0].Diff) > 1000 {
		t.Errorf("got %.300v", changed.Diffs)
	}
	if small := s.compared(t, "main", "main", ""); !small.CompareSameRef {
		t.Errorf("another request got %v", small)
	}
}
