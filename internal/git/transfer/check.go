package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/disk"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
)

// transfer is the name of a file in a staged repository to which git logs the processes that a fetch has started.
const transfer = "forgeplane-transfer"

// errUnchecked is the error for objects that were fetched as files.
var errUnchecked = process.Limitf("The server offers the repository as files alone, without Git's smart HTTP protocol. Forgeplane cannot check objects that come " +
	"that way, so it does not import them. Import the repository from a server that runs Git.")

// checked returns a *git.LimitError if objects were fetched without a check of each of them. Git does not check objects from a server that only
// offers files, and the server can choose that at each request. The processes that git started show which way was used.
func checked(ctx context.Context, r *git.Repository) error {
	path := filepath.Join(r.Dir(), transfer)
	file, err := os.Open(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	strict := false
	if err == nil {
		defer file.Close()
		if strict, err = strictly(file); err != nil {
			return fmt.Errorf("finding out how objects have come: %w", err)
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	if strict {
		return nil
	}
	return disk.Walk(ctx, filepath.Join(r.Dir(), "objects"), func(_ string, info fs.FileInfo) error {
		if !info.IsDir() {
			return errUnchecked
		}
		return nil
	})
}

// strictly reports whether git checked each object of a transfer.
func strictly(events io.Reader) (bool, error) {
	strict := false
	for all := json.NewDecoder(events); ; {
		var e struct {
			Event string   `json:"event"`
			Argv  []string `json:"argv"`
		}
		if err := all.Decode(&e); errors.Is(err, io.EOF) {
			return strict, nil
		} else if err != nil {
			return false, err
		}
		if e.Event != "child_start" {
			continue
		}
		if slices.Contains(e.Argv, "http-fetch") {
			return false, nil
		}
		strict = strict || slices.Contains(e.Argv, "index-pack") &&
			slices.ContainsFunc(e.Argv, func(arg string) bool { return strings.HasPrefix(arg, "--strict") })
	}
}
