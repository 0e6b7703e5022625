package git_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

func TestServeAdvertisesRefs(t *testing.T) {
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			c := gittest.New(t, format)
			id := c.Commit(t, "a", "1")
			c.Git(t, "update-ref", git.InternalRefs+"x", id)
			r := bare(t, c)
			var out bytes.Buffer
			if err := r.Serve(t.Context(), git.ServeOptions{Service: git.UploadPack, Advertise: true, Stdout: &out}); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), id+" refs/heads/main") || strings.Contains(out.String(), git.InternalRefs) {
				t.Errorf("got %q", out.String())
			}
			out.Reset()
			if err := r.Serve(t.Context(), git.ServeOptions{Service: git.UploadPack, Advertise: true, Protocol: "version=2", Stdout: &out}); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(out.String(), "000eversion 2\n") || !strings.Contains(out.String(), "filter") {
				t.Errorf("got %q", out.String())
			}
		})
	}
}

func TestServeTakesNoPushWithoutAHook(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	r := bare(t, c)
	dangling := t.TempDir()
	if err := os.Symlink("/nonexistent", dangling+"/pre-receive"); err != nil {
		t.Fatal(err)
	}
	plain := t.TempDir()
	if err := os.WriteFile(plain+"/pre-receive", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	open, link := t.TempDir(), t.TempDir()+"/hooks"
	if err := errors.Join(os.WriteFile(open+"/pre-receive", nil, 0o755), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	good := t.TempDir()
	if err := errors.Join(os.WriteFile(good+"/pre-receive", nil, 0o755), os.Chmod(good, 0o755), os.Symlink(good, link)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", t.TempDir(), dangling, plain, open, link, "/nonexistent"} {
		err := r.Serve(t.Context(), git.ServeOptions{Service: git.ReceivePack, HooksDir: dir, Advertise: true, Stdout: &bytes.Buffer{}})
		if !errors.Is(err, git.ErrHookMissing) {
			t.Errorf("%q: %v", dir, err)
		}
	}
	if err := r.Serve(t.Context(), git.ServeOptions{Service: git.ReceivePack, HooksDir: good, Advertise: true, Stdout: &bytes.Buffer{}}); err != nil {
		t.Errorf("a hook of this user alone: %v", err)
	}
	if err := r.Serve(t.Context(), git.ServeOptions{Service: "git-upload-archive"}); err == nil {
		t.Error("another service is served")
	}
}
