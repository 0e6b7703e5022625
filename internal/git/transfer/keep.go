package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
)

// losses returns the names of the refs of the other side that would lose something in changes that must keep them. A single git answers for
// all of them, by the rules of a push that does not force: it is told what the other side has, and prints what it would refuse.
func losses(ctx context.Context, repo *git.Repository, changes []change, format string) (map[string]bool, error) {
	var wanted, theirs bytes.Buffer
	asked := map[string]bool{}
	for _, c := range changes {
		if c.force || c.Old == "" || c.New == "" {
			continue
		}
		line := c.Old + " " + c.Name
		if len(asked) == 0 {
			line += "\x00report-status delete-refs object-format=" + format
		}
		asked[c.Name] = true
		writePacket(&wanted, c.New+":"+c.Name)
		writePacket(&theirs, line)
	}
	if len(asked) == 0 {
		return nil, nil
	}
	var answers bytes.Buffer
	c := process.In(repo.Dir(), "send-pack", "--dry-run", "--stateless-rpc", "--helper-status", "--stdin", "origin")
	c.Stdin = strings.NewReader(wanted.String() + flush + theirs.String() + flush)
	c.Stdout = &answers
	err := repo.Run(ctx, c)
	if failed := (*process.Error)(nil); err != nil && (!errors.As(err, &failed) || failed.ExitCode <= 0) {
		return nil, fmt.Errorf("looking for refs that have diverged: %w", err)
	}
	// git fails if it would refuse anything, so whether it has answered says more than how it ended.
	lost := map[string]bool{}
	for line := range strings.Lines(strings.TrimPrefix(answers.String(), flush)) { // the end of the list of requests, which is empty
		status, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		name, _, _ := strings.Cut(rest, " ")
		switch {
		case !asked[name]:
		case status == "error":
			lost[name] = true
			delete(asked, name)
		case status == "ok":
			delete(asked, name)
		}
	}
	if len(asked) > 0 {
		return nil, errors.Join(fmt.Errorf("git does not say whether %d refs have diverged", len(asked)), err)
	}
	return lost, nil
}

// writePacket writes a line as a packet.
func writePacket(to *bytes.Buffer, line string) {
	fmt.Fprintf(to, "%04x%s", len(line)+lengthSize, line)
}
