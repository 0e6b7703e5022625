package repositories_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/repositories"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// oddTree returns a client with files of all kinds, with names of all kinds.
func oddTree(t *testing.T, format string) *gittest.Client {
	t.Helper()
	c := gittest.New(t, format)
	for _, name := range []string{
		"README", "dir/a", "dir/b/c", "dir.d/x", "dir.txt", "tab\there", "line\nbreak", `"quoted"`, "ümläut", "not-\xff-utf8", "sp ace/x",
	} {
		c.Commit(t, name, "content of a file\n")
	}
	if err := os.Symlink("README", filepath.Join(c.Dir, "link")); err != nil {
		t.Fatal(err)
	}
	c.Git(t, "add", "link")
	c.Git(t, "update-index", "--chmod=+x", "dir.txt")
	c.Git(t, "update-index", "--add", "--cacheinfo", "160000,"+c.Git(t, "rev-parse", "HEAD")+",module")
	c.Git(t, "commit", "--quiet", "--message=odd")
	c.Git(t, "branch", "feature/one")
	c.Git(t, "tag", "--annotate", "--message=first", "v1")
	return c
}

// listed returns the entries that git lists, in the order of the API.
func (s *shop) listed(t *testing.T, ref, directory string, recursive bool) (all []Entry) {
	t.Helper()
	args := []string{"ls-tree", "-z", "--full-tree", ref + ":" + directory}
	if recursive {
		args = slices.Insert(args, 1, "-r", "-t")
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(s.client.Git(t, args...), "\x00"), "\x00") {
		meta, path, _ := strings.Cut(line, "\t")
		var e Entry
		if _, err := fmt.Sscan(meta, &e.Mode, &e.Type, &e.ID); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		e.Path = strings.ToValidUTF8(strings.TrimPrefix(directory+"/"+path, "/"), "\uFFFD")
		e.Name = e.Path[strings.LastIndex(e.Path, "/")+1:]
		all = append(all, e)
	}
	rank := map[string]int{"tree": 0, "blob": 1, "commit": 2}
	slices.SortStableFunc(all, func(a, b Entry) int { return rank[a.Type] - rank[b.Type] })
	return all
}

func TestTree_agreesWithGit(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			s := newShop(t, oddTree(t, format))
			for _, ref := range []string{"", "main", "feature/one", "v1", "HEAD", "HEAD~1", s.client.Git(t, "rev-parse", "HEAD"), s.client.Git(t, "rev-parse", "HEAD~1")[:9]} {
				for _, directory := range []string{"", "dir", "dir/b", "sp ace", "/dir/"} {
					for _, recursive := range []bool{false, true} {
						q := url.Values{"ref": {ref}, "path": {directory}, "recursive": {fmt.Sprint(recursive)}, "per_page": {"100"}}
						answer := s.As("", "GET /projects/acme%2Fweb/repository/tree?"+q.Encode(), "")
						revision := ref
						if ref == "" {
							revision = "main"
						}
						want := s.listed(t, revision, strings.Trim(directory, "/"), recursive)
						if got := familytest.Decode[[]Entry](t, answer); !slices.Equal(got, want) {
							t.Errorf("%v:\ngot  %v\nwant %v", q, got, want)
						}
					}
				}
			}
		})
	}
}

func TestTree_isRefusedWithAReason(t *testing.T) {
	s := newShop(t, oddTree(t, "sha1"))
	const noTree, noPath = `404 {"message":"404 Tree Not Found"}`, `404 {"message":"404 invalid revision or path Not Found"}`
	s.Expect(t,
		asks{"GET /projects/21/repository/tree", noTree},
		asks{"GET /projects/22/repository/tree", noTree},
		asks{"GET /projects/20/repository/tree?ref=other", noTree},
		asks{"GET /projects/20/repository/tree?ref=--all", noTree},
		asks{"GET /projects/20/repository/tree?ref=main:dir", noTree},
		asks{"GET /projects/20/repository/tree?ref=" + s.client.Git(t, "rev-parse", "HEAD^{tree}"), noTree},
		asks{"GET /projects/20/repository/tree?path=other", noPath},
		asks{"GET /projects/20/repository/tree?path=README", noPath},
		asks{"GET /projects/20/repository/tree?path=README&recursive=true", noPath},
		asks{"GET /projects/20/repository/tree?path=module", noPath},
		asks{"GET /projects/20/repository/tree?path=link", noPath},
		asks{"GET /projects/20/repository/tree?path=dir/../dir", noPath},
		asks{"GET /projects/20/repository/tree?path=..", noPath},
		asks{"GET /projects/20/repository/tree?path=%00", `400 {"error":"path is invalid"}`},
		asks{"GET /projects/20/repository/tree?pagination=other", `400 {"error":"pagination does not have a valid value"}`},
		asks{"GET /projects/20/repository/tree?pagination=none", `400 {"error":"pagination cannot be \"none\" unless \"recursive\" is true"}`},
		asks{"GET /projects/20/repository/tree?pagination=keyset&page_token=0123", `400 {"error":"page_token is invalid"}`},
		asks{"GET /projects/20/repository/tree?pagination=keyset&page_token=p.%21", `400 {"error":"page_token is invalid"}`},
		asks{"GET /projects/20/repository/tree?per_page=0", `400 {"error":"per_page has a value not allowed"}`},
	)
}

func TestTree_isRefusedWhenTooLarge(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Nest(t, 20, 5)
	deep := strings.Repeat(strings.Repeat("d", 1999)+"/", 8)
	wide, _ := c.Wide(t, 5000, strings.Split(strings.TrimSuffix(deep, "/"), "/")...)
	s := newShop(t, c)
	for _, query := range []string{"", "&pagination=keyset", "&pagination=none"} {
		s.Expect(t, asks{
			"GET /projects/20/repository/tree?recursive=true" + query,
			`422 {"message":"There is too much below the directory. List its directories one by one"}`,
		})
	}
	for _, query := range []string{"", "&pagination=keyset"} {
		s.Expect(t, asks{
			"GET /projects/20/repository/tree?ref=" + wide + "&path=" + url.QueryEscape(deep) + query,
			`422 {"message":"The directory is too large to be listed"}`,
		})
	}
	if got := familytest.Decode[[]Entry](t, s.As("", "GET /projects/20/repository/tree", "")); len(got) != 20 {
		t.Errorf("the directory itself has %d entries", len(got))
	}
}

var next = regexp.MustCompile(`<https://forge.example/api/v4([^>]*)>; rel="next"`)

func TestTree_pagesByNumberAndKeyset(t *testing.T) {
	s := newShop(t, oddTree(t, "sha1"))
	all := s.listed(t, "main", "", true)

	var got []Entry
	pages := 0
	for target := "/projects/20/repository/tree?recursive=true&pagination=keyset&per_page=3"; target != ""; pages++ {
		answer := s.As("", "GET "+target, "")
		got = append(got, familytest.Decode[[]Entry](t, answer)...)
		if answer.Header.Get("X-Total") != "" || answer.Header.Get("X-Page") != "" {
			t.Errorf("a page by key has the headers %v", answer.Header)
		}
		target = ""
		if m := next.FindStringSubmatch(answer.Header.Get("Link")); m != nil {
			target = m[1]
		} else if answer.Header.Get("Link") != "" {
			t.Errorf("the link is %s", answer.Header.Get("Link"))
		}
	}
	if !slices.Equal(got, all) || pages != (len(all)+2)/3 {
		t.Errorf("%d pages by key have\n%v\nwant\n%v", pages, got, all)
	}

	top := s.listed(t, "main", "", false)
	i := slices.IndexFunc(top, func(e Entry) bool { return e.Type == "tree" })
	answer := s.As("", "GET /projects/20/repository/tree?pagination=keyset&per_page=100&page_token="+top[i].ID, "")
	if got := familytest.Decode[[]Entry](t, answer); !slices.Equal(got, top[i+1:]) {
		t.Errorf("after the id of an entry there are\n%v\nwant\n%v", got, top[i+1:])
	}

	answer = s.As("", "GET /projects/20/repository/tree?recursive=true&per_page=4&page=2", "")
	if got := familytest.Decode[[]Entry](t, answer); !slices.Equal(got, all[4:8]) {
		t.Errorf("the second page has\n%v\nwant\n%v", got, all[4:8])
	}
	for name, want := range map[string]string{"X-Total": fmt.Sprint(len(all)), "X-Page": "2", "X-Next-Page": "3", "X-Prev-Page": "1", "X-Per-Page": "4"} {
		if got := answer.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}

	answer = s.As("", "GET /projects/20/repository/tree?recursive=true&pagination=none&per_page=1", "")
	if got := familytest.Decode[[]Entry](t, answer); !slices.Equal(got, all) || answer.Header.Get("Link") != "" || answer.Header.Get("X-Total") != "" {
		t.Errorf("without pages there are\n%v\nwant\n%v, and the headers %v", got, all, answer.Header)
	}
}

func TestTree_pagesWhenTooLargeToCache(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Nest(t, 20, 4)
	s := newShop(t, c)
	all := s.listed(t, "main", "", true)
	target := "/projects/20/repository/tree?recursive=true&pagination=keyset&per_page=100"
	for i := range 3 {
		answer := s.As("", "GET "+target, "")
		if got := familytest.Decode[[]Entry](t, answer); !slices.Equal(got, all[100*i:100*i+100]) {
			t.Errorf("page %d has\n%v", i+1, got)
		}
		m := next.FindStringSubmatch(answer.Header.Get("Link"))
		if m == nil {
			t.Fatalf("there is no page after %d: %v", i+1, answer.Header)
		}
		target = m[1]
	}
	id := all[len(all)-1].ID // the id of every file, because all have the same content
	at := slices.IndexFunc(all, func(e Entry) bool { return e.ID == id })
	answer := s.As("", "GET /projects/20/repository/tree?recursive=true&pagination=keyset&per_page=100&page_token="+id, "")
	if got := familytest.Decode[[]Entry](t, answer); !slices.Equal(got, all[at+1:at+101]) {
		t.Errorf("after the first entry with an id there are\n%v", got)
	}
	s.Expect(t, asks{
		"GET /projects/20/repository/tree?recursive=true&pagination=keyset&page_token=" + strings.Repeat("0", 40),
		`400 {"error":"page_token is invalid"}`,
	})
}

func TestTree_continuesAfterADeletedEntry(t *testing.T) {
	c := gittest.New(t, "sha1")
	for _, name := range []string{"a", "b", "c", "d"} {
		c.Commit(t, name, name)
	}
	s := newShop(t, c)
	answer := s.As("", "GET /projects/20/repository/tree?pagination=keyset&per_page=2", "")
	m := next.FindStringSubmatch(answer.Header.Get("Link"))
	if m == nil {
		t.Fatalf("there is no next page: %v", answer.Header)
	}
	c.Git(t, "rm", "--quiet", "b")
	c.Git(t, "commit", "--quiet", "--message=Remove b")
	c.Git(t, "push", "--quiet", s.Git.Dir(), "main")
	if rest := familytest.Decode[[]Entry](t, s.As("", "GET "+m[1], "")); len(rest) != 2 || rest[0].Name != "c" {
		t.Errorf("the rest is %v", rest)
	}
}

func TestLargeTree_hasEachEntryOnce(t *testing.T) {
	c := gittest.New(t, "sha1")
	const directories, each = 99, 202
	for i := range directories {
		directory := filepath.Join(c.Dir, fmt.Sprint("directory-", i))
		if err := os.Mkdir(directory, 0o755); err != nil {
			t.Fatal(err)
		}
		for j := range each {
			// Many files have the same content, so an id does not say where a page ends.
			if err := os.WriteFile(filepath.Join(directory, fmt.Sprint(j)), []byte{'a' + byte(i%3)}, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.Git(t, "add", ".")
	c.Git(t, "commit", "--quiet", "--message=large")
	s := newShop(t, c)
	seen := map[string]bool{}
	for target := "/projects/20/repository/tree?recursive=true&pagination=keyset&per_page=100"; target != ""; {
		answer := s.As("", "GET "+target, "")
		for _, e := range familytest.Decode[[]Entry](t, answer) {
			if seen[e.Path] {
				t.Fatalf("%s is there twice", e.Path)
			}
			seen[e.Path] = true
		}
		target = ""
		if m := next.FindStringSubmatch(answer.Header.Get("Link")); m != nil {
			target = m[1]
		}
	}
	if len(seen) != directories*(each+1) {
		t.Errorf("there are %d entries, want %d", len(seen), directories*(each+1))
	}
	answer := s.As("", "GET /projects/20/repository/tree?recursive=true", "")
	if _, told := answer.Header["X-Total"]; told || strings.Contains(answer.Header.Get("Link"), "last") || !strings.Contains(answer.Header.Get("Link"), "first") {
		t.Errorf("of so many entries the headers are %v", answer.Header)
	}
}
