package git

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
)

// transfer is the name of a file in a staged repository: in it git says itself which processes a fetch has started.
const transfer = "forgeplane-transfer"

// errUnchecked is for what has come as files.
var errUnchecked = limitf("The server offers the repository as files alone, without Git's smart HTTP protocol. What comes that way is not checked, " +
	"so it cannot be imported. Import it from a server that runs Git.")

// checked returns a *LimitError where objects have come in another way than through a check of each of them. Git checks nothing of what it
// takes from a server that only has files, and the server decides at each request whether it is one. What git has started says what it was.
func (r *Repository) checked(ctx context.Context) error {
	path := filepath.Join(r.dir, transfer)
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
	return walk(ctx, filepath.Join(r.dir, "objects"), func(_ string, info fs.FileInfo) error {
		if !info.IsDir() {
			return errUnchecked
		}
		return nil
	})
}

// strictly reports whether a transfer was one in which git checks each object.
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
