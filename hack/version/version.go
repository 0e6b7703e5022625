// Package version says which version of Forgeplane a checkout has.
package version

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// File has the number of the version. It is among the sources of the program, which embeds it.
const File = "cmd/forgeplane/VERSION"

// Version is the version of a checkout.
type Version struct {
	// Number is a semantic version, such as 0.1.0.
	Number string
	// Commit is the abbreviated id of the commit, followed by -dirty if the checkout differs from it. It is empty outside of a checkout.
	Commit string
	// Date is the time of the commit, or the start of 1970 if the commit is not known.
	Date time.Time
}

// Of returns the version of the checkout at a directory.
func Of(ctx context.Context, directory string) (Version, error) {
	text, err := os.ReadFile(filepath.Join(directory, File))
	if err != nil {
		return Version{}, fmt.Errorf("reading the version: %w", err)
	}
	v := Version{Number: strings.TrimSpace(string(text)), Date: time.Unix(0, 0).UTC()}
	if v.Commit = describe(ctx, directory); v.Commit == "" {
		return v, nil
	}
	date, err := git(ctx, directory, "log", "-1", "--format=%ct")
	if err != nil {
		return v, err
	}
	seconds, err := strconv.ParseInt(date, 10, 64)
	if err != nil {
		return v, fmt.Errorf("reading the time of the commit: %w", err)
	}
	v.Date = time.Unix(seconds, 0).UTC()
	return v, nil
}

// describe returns the Commit of a version, which is empty if there is no git, no checkout or no commit.
func describe(ctx context.Context, directory string) string {
	commit, err := git(ctx, directory, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
	if err != nil {
		return ""
	}
	return commit
}

// LinkerFlags returns the value of -ldflags for programs without symbols and with the commit.
func (v Version) LinkerFlags() string { return "-s -w -X main.commit=" + v.Commit }

func git(ctx context.Context, directory string, args ...string) (string, error) {
	// All builds must find the same commit, also those in a checkout of another user. They run its code anyway.
	command := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*"}, args...)...)
	command.Dir = directory
	command.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0")
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(output)), nil
}
