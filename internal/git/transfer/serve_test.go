package transfer_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
)

func TestServe_advertisesRefs(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			c := gittest.New(t, format)
			id := c.Commit(t, "a", "1")
			c.Git(t, "update-ref", object.InternalRefs+"x", id)
			r := gittest.Bare(t, c)
			var out bytes.Buffer
			if err := transfer.Serve(t.Context(), r, transfer.ServeOptions{Service: transfer.UploadPack, Advertise: true, Stdout: &out}); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), id+" refs/heads/main") || strings.Contains(out.String(), object.InternalRefs) {
				t.Errorf("got %q", out.String())
			}
			out.Reset()
			if err := transfer.Serve(t.Context(), r, transfer.ServeOptions{Service: transfer.UploadPack, Advertise: true, Protocol: "version=2", Stdout: &out}); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(out.String(), "000eversion 2\n") || !strings.Contains(out.String(), "filter") {
				t.Errorf("got %q", out.String())
			}
		})
	}
}

func TestServe_refusesPushesWithoutAHook(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	r := gittest.Bare(t, c)
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
		err := transfer.Serve(t.Context(), r, transfer.ServeOptions{Service: transfer.ReceivePack, HooksDir: dir, Advertise: true, Stdout: &bytes.Buffer{}})
		if !errors.Is(err, transfer.ErrHookMissing) {
			t.Errorf("%q: %v", dir, err)
		}
	}
	if err := transfer.Serve(t.Context(), r, transfer.ServeOptions{Service: transfer.ReceivePack, HooksDir: good, Advertise: true, Stdout: &bytes.Buffer{}}); err != nil {
		t.Errorf("a hook of this user alone: %v", err)
	}
	if err := transfer.Serve(t.Context(), r, transfer.ServeOptions{Service: "git-upload-archive"}); err == nil {
		t.Error("another service is served")
	}
}
