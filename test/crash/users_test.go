package crash

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/rest"
	"github.com/forgeplane/forgeplane/test/terminal"
)

// committer is a client that makes one commit after another over REST, each with a new file on one branch.
type committer struct {
	name, project string
	api           rest.Client
	// commits are the ids of the commits that the server has reported as made, and refused the numbers of those that it has refused because the
	// repository was being moved. asked is the number of all.
	commits map[int]string
	refused []int
	asked   int
}

// newCommitter returns a client that sends a token, and makes its branch.
func newCommitter(at *server, name, project, token string) *committer {
	GinkgoHelper()
	c := &committer{name: name, project: project, api: rest.WithToken(at.address(), token), commits: map[int]string{}}
	rest.Must[struct{}](c.api, http.StatusCreated, "POST /projects/yard%2F"+project+"/repository/branches", fmt.Sprintf(`{"branch":%q,"ref":"main"}`, name))
	return c
}

func (c *committer) String() string { return "committer " + c.name }

// file is the file of a commit.
func (c *committer) file(number int) string { return fmt.Sprintf("%s-%d.txt", c.name, number) }

func (c *committer) use() error {
	number := c.asked
	c.asked++
	answer, err := c.api.Try("POST /projects/yard%2F"+c.project+"/repository/commits", fmt.Sprintf(
		`{"branch":%q,"commit_message":"Write","actions":[{"action":"create","file_path":%q,"content":"Hello.\n"}]}`, c.name, c.file(number)))
	switch {
	case err != nil:
		return err
	case answer.Status == http.StatusCreated:
		var made struct{ ID string }
		if err := json.Unmarshal([]byte(answer.Body), &made); err != nil {
			return err
		}
		c.commits[number] = made.ID
	case answer.Status == http.StatusForbidden && strings.Contains(answer.Body, readOnly):
		c.refused = append(c.refused, number)
	default:
		return fmt.Errorf("the answer is %s", answer)
	}
	return nil
}

// expectKept expects that the branch has every commit that was reported as made, and none that was refused.
func (c *committer) expectKept() {
	GinkgoHelper()
	git := func(args ...string) []string {
		GinkgoHelper()
		return strings.Split(admin.Git(append([]string{"--git-dir=" + directoryOf(c.project)}, args...)...), "\n")
	}
	history, files := git("rev-list", "refs/heads/"+c.name), git("ls-tree", "--name-only", "refs/heads/"+c.name)
	for number, commit := range c.commits {
		Expect(history).To(ContainElement(commit), "%s saw that number %d of %d was made: %v", c, number, c.asked, c.commits)
		Expect(files).To(ContainElement(c.file(number)))
	}
	for _, number := range c.refused {
		Expect(files).NotTo(ContainElement(c.file(number)), "the client saw that it was refused")
	}
}

// fetcher is a client that fetches again and again.
type fetcher struct {
	name  string
	clone terminal.Terminal
}

func newFetcher(at *server, name, project string) *fetcher {
	GinkgoHelper()
	return &fetcher{name: name, clone: owner().Clone(at.url(project))}
}

func (f *fetcher) String() string { return "fetcher " + f.name }

func (f *fetcher) use() error {
	screen, err := f.clone.Try("git", "fetch", "--quiet", "origin")
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, screen)
	}
	return err
}
