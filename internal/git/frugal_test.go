package git_test

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
)

// frugal are the settings that limit the memory and the processors of one process.
var frugal = map[string]string{
	"pack.threads": "1", "index.threads": "1", "fetch.parallel": "1", "pack.windowMemory": "64m", "pack.deltaCacheSize": "64m",
	"core.deltaBaseCacheLimit": "32m", "core.bigFileThreshold": "32m",
}

// perVerb are the settings that replace them for a command.
var perVerb = map[string]string{"diff-tree core.bigFileThreshold": "8m"}

// Settings for a git process apply wherever it is started, whatever its purpose is.
func TestProcesses_areFrugal(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	ask := ""
	for key := range frugal {
		ask += fmt.Sprintf("echo \"$1 %s=$(git config --get %s)\" >>%s\n", key, key, log)
	}
	e := gittest.Limited(t, gittest.Script(t, ask+`exec git "$@"`), git.Limits{})
	c := gittest.New(t, "sha1")
	from, to := c.Commit(t, "a", "1\n"), c.Commit(t, "a", "2\n")
	root := t.TempDir()
	c.Git(t, "clone", "--quiet", "--mirror", ".", root+"/o.git")
	server := gittest.Remote(t, root)
	r := gittest.Repository(t, e, t.TempDir(), "1.git")
	for _, tt := range []struct {
		about string
		run   func() error
		verbs string
	}{
		{"an import", func() error {
			return transfer.Import(t.Context(), r, transfer.ImportOptions{URL: server + "/public/o.git"})
		}, "fetch commit-graph"},
		{"a clone", func() error {
			want := fmt.Sprintf("0032want %s\n00000009done\n", to)
			return transfer.Serve(t.Context(), r, transfer.ServeOptions{Service: transfer.UploadPack, Stdin: strings.NewReader(want), Stdout: io.Discard})
		}, "upload-pack"},
		{"an archive", func() error {
			return snapshot.WriteArchive(t.Context(), r, snapshot.Archive{Commit: to, Prefix: "a", Format: snapshot.Tar}, io.Discard)
		}, "archive"},
		{"a comparison", func() error { _, err := history.Compare(t.Context(), r, from, to, time.Minute); return err }, "diff-tree"},
		{"a mirror", func() error {
			_, _ = transfer.Push(t.Context(), r, transfer.PushOptions{URL: server + "/public/o.git"}) // the server accepts nothing from clients that it does not know
			return nil
		}, "remote-http"},
		{"maintenance", func() error {
			old := time.Now().Add(-30 * 24 * time.Hour) // the last time that everything was packed
			if err := os.WriteFile(r.Dir()+"/forgeplane-maintenance", nil, 0o644); err != nil {
				return err
			}
			if err := os.Chtimes(r.Dir()+"/forgeplane-maintenance", old, old); err != nil {
				return err
			}
			return upkeep.Maintain(t.Context(), r)
		}, "repack"},
	} {
		_ = os.Remove(log)
		if err := tt.run(); err != nil {
			t.Fatalf("%s: %v", tt.about, err)
		}
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatalf("%s: %v", tt.about, err)
		}
		for _, verb := range strings.Fields(tt.verbs) {
			if !strings.Contains(string(text), verb+" ") {
				t.Errorf("%s: there is no git %s", tt.about, verb)
			}
		}
		for _, said := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			verb, setting, _ := strings.Cut(said, " ")
			key, value, _ := strings.Cut(setting, "=")
			if want := cmp.Or(perVerb[verb+" "+key], frugal[key]); value != want {
				t.Errorf("%s: git %s has %s=%q, want %q", tt.about, verb, key, value, want)
			}
		}
	}
}
