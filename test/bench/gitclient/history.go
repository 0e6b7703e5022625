package gitclient

import (
	"bytes"
	"context"
	"fmt"

	"github.com/forgeplane/forgeplane/test/history"
)

// epoch is the time of the first commit of Commit. Each commit is a minute after the previous one.
const epoch = 1700000000

// History creates a repository with a history in an empty directory. The same options result in the same repository.
func (c *Client) History(ctx context.Context, directory string, o history.Options) error {
	if _, err := c.Run(ctx, directory, nil, "init", "--quiet", "--bare", "--initial-branch=main"); err != nil {
		return err
	}
	if _, err := c.Run(ctx, directory, history.Stream(o), "fast-import", "--quiet"); err != nil {
		return err
	}
	_, err := c.Run(ctx, directory, nil, "gc", "--quiet")
	return err
}

// Commit adds a commit that changes one file to a branch of a repository in a directory, and returns its id. A branch that does not exist begins at
// HEAD.
func (c *Client) Commit(ctx context.Context, directory, branch string, number int) (string, error) {
	return c.CommitFile(ctx, directory, branch, "bench.txt", fmt.Sprintf("Change number %d of %s\n", number, branch), number)
}

// CommitFile is Commit with a given file.
func (c *Client) CommitFile(ctx context.Context, directory, branch, path, content string, number int) (string, error) {
	ref := "refs/heads/" + branch
	parent := ref
	if _, err := c.Run(ctx, directory, nil, "rev-parse", "--quiet", "--verify", ref); err != nil {
		parent = "HEAD"
	}
	message := fmt.Sprintf("Change number %d\n", number)
	var stream bytes.Buffer
	fmt.Fprintf(&stream, "commit %s\ncommitter Ann Author <ann@example.com> %d +0000\ndata %d\n%sfrom %s^0\nM 100644 inline %s\ndata %d\n%s\n",
		ref, epoch+60*number, len(message), message, parent, path, len(content), content)
	if _, err := c.Run(ctx, directory, &stream, "fast-import", "--quiet"); err != nil {
		return "", err
	}
	return c.Run(ctx, directory, nil, "rev-parse", ref)
}
