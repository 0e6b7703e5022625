package crash

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/terminal"
)

// readOnly is the refusal of a write while the repository is being moved.
const readOnly = "The repository is temporarily read-only. Please try again later."

// pusher is a client that pushes one commit after another, each to one continuing branch and to a new branch.
type pusher struct {
	name    string
	project string
	clone   terminal.Terminal
	// commits are the commits of all pushes in order, including failed pushes.
	commits []string
	// accepted are the indices of the commits that git has reported as pushed, and refused those that the server has refused because the repository
	// was being moved.
	accepted, refused map[int]bool
}

func newPusher(at *server, name, project string) *pusher {
	GinkgoHelper()
	return &pusher{name: name, project: project, clone: owner().Clone(at.url(project)), accepted: map[int]bool{}, refused: map[int]bool{}}
}

func (p *pusher) String() string { return "pusher " + p.name }

func (p *pusher) use() error {
	GinkgoHelper()
	screen, err := p.push()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, screen)
	}
	return err
}

// line is the continuing branch, and single is the branch of one commit.
func (p *pusher) line() string             { return "refs/heads/" + p.name }
func (p *pusher) single(number int) string { return fmt.Sprintf("refs/heads/%s-%d", p.name, number) }

// push pushes another commit. It returns no error if the server refuses because the repository is being moved.
func (p *pusher) push() (screen string, err error) {
	GinkgoHelper()
	number := len(p.commits)
	p.commits = append(p.commits, p.clone.Commit(fmt.Sprintf("file-%d.txt", number%7), fmt.Sprintln(p.name, number)))
	screen, err = p.clone.Try("git", "push", "origin", "HEAD:"+p.line(), "HEAD:"+p.single(number))
	switch {
	case err == nil:
		p.accepted[number] = true
	case strings.Contains(screen, readOnly):
		p.refused[number] = true
		err = nil
	}
	return screen, err
}

// expectKept expects that the repository has every push that was reported as accepted, and nothing that was not pushed.
func (p *pusher) expectKept(refs map[string]string) {
	GinkgoHelper()
	last := -1
	if numbers := slices.Sorted(maps.Keys(p.accepted)); len(numbers) > 0 {
		last = numbers[len(numbers)-1]
	}
	for number := range p.accepted {
		Expect(refs).To(HaveKeyWithValue(p.single(number), p.commits[number]), "the client saw that it was accepted")
	}
	for number := range p.refused {
		Expect(refs).NotTo(HaveKey(p.single(number)), "the client saw that it was refused")
	}
	if last >= 0 {
		Expect(slices.Index(p.commits, refs[p.line()])).To(BeNumerically(">=", last), "the branch has not gone back")
	}
	for ref, commit := range refs {
		if strings.HasPrefix(ref, p.line()+"-") {
			Expect(p.commits).To(ContainElement(commit))
		}
	}
}
