package files_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/files"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
)

// shop is a familytest.Shop whose project web has the refs of client.
type shop struct {
	*familytest.Shop

	client *gittest.Client
}

func newShop(t *testing.T, c *gittest.Client) *shop {
	t.Helper()
	s := &shop{Shop: familytest.NewShop(t, c), client: c}
	s.Serve(New(s.Kit).Table())
	return s
}

type asks = familytest.Asks

const at = "/projects/20/repository/files/"

// paths are ordinary paths, and paths that need escaping.
var paths = []string{"README.md", "dir/a b", "dir/b/c.d", `"quoted"\`, "tab\there", "line\nbreak", "ümläut", "a/raw", "100%25", "-x", "*", ":/x"}

// oddTree returns a client with a file at each of the paths, an executable file, a link and a submodule.
func oddTree(t *testing.T, format string) *gittest.Client {
	t.Helper()
	c := gittest.New(t, format)
	for _, p := range paths {
		c.Commit(t, p, "content of "+p+"\n")
	}
	c.Commit(t, "run", "#!/bin/sh\n")
	c.Commit(t, "not-\xff-utf8", "x")
	if err := os.Symlink("README.md", filepath.Join(c.Dir, "link")); err != nil {
		t.Fatal(err)
	}
	c.Git(t, "add", "link")
	c.Git(t, "update-index", "--chmod=+x", "run")
	c.Git(t, "update-index", "--add", "--cacheinfo", "160000,"+c.Git(t, "rev-parse", "HEAD")+",module")
	c.Git(t, "commit", "--quiet", "--message=odd")
	c.Git(t, "tag", "--annotate", "--message=first", "v1")
	c.Commit(t, "README.md", "new\n")
	return c
}

// headers returns the file that the headers of an answer describe.
func headers(t *testing.T, h http.Header) (f File) {
	t.Helper()
	all := map[string]any{}
	for name, values := range h {
		if key, ours := strings.CutPrefix(name, "X-Gitlab-"); ours && key != "Meta" {
			all[strings.ToLower(strings.ReplaceAll(key, "-", "_"))] = values[0]
		}
	}
	all["size"], all["execute_filemode"] = json.Number(all["size"].(string)), all["execute_filemode"] == "true"
	text, err := json.Marshal(all)
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestGetFile_returnsContentAndMetadata(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		c := oddTree(t, format)
		s := newShop(t, c)
		for _, revision := range []string{"main", "HEAD", "v1", "refs/heads/main", c.Git(t, "rev-parse", "main~1"), c.Git(t, "rev-parse", "main")[:9]} {
			for _, p := range append([]string{"run", "link"}, paths...) {
				content := c.Git(t, "cat-file", "blob", revision+":"+p)
				if p != "link" {
					content += "\n"
				}
				want := File{
					FileName: p[strings.LastIndex(p, "/")+1:], FilePath: p, Size: int64(len(content)), Encoding: "base64", Ref: revision,
					ContentSHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(content))), BlobID: c.Git(t, "rev-parse", revision+":"+p),
					CommitID:        c.Git(t, "rev-parse", revision+"^{commit}"),
					LastCommitID:    c.Git(t, "--literal-pathspecs", "log", "--max-count=1", "--format=%H", revision, "--", p),
					ExecuteFilemode: p == "run", Content: base64.StdEncoding.EncodeToString([]byte(content)),
				}
				target := at + url.PathEscape(p)
				query := "?ref=" + url.QueryEscape(revision)
				got := s.As("", "GET "+target+query, "")
				if f := familytest.Decode[File](t, got); fmt.Sprintf("%#v", f) != fmt.Sprintf("%#v", want) {
					t.Errorf("%q at %s is\n%+v\nwant\n%+v", p, revision, f, want)
				}
				raw := s.As("", "GET "+target+"/raw"+query, "")
				if raw.Code != 200 || raw.Body != content {
					t.Errorf("%q at %s is %s", p, revision, raw)
				}
				want.Content = ""
				want.FileName = strings.Map(printable, want.FileName)
				want.FilePath = strings.Map(printable, want.FilePath)
				for _, a := range []familytest.Answer{got, raw, s.As("", "HEAD "+target+query, ""), s.As("", "HEAD "+target+"/raw"+query, "")} {
					if f := headers(t, a.Header); a.Code != 200 || fmt.Sprintf("%#v", f) != fmt.Sprintf("%#v", want) {
						t.Errorf("the headers of %q at %s are\n%+v\nwant\n%+v", p, revision, f, want)
					}
				}
			}
		}
	}
}

func printable(r rune) rune {
	if r < ' ' {
		return '\uFFFD'
	}
	return r
}

func TestRawFile_isServedAsPlainText(t *testing.T) {
	s := newShop(t, oddTree(t, "sha1"))
	for _, p := range paths {
		raw := s.As("", "GET "+at+url.PathEscape(p)+"/raw", "")
		for name, want := range map[string]string{
			"Content-Type": "text/plain", "Content-Length": fmt.Sprint(len(raw.Body)), "X-Gitlab-Ref": "HEAD", "X-Content-Type-Options": "nosniff",
			"Cache-Control": "max-age=0, private, must-revalidate, no-store, no-cache", "Expires": "Fri, 01 Jan 1990 00:00:00 GMT",
		} {
			if got := raw.Header.Get(name); got != want {
				t.Errorf("%q: %s is %q, want %q", p, name, got, want)
			}
		}
		kind, named, err := mime.ParseMediaType(raw.Header.Get("Content-Disposition"))
		if name := p[strings.LastIndex(p, "/")+1:]; err != nil || kind != "inline" || named["filename"] != name {
			t.Errorf("%q is sent as %q (%v)", p, raw.Header.Get("Content-Disposition"), err)
		}
	}
}

func TestGetFile_refusesPathsThatAreNotFiles(t *testing.T) {
	c := oddTree(t, "sha1")
	s := newShop(t, c)
	const noFile, noCommit = `404 {"message":"404 File Not Found"}`, `404 {"message":"404 Commit Not Found"}`
	for _, p := range []string{"gone", "dir", "dir/", "/README.md", "README.md/", "README.md/x", "module", "dir//a b", "./README.md", "readme.md", "%"} {
		s.Expect(t, asks{"GET " + at + url.PathEscape(p) + "?ref=main", noFile}, asks{"GET " + at + url.PathEscape(p) + "/raw", noFile})
	}
	for _, revision := range []string{"gone", "--all", "main:dir", "main..v1", c.Git(t, "rev-parse", "main:README.md")} {
		s.Expect(t, asks{"GET " + at + "README.md?ref=" + url.QueryEscape(revision), noCommit},
			asks{"GET " + at + "README.md/raw?ref=" + url.QueryEscape(revision), noCommit})
	}
	const notAPath = `400 {"error":"file_path should be a valid file path"}`
	s.Expect(t,
		asks{"GET " + at + "README.md", `400 {"error":"ref is missing"}`},
		asks{"GET " + at + "README.md?ref=", `400 {"error":"ref is empty"}`},
		asks{"GET " + at + "dir%2F..%2FREADME.md?ref=main", notAPath},
		asks{"GET " + at + "%2E%2E/raw", notAPath},
		asks{"GET /projects/21/repository/files/README.md?ref=main", noCommit},
		asks{"GET /projects/21/repository/files/README.md/raw", noCommit},
		asks{"GET /projects/22/repository/files/README.md?ref=HEAD", noCommit},
	)
	if head := s.As("", "HEAD "+at+"gone?ref=main", ""); head.Code != 404 {
		t.Errorf("HEAD is answered %s", head)
	}
}

func TestLargeFiles_takeLittleMemory(t *testing.T) {
	const size = 100 << 20
	c := gittest.New(t, "sha1")
	if err := os.WriteFile(filepath.Join(c.Dir, "huge"), make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	large := make([]byte, 3<<20+1)
	_, _ = rand.NewChaCha8([32]byte{}).Read(large)
	c.Git(t, "add", "huge")
	c.Commit(t, "large", string(large))
	s := newShop(t, c)
	answer := s.As("", "GET "+at+"large?ref=main", "")
	f := familytest.Decode[File](t, answer)
	if decoded, err := base64.StdEncoding.DecodeString(f.Content); err != nil || !bytes.Equal(decoded, large) || f.BlobID != c.Git(t, "rev-parse", "HEAD:large") {
		t.Errorf("the large file is %.300s (%v)", answer, err)
	}
	for request, want := range map[string]int{"GET huge/raw": size, "GET huge?ref=main": base64.StdEncoding.EncodedLen(size), "HEAD huge?ref=main": 0} {
		method, target, _ := strings.Cut(request, " ")
		header, length, memory := s.Stream(t, method+" "+at+target)
		if length < want || length > want+500 || header.Get("X-Gitlab-Size") != fmt.Sprint(size) {
			t.Errorf("%s has %d bytes, want %d; the headers are %v", request, length, want, header)
		}
		if memory > 4<<20 {
			t.Errorf("%s has taken %d bytes of memory", request, memory)
		}
	}
}

func TestLargeFile_answersBusyWhileAnotherIsSent(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "largest", strings.Repeat("0123456789abcde\n", 17<<16))
	s := newShop(t, c)
	repos, release := s.Hold(t, func(ctx context.Context, r *git.Repository, w io.Writer) error {
		b, err := snapshot.OpenBlob(ctx, r, c.Git(t, "rev-parse", "HEAD:largest"))
		if err == nil {
			_, err = b.SHA256(ctx) // so that only the content has to wait for its turn
		}
		if err != nil {
			return err
		}
		return b.Write(ctx, w)
	})
	s.Repositories = repos
	s.Serve(New(s.Kit).Table())
	s.ExpectBusy(t, "GET "+at+"largest?ref=main", "GET "+at+"largest/raw")
	if head := s.As("", "HEAD "+at+"largest?ref=main", ""); head.Code != 200 {
		t.Errorf("HEAD is answered %s", head)
	}
	release()
	if answer := s.As("", "GET "+at+"largest/raw", ""); answer.Code != 200 || len(answer.Body) != 17<<20 {
		t.Errorf("got %d with %d bytes", answer.Code, len(answer.Body))
	}
}

func TestGetFile_isRefusedInAHugeDirectory(t *testing.T) {
	c := gittest.New(t, "sha1")
	commit, last := c.Wide(t, 530_000)
	newShop(t, c).Expect(t, asks{"GET " + at + last + "?ref=" + commit, `422 {"message":"The directory of the file is too large to be read"}`})
}
