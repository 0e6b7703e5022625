package gitclient

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
)

const (
	// epoch is the time of the first commit; each is a minute after the one before.
	epoch = 1700000000
	// files is how many files a generated history has, and fileLines how long each of them is.
	files     = 400
	fileLines = 120
)

// History makes a repository in an empty directory: commits on main, each of which changes some lines of a few files, and
// branches that begin at the last one. The same arguments give the same repository.
func (c *Client) History(ctx context.Context, directory string, commits int, branches ...string) error {
	if _, err := c.Run(ctx, directory, nil, "init", "--quiet", "--bare", "--initial-branch=main"); err != nil {
		return err
	}
	if _, err := c.Run(ctx, directory, history(commits, branches), "fast-import", "--quiet"); err != nil {
		return err
	}
	_, err := c.Run(ctx, directory, nil, "gc", "--quiet")
	return err
}

// history is a stream for "git fast-import".
func history(commits int, branches []string) *bytes.Buffer {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // it is to be the same each time
	contents := make([][]string, files)
	var stream bytes.Buffer
	for number := range commits {
		begin(&stream, "refs/heads/main", number)
		for range 1 + random.IntN(4) {
			file := random.IntN(files)
			if contents[file] == nil {
				for range fileLines {
					contents[file] = append(contents[file], line(random))
				}
			}
			for range 1 + random.IntN(10) {
				contents[file][random.IntN(fileLines)] = line(random)
			}
			write(&stream, fmt.Sprintf("directory-%02d/file-%03d.txt", file%20, file), strings.Join(contents[file], ""))
		}
	}
	for _, branch := range branches {
		fmt.Fprintf(&stream, "reset refs/heads/%s\nfrom refs/heads/main\n\n", branch)
	}
	return &stream
}

func begin(stream *bytes.Buffer, ref string, number int) {
	message := fmt.Sprintf("Change number %d\n", number)
	fmt.Fprintf(stream, "commit %s\ncommitter Ann Author <ann@example.com> %d +0000\ndata %d\n%s", ref, epoch+60*number, len(message), message)
}

func write(stream *bytes.Buffer, path, content string) {
	fmt.Fprintf(stream, "M 100644 inline %s\ndata %d\n%s\n", path, len(content), content)
}

func line(random *rand.Rand) string {
	words := []string{"branch", "commit", "forge", "group", "label", "merge", "project", "push", "release", "token"}
	var text strings.Builder
	for range 8 {
		fmt.Fprintf(&text, "%s%d ", words[random.IntN(len(words))], random.IntN(1000))
	}
	return strings.TrimSpace(text.String()) + "\n"
}

// Commit adds a commit, which changes one file, to a branch of a repository in a directory, and returns its id. A branch
// that does not exist begins at HEAD.
func (c *Client) Commit(ctx context.Context, directory, branch string, number int) (string, error) {
	ref := "refs/heads/" + branch
	parent := ref
	if _, err := c.Run(ctx, directory, nil, "rev-parse", "--quiet", "--verify", ref); err != nil {
		parent = "HEAD"
	}
	var stream bytes.Buffer
	begin(&stream, ref, number)
	fmt.Fprintf(&stream, "from %s^0\n", parent)
	write(&stream, "bench.txt", fmt.Sprintf("Change number %d of %s\n", number, branch))
	if _, err := c.Run(ctx, directory, &stream, "fast-import", "--quiet"); err != nil {
		return "", err
	}
	return c.Run(ctx, directory, nil, "rev-parse", ref)
}
