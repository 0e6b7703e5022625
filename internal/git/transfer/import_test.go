package transfer_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
)

// origin creates a repository with branches, tags and other refs, whose default branch is "trunk".
func origin(t *testing.T, format string) (root string) {
	t.Helper()
	c := gittest.New(t, format)
	c.Git(t, "checkout", "--quiet", "-b", "trunk")
	for i := range 5 {
		c.Commit(t, "a", fmt.Sprint(i))
	}
	c.Git(t, "branch", "topic/x", "HEAD~2")
	c.Git(t, "tag", "-a", "-m", "One", "v1", "HEAD~1")
	c.Git(t, "update-ref", "refs/merge-requests/1/head", "HEAD")
	root = t.TempDir()
	c.Git(t, "clone", "--quiet", "--mirror", ".", root+"/o.git")
	return root
}

var wantRefs = []string{"refs/heads/topic/x", "refs/heads/trunk", "refs/tags/v1"}

func TestImport(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			root := origin(t, format)
			server := gittest.Remote(t, root)
			withUser := strings.Replace(server, "http://", "http://ann:s3cret%2Fwith%40signs@", 1)
			for about, o := range map[string]transfer.ImportOptions{
				"with credentials":        {URL: server + "/o.git", Username: "ann", Password: gittest.Password},
				"with credentials in URL": {URL: withUser + "/o.git"},
				"public":                  {URL: server + "/public/o.git"},
				"public and moved":        {URL: server + "/moved/o.git"},
				"file":                    {URL: "file://" + root + "/o.git", AllowFile: true},
			} {
				t.Run(about, func(t *testing.T) {
					storage := t.TempDir()
					log := storage + ".log"
					e := gittest.EngineWith(t, `echo "$@" >>`+log)
					r := gittest.Repository(t, e, storage, "x/1.git")
					var seen []transfer.Progress
					o.Progress = func(p transfer.Progress) { seen = append(seen, p) }
					if err := transfer.Import(t.Context(), r, o); err != nil {
						t.Fatal(err)
					}
					if got := gittest.RefNames(t, r); !slices.Equal(got, wantRefs) {
						t.Errorf("got %q", got)
					}
					if h, err := refs.ReadHead(t.Context(), r); err != nil || h.Branch != "trunk" || h.Commit == "" {
						t.Errorf("got %+v, %v", h, err)
					}
					if err := upkeep.Fsck(t.Context(), r, true); err != nil {
						t.Error(err)
					}
					if got := gittest.Entries(t, storage+"/x"); !slices.Equal(got, []string{"1.git"}) {
						t.Errorf("left behind: %v", got)
					}
					if !slices.Contains(seen, transfer.Progress{Phase: "Receiving objects", Percent: 100}) {
						t.Errorf("got progress %v", seen)
					}
					if argv, _ := os.ReadFile(log); strings.Contains(string(argv), "s3cret") || !strings.Contains(string(argv), "fetch") {
						t.Errorf("arguments:\n%s", argv)
					}
					if config, _ := os.ReadFile(r.Dir() + "/config"); strings.Contains(string(config), "s3cret") || strings.Contains(string(config), "remote") {
						t.Errorf("configuration:\n%s", config)
					}
					if err := transfer.Import(t.Context(), r, transfer.ImportOptions{URL: "file:///nonexistent", AllowFile: true}); err != nil {
						t.Errorf("again: %v", err)
					}
				})
			}
		})
	}
}

func TestImport_acceptsAnEmptyRepository(t *testing.T) {
	root := t.TempDir()
	gittest.New(t, "sha1").Git(t, "init", "--quiet", "--bare", "--initial-branch=ignored", root+"/o.git")
	r := gittest.Repository(t, gittest.NewEngine(t), t.TempDir(), "1.git")
	if err := transfer.Import(t.Context(), r, transfer.ImportOptions{URL: gittest.Remote(t, root) + "/public/o.git", DefaultBranch: "start"}); err != nil {
		t.Fatal(err)
	}
	if h, err := refs.ReadHead(t.Context(), r); err != nil || h.Commit != "" || h.Branch != "start" && h.Branch != "ignored" {
		t.Errorf("got %+v, %v", h, err)
	}
}

func TestImportFailures(t *testing.T) {
	root := origin(t, "sha1")
	server := gittest.Remote(t, root)
	damaged := t.TempDir()
	for about, c := range map[string]struct {
		o    transfer.ImportOptions
		want error
		text string
	}{
		"no credentials":        {transfer.ImportOptions{URL: server + "/o.git"}, transfer.ErrCredentials, ""},
		"wrong credentials":     {transfer.ImportOptions{URL: server + "/o.git", Username: "ann", Password: "wr0ng"}, transfer.ErrCredentials, ""},
		"credentials and moved": {transfer.ImportOptions{URL: server + "/moved/o.git", Username: "ann", Password: gittest.Password}, nil, "301"},
		"absent":                {transfer.ImportOptions{URL: server + "/public/absent.git"}, nil, "not found"},
		"nobody there":          {transfer.ImportOptions{URL: "http://127.0.0.1:1/o.git"}, nil, "Failed to connect"},
		"not a repository":      {transfer.ImportOptions{URL: "file://" + damaged, AllowFile: true}, nil, "does not appear to be a git repository"},
		"file not allowed":      {transfer.ImportOptions{URL: "file://" + root + "/o.git"}, transfer.ErrURL, "file"},
		"path":                  {transfer.ImportOptions{URL: root + "/o.git", AllowFile: true}, transfer.ErrURL, ""},
		"ssh":                   {transfer.ImportOptions{URL: "ssh://git@example.com/o.git"}, transfer.ErrURL, "ssh"},
		"command":               {transfer.ImportOptions{URL: "ext::sh -c true", AllowFile: true}, transfer.ErrURL, ""},
		"option":                {transfer.ImportOptions{URL: "--upload-pack=true", AllowFile: true}, transfer.ErrURL, ""},
		"file with host":        {transfer.ImportOptions{URL: "file://host/x", AllowFile: true}, transfer.ErrURL, ""},
		"no host":               {transfer.ImportOptions{URL: "http:///x"}, transfer.ErrURL, ""},
		"malformed":             {transfer.ImportOptions{URL: "http://ann:wr0ng@host\x00/"}, transfer.ErrURL, ""},
		"empty":                 {transfer.ImportOptions{}, transfer.ErrURL, ""},
	} {
		t.Run(about, func(t *testing.T) {
			storage := t.TempDir()
			r := gittest.Repository(t, gittest.NewEngine(t), storage, "1.git")
			err := transfer.Import(t.Context(), r, c.o)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v %q", err, c.want, c.text)
			}
			for _, secret := range []string{"wr0ng", gittest.Password, "s3cret", "YW5u"} {
				if strings.Contains(fmt.Sprint(err), secret) {
					t.Errorf("the error tells the password: %v", err)
				}
			}
			if got := gittest.Entries(t, storage); len(got) > 0 {
				t.Errorf("left behind: %v", got)
			}
		})
	}
}

func TestImport_endsInTime(t *testing.T) {
	var asked atomic.Int32
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		<-r.Context().Done()
	}))
	defer slow.Close()
	r := gittest.Repository(t, gittest.Limited(t, "", git.Limits{ImportTime: 3 * time.Second}), t.TempDir(), "1.git")
	err := transfer.Import(t.Context(), r, transfer.ImportOptions{URL: slow.URL})
	if git.LimitReached(err) != "The import took longer than the 3s that the server allows." || asked.Load() == 0 {
		t.Errorf("got %v", err)
	}
}

func TestImport_stopsAtItsLimit(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "big", gittest.Incompressible(4<<20))
	storage := t.TempDir()
	for about, binary := range map[string]string{
		"in the end": "",
		// The fetch does not end by itself: it waits after the data has arrived.
		"while it runs": gittest.Script(t, `case "$1" in fetch) git "$@"; exec sleep 600;; esac; exec git "$@"`),
	} {
		r := gittest.Repository(t, gittest.Limited(t, binary, git.Limits{Import: 1 << 20}), storage, "1.git")
		err := transfer.Import(t.Context(), r, transfer.ImportOptions{URL: "file://" + c.Dir, AllowFile: true})
		if git.LastingLimit(err) != "The repository has more than the 1 MiB that the server allows an import." {
			t.Errorf("%s: got %v", about, err)
		}
	}
	if left, _ := filepath.Glob(storage + "/*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestImport_ofTooManyRefs(t *testing.T) {
	c := gittest.New(t, "sha1")
	id := c.Commit(t, "a", "a")
	var listed strings.Builder
	for i := range 100_001 {
		fmt.Fprintf(&listed, "%s refs/tags/v%06d\n", id, i)
	}
	if err := os.WriteFile(c.Dir+"/.git/packed-refs", []byte(listed.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	r := gittest.Repository(t, gittest.NewEngine(t), t.TempDir(), "1.git")
	err := transfer.Import(t.Context(), r, transfer.ImportOptions{URL: "file://" + c.Dir, AllowFile: true})
	if git.LimitReached(err) != "The repository has 100002 branches and tags, more than the 100000 that the server allows." {
		t.Errorf("got %v", err)
	}
}

// Data that is small on disk but large when unpacked must not come in by an import either.
func TestImport_unpacksTooMuch(t *testing.T) {
	one, many := gittest.New(t, "sha1"), gittest.New(t, "sha1")
	one.Commit(t, "zeros", strings.Repeat("\x00", 8<<20))
	for i := range 9 {
		many.Commit(t, fmt.Sprint("zeros", i), strings.Repeat(fmt.Sprint(i), 1<<20))
	}
	for about, tt := range map[string]struct {
		from   *gittest.Client
		limits git.Limits
		want   string
	}{
		"an object": {one, git.Limits{Push: 1 << 20}, "The object " + one.Git(t, "rev-parse", "HEAD:zeros") +
			" has 8388608 bytes when it is unpacked, more than the 1 MiB that the server allows an object."},
		"all together": {many, git.Limits{ImportUnpacked: 8 << 20},
			"The repository has more than the 8 MiB that the server allows all objects of an import together when they are unpacked."},
		"as many as allowed": {many, git.Limits{Push: 1 << 20, PushUnpacked: 1 << 20, ImportUnpacked: 10 << 20}, ""},
		"without limits":     {one, git.Limits{Push: -1, ImportUnpacked: -1}, ""},
	} {
		storage := t.TempDir()
		r := gittest.Repository(t, gittest.Limited(t, "", tt.limits), storage, "1.git")
		err := transfer.Import(t.Context(), r, transfer.ImportOptions{URL: "file://" + tt.from.Dir, AllowFile: true})
		if git.LimitReached(err) != tt.want || tt.want == "" && err != nil {
			t.Errorf("%s: got %v, want %q", about, err, tt.want)
		}
		if left := gittest.Entries(t, storage); tt.want != "" && len(left) > 0 {
			t.Errorf("%s: left behind: %v", about, left)
		}
	}
}

// A server can announce different refs in ls-remote and in fetch.
func TestImport_ofMoreRefsThanWereSaid(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "a")
	const more = `mkdir -p refs/tags && for i in 1 2 3 4; do echo x >refs/tags/v$i`
	for about, binary := range map[string]string{
		"in the end":    gittest.Script(t, `case "$1" in fetch) git "$@" && `+more+`; done; exit;; esac; exec git "$@"`),
		"while it runs": gittest.Script(t, `case "$1" in fetch) `+more+`.lock; done; exec sleep 600;; esac; exec git "$@"`),
	} {
		storage := t.TempDir()
		r := gittest.Repository(t, gittest.Limited(t, binary, git.Limits{Refs: 3}), storage, "1.git")
		err := transfer.Import(t.Context(), r, transfer.ImportOptions{URL: "file://" + c.Dir, AllowFile: true})
		if got := git.LastingLimit(err); !strings.HasSuffix(got, " branches and tags, more than the 3 that the server allows.") {
			t.Errorf("%s: got %v", about, err)
		}
		if left, _ := filepath.Glob(storage + "/*"); len(left) > 0 {
			t.Errorf("%s: left behind: %v", about, left)
		}
	}
}
