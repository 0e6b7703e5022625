package repositories_test

import (
	"archive/tar"
	"archive/zip"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"mime"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/repositories"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
)

// packed returns the names of the files in an archive. The extension of name is its format.
func packed(t *testing.T, name, body string) (all []string) {
	t.Helper()
	var in io.Reader = strings.NewReader(body)
	switch {
	case strings.HasSuffix(name, ".zip"):
		z, err := zip.NewReader(strings.NewReader(body), int64(len(body)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			if !strings.HasSuffix(f.Name, "/") {
				all = append(all, f.Name)
			}
		}
		return all
	case strings.HasSuffix(name, ".tar.gz"):
		var err error
		if in, err = gzip.NewReader(in); err != nil {
			t.Fatal(err)
		}
	case strings.HasSuffix(name, ".tar.bz2"):
		in = bzip2.NewReader(in)
	}
	for archive := tar.NewReader(in); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if h.Typeflag == tar.TypeReg {
			all = append(all, h.Name)
		}
	}
}

func TestArchive_hasItsNameAndFiles(t *testing.T) {
	c := gittest.New(t, "sha1")
	for _, path := range []string{"README", "docs/a b", "docs/api/c"} {
		c.Commit(t, path, path)
	}
	c.Git(t, "branch", "feature/ünï\"x")
	s := newShop(t, c)
	id := c.Git(t, "rev-parse", "HEAD")
	everything := []string{"/README", "/docs/a b", "/docs/api/c"}
	for _, tt := range []struct{ suffix, sha, path, name, kind string }{
		{"", "", "", "web-main-" + id + ".tar.gz", "application/octet-stream"},
		{".tar.gz", "main", "", "web-main-" + id + ".tar.gz", "application/octet-stream"},
		{".tgz", "HEAD", "", "web-HEAD-" + id + ".tar.gz", "application/octet-stream"},
		{".gz", id, "", "web-" + id + "-" + id + ".tar.gz", "application/octet-stream"},
		{".tar.bz2", id[:8], "", "web-" + id[:8] + "-" + id + ".tar.bz2", "application/octet-stream"},
		{".tbz", "refs/heads/main", "", "web-refs-heads-main-" + id + ".tar.bz2", "application/octet-stream"},
		{".tbz2", "", "/", "web-main-" + id + ".tar.bz2", "application/octet-stream"},
		{".tb2", "", "docs", "web-main-" + id + "-docs.tar.bz2", "application/octet-stream"},
		{".bz2", "", "docs/api/", "web-main-" + id + "-docs-api.tar.bz2", "application/octet-stream"},
		{".tar", "feature/ünï\"x", "", "web-feature-ünï\"x-" + id + ".tar", "application/octet-stream"},
		{".zip", "", "docs/a b", "web-main-" + id + "-docs-a b.zip", "application/zip"},
	} {
		t.Run(tt.suffix, func(t *testing.T) {
			q := url.Values{"sha": {tt.sha}, "path": {tt.path}}.Encode()
			answer := s.As("", "GET /projects/20/repository/archive"+tt.suffix+"?"+q, "")
			_, named, err := mime.ParseMediaType(answer.Header.Get("Content-Disposition"))
			if err != nil || named["filename"] != tt.name || !strings.HasPrefix(answer.Header.Get("Content-Disposition"), "attachment; filename") {
				t.Errorf("the name is %s (%v), want %s", answer.Header.Get("Content-Disposition"), err, tt.name)
			}
			if got := answer.Header.Get("Content-Type"); got != tt.kind {
				t.Errorf("the type is %s, want %s", got, tt.kind)
			}
			directory := tt.name
			for _, end := range []string{".tar.gz", ".tar.bz2", ".tar", ".zip"} {
				directory = strings.TrimSuffix(directory, end)
			}
			var want []string
			for _, path := range everything {
				if below := "/" + strings.Trim(tt.path, "/"); below == "/" || path == below || strings.HasPrefix(path, below+"/") {
					want = append(want, directory+path)
				}
			}
			if got := packed(t, tt.name, answer.Body); !slices.Equal(got, want) {
				t.Errorf("the files are %q, want %q", got, want)
			}
		})
	}
	if head := s.As("", "HEAD /projects/20/repository/archive.zip", ""); head.Code != 200 || head.Body != "" {
		t.Errorf("HEAD is answered %d with %d bytes", head.Code, len(head.Body))
	}
}

func TestArchive_omitsExcludedPaths(t *testing.T) {
	c := gittest.New(t, "sha1")
	for _, path := range []string{"README", "docs/a b", "docs/api/c", "docs/*", "docs2"} {
		c.Commit(t, path, path)
	}
	s := newShop(t, c)
	for query, want := range map[string][]string{
		"exclude_paths=docs":                       {"/README", "/docs2"},
		"exclude_paths=docs/api/,README":           {"/docs/*", "/docs/a b", "/docs2"},
		"exclude_paths=docs/*":                     {"/README", "/docs/a b", "/docs/api/c", "/docs2"},
		"exclude_paths=other":                      {"/README", "/docs/*", "/docs/a b", "/docs/api/c", "/docs2"},
		"exclude_paths[]=docs/api&path=docs":       {"/docs/*", "/docs/a b"},
		"exclude_paths=&include_lfs_blobs=false":   {"/README", "/docs/*", "/docs/a b", "/docs/api/c", "/docs2"},
		"exclude_paths=:(top)docs,:!README,:/docs": {"/README", "/docs/*", "/docs/a b", "/docs/api/c", "/docs2"},
	} {
		var got []string
		for _, name := range packed(t, "x.tar", s.As("", "GET /projects/20/repository/archive.tar?"+strings.ReplaceAll(query, " ", "%20"), "").Body) {
			_, path, _ := strings.Cut(name, "/")
			got = append(got, "/"+path)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: the files are %q, want %q", query, got, want)
		}
	}
	s.Expect(t, asks{"GET /projects/20/repository/archive?exclude_paths=.", `404 {"message":"404 File Not Found"}`})
	s.Expect(t, asks{"GET /projects/20/repository/archive?exclude_paths=a,../b", `404 {"message":"404 File Not Found"}`},
		asks{"GET /projects/20/repository/archive?exclude_paths=" + strings.Repeat("a,", 101), `400 {"error":"exclude_paths is too long (maximum is 100 paths)"}`})
}

func TestArchive_isRefusedWithAReason(t *testing.T) {
	s := newShop(t, oddTree(t, "sha1"))
	const notFound = `404 {"message":"404 File Not Found"}`
	s.Expect(t,
		asks{"GET /projects/20/repository/archive?sha=other", notFound},
		asks{"GET /projects/20/repository/archive.zip?sha=--remote=x", notFound},
		asks{"GET /projects/20/repository/archive.bz2?path=other", notFound},
		asks{"GET /projects/20/repository/archive?path=../x", notFound},
		asks{"GET /projects/20/repository/archive?path=module", notFound},
		asks{"GET /projects/20/repository/archive?path=*", notFound},
		asks{"GET /projects/21/repository/archive", notFound},
		asks{"GET /projects/22/repository/archive.tar", notFound},
		asks{"GET /projects/20/repository/archive.rar", `404 {"error":"404 Not Found"}`},
	)
	s.Header = map[string][]string{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"no-cors"}}
	s.Expect(t, asks{"GET /projects/20/repository/archive", `406 {"message":"406 Not Acceptable"}`})
}

func TestArchive_doesNotTakePathsForOptions(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "--format=zip", "x")
	s := newShop(t, c)
	answer := s.As("", "GET /projects/20/repository/archive.tar?path=--format%3Dzip", "")
	if got := packed(t, "x.tar", answer.Body); len(got) != 1 || !strings.HasSuffix(got[0], "/--format=zip") {
		t.Errorf("the files are %q", got)
	}
	if a := familytest.Decode[[]Entry](t, s.As("", "GET /projects/20/repository/tree", "")); len(a) != 1 {
		t.Errorf("the tree is %v", a)
	}
}

func TestArchive_answersBusyWhileAnotherIsSent(t *testing.T) {
	c := gittest.New(t, "sha1")
	commit := c.Commit(t, "README", "hello")
	s := newShop(t, c)
	repos, release := s.Hold(t, func(ctx context.Context, r *git.Repository, w io.Writer) error {
		return snapshot.WriteArchive(ctx, r, snapshot.Archive{Commit: commit, Prefix: "x", Format: snapshot.Tar}, w)
	})
	s.serve(repos)
	s.ExpectBusy(t, "GET /projects/20/repository/archive.zip")
	release()
	if answer := s.As("", "GET /projects/20/repository/archive.zip", ""); answer.Code != 200 {
		t.Errorf("got %s", answer)
	}
}
