package repositories_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/repositories"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
)

// random returns random bytes that are the same in every call.
func random(size int) []byte {
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content)
	return content
}

func TestBlob_isServedUnchanged(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		// The large ones are encoded in pieces, and the largest is not kept in memory.
		for size, content := range map[string][]byte{
			"empty": {}, "text": []byte("hello, \"world\"\n"), "binary": []byte("\x00\xff\r\n"),
			"large": random(3<<20 + 1), "largest": bytes.Repeat([]byte("0123456789abcde\n"), 17<<16),
		} {
			t.Run(format+" "+size, func(t *testing.T) {
				c := gittest.New(t, format)
				c.Commit(t, "file", string(content))
				id := c.Git(t, "rev-parse", "HEAD:file")
				s := newShop(t, c)
				for range 2 { // first from Git, then from the cache
					raw := s.As("", "GET /projects/20/repository/blobs/"+id+"/raw", "")
					if raw.Code != 200 || raw.Body != string(content) {
						t.Fatalf("the raw content is %d with %d bytes, want %d bytes", raw.Code, len(raw.Body), len(content))
					}
					for name, want := range map[string]string{
						"Content-Type": "text/plain", "Content-Disposition": "inline", "X-Gitlab-Blob-Id": id,
						"Content-Length": fmt.Sprint(len(content)), "Cache-Control": "max-age=0, private, must-revalidate, no-store, no-cache",
						"Expires": "Fri, 01 Jan 1990 00:00:00 GMT", "X-Content-Type-Options": "nosniff",
					} {
						if got := raw.Header.Get(name); got != want {
							t.Errorf("%s is %q, want %q", name, got, want)
						}
					}
					answer := s.As("", "GET /projects/20/repository/blobs/"+id, "")
					b := familytest.Decode[Blob](t, answer)
					decoded, err := base64.StdEncoding.DecodeString(b.Content)
					if err != nil || !bytes.Equal(decoded, content) {
						t.Errorf("the content is %.100q (%v)", decoded, err)
					}
					if b.Size != int64(len(content)) || b.SHA != id || b.Encoding != "base64" {
						t.Errorf("the blob has size %d, SHA %s and encoding %s", b.Size, b.SHA, b.Encoding)
					}
				}
				if head := s.As("", "HEAD /projects/20/repository/blobs/"+id+"/raw", ""); head.Code != 200 || head.Body != "" {
					t.Errorf("HEAD is answered %d with %d bytes", head.Code, len(head.Body))
				}
			})
		}
	}
}

func TestBlob_isNotFoundForOtherObjects(t *testing.T) {
	s := newShop(t, oddTree(t, "sha1"))
	const notFound = `404 {"message":"404 Blob Not Found"}`
	for _, id := range []string{
		s.client.Git(t, "rev-parse", "HEAD"), s.client.Git(t, "rev-parse", "HEAD:dir"), s.client.Git(t, "rev-parse", "v1"),
		"0123456789012345678901234567890123456789", "main:README", "README", "--all", "main",
	} {
		for _, suffix := range []string{"", "/raw"} {
			s.Expect(t, asks{"GET /projects/20/repository/blobs/" + id + suffix, notFound})
		}
	}
	id := s.client.Git(t, "rev-parse", "HEAD:README")
	s.Expect(t, asks{"GET /projects/21/repository/blobs/" + id, notFound}, asks{"GET /projects/22/repository/blobs/" + id + "/raw", notFound})
}

func TestLargeBlob_takesLittleMemory(t *testing.T) {
	const size = 100 << 20
	c := gittest.New(t, "sha1")
	if err := os.WriteFile(filepath.Join(c.Dir, "huge"), make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Git(t, "add", "huge")
	c.Git(t, "commit", "--quiet", "--message=huge")
	s := newShop(t, c)
	path := "/projects/20/repository/blobs/" + c.Git(t, "rev-parse", "HEAD:huge")
	for target, want := range map[string]int{path + "/raw": size, path: base64.StdEncoding.EncodedLen(size)} {
		_, length, memory := s.Stream(t, "GET "+target)
		if length < want || length > want+200 {
			t.Errorf("%s has %d bytes, want %d", target, length, want)
		}
		if memory > 4<<20 {
			t.Errorf("%s has taken %d bytes of memory", target, memory)
		}
	}
}

func TestLargeBlob_answersBusyWhileAnotherIsSent(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "small", "x")
	c.Commit(t, "largest", strings.Repeat("0123456789abcde\n", 17<<16))
	id := c.Git(t, "rev-parse", "HEAD:largest")
	s := newShop(t, c)
	repos, release := s.Hold(t, func(ctx context.Context, r *git.Repository, w io.Writer) error {
		b, err := snapshot.OpenBlob(ctx, r, id)
		if err != nil {
			return err
		}
		return b.Write(ctx, w)
	})
	s.serve(repos)
	path := "GET /projects/20/repository/blobs/"
	s.ExpectBusy(t, path+id, path+id+"/raw")
	s.Expect(t, asks{path + c.Git(t, "rev-parse", "HEAD:small") + "/raw", "200 x"})
	release()
	if answer := s.As("", path+id+"/raw", ""); answer.Code != 200 || len(answer.Body) != 17<<20 {
		t.Errorf("got %d with %d bytes", answer.Code, len(answer.Body))
	}
}
