package replicas

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2" // an independent client

	"github.com/forgeplane/forgeplane/test/patience"
	"github.com/forgeplane/forgeplane/test/terminal"
)

// anywhere is a client of two servers that retries nothing, and does not know which server answers.
type anywhere struct {
	servers []*replica
	clients []*gitlab.Client
	chance  *rand.Rand
}

func newAnywhere(token string, chance *rand.Rand, servers ...*replica) *anywhere {
	GinkgoHelper()
	a := &anywhere{servers: servers, chance: chance}
	for _, s := range servers {
		c, err := gitlab.NewClient(token, gitlab.WithBaseURL(s.address()), gitlab.WithoutRetries(),
			gitlab.WithHTTPClient(&http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone(), Timeout: patience.Wait}))
		Expect(err).NotTo(HaveOccurred())
		a.clients = append(a.clients, c)
	}
	return a
}

// api is the API of one of the servers.
func (a *anywhere) api() *gitlab.Client { return a.clients[a.chance.IntN(len(a.clients))] }

// url returns the address of a repository at one of the servers.
func (a *anywhere) url(path string) string {
	return a.servers[a.chance.IntN(len(a.servers))].address() + "/" + path + ".git"
}

func (a *anywhere) project(path string, group *int64) (*gitlab.Project, error) {
	p, _, err := a.api().Projects.CreateProject(&gitlab.CreateProjectOptions{Path: &path, NamespaceID: group})
	return p, err
}

// commit writes a file to a branch and returns the commit.
func (a *anywhere) commit(project int64, branch, file string) (string, error) {
	c, _, err := a.api().Commits.CreateCommit(project, &gitlab.CreateCommitOptions{
		Branch: &branch, CommitMessage: gitlab.Ptr("Write " + file), Actions: []*gitlab.CommitActionOptions{
			{Action: gitlab.Ptr(gitlab.FileCreate), FilePath: &file, Content: gitlab.Ptr("Hello.\n")},
		},
	})
	if err != nil {
		return "", err
	}
	return c.ID, nil
}

// badge creates a badge that shows the head of the default branch.
func (a *anywhere) badge(project int64) (int64, error) {
	b, _, err := a.api().ProjectBadges.AddProjectBadge(project, &gitlab.AddProjectBadgeOptions{
		LinkURL: gitlab.Ptr("https://ci.example.com"), ImageURL: gitlab.Ptr("https://ci.example.com/%{commit_sha}.svg"),
	})
	if err != nil {
		return 0, err
	}
	return b.ID, nil
}

// shows returns an error unless each server shows a commit in a badge, both alone and in the list.
func (a *anywhere) shows(project, badge int64, commit string) error {
	want := "https://ci.example.com/" + commit + ".svg"
	var wrong []error
	for n, c := range a.clients {
		one, _, err := c.ProjectBadges.GetProjectBadge(project, badge)
		if err == nil && one.RenderedImageURL != want {
			err = fmt.Errorf("server %d shows %s, not %s", n, one.RenderedImageURL, commit)
		}
		all, _, listErr := c.ProjectBadges.ListProjectBadges(project, nil)
		if listErr == nil && (len(all) != 1 || all[0].RenderedImageURL != want) {
			listErr = fmt.Errorf("server %d lists %v, not one with %s", n, all, commit)
		}
		wrong = append(wrong, err, listErr)
	}
	return errors.Join(wrong...)
}

var _ = Describe("A client of two servers", Ordered, func() {
	var client *anywhere

	BeforeAll(func() {
		start(manager, one, two)
		client = newAnywhere(token("root"), rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 0)), one, two) //nolint:gosec // the choices must be repeatable
	})

	clone := func(path string) (terminal.Terminal, error) {
		t := admin.As("root", token("root")).In(admin.Space())
		_, err := t.Try("git", "clone", "--quiet", client.url(path), ".")
		return t, err
	}

	DescribeTable("can use at once what it has created",
		func(name string, use func(name string) error) {
			var failed []string
			for n := range uses {
				if err := use(fmt.Sprintf("any-%s-%d", name, n)); err != nil {
					failed = append(failed, fmt.Sprintf("round %d: %v", n, err))
				}
			}
			Expect(failed).To(BeEmpty(), "%d of %d rounds failed", len(failed), uses)
		},
		Entry("a project for a file, and a badge for the commit", "file", func(name string) error {
			p, err := client.project(name, nil)
			if err != nil {
				return err
			}
			commit, err := client.commit(p.ID, "main", "README.md")
			if err != nil {
				return err
			}
			badge, err := client.badge(p.ID)
			if err != nil {
				return err
			}
			return client.shows(p.ID, badge, commit)
		}),
		Entry("a project for a clone, and the clone for a push", "clone", func(name string) error {
			p, err := client.project(name, nil)
			if err != nil {
				return err
			}
			t, err := clone(p.PathWithNamespace)
			if err != nil {
				return err
			}
			t.Commit("README.md", "Hello.\n")
			if _, err = t.Try("git", "push", "--quiet", client.url(p.PathWithNamespace), "HEAD:main"); err != nil {
				return err
			}
			head := t.Git("rev-parse", "HEAD")
			b, _, err := client.api().Branches.GetBranch(p.ID, "main")
			if err == nil && b.Commit.ID != head {
				err = fmt.Errorf("main is %s, not %s", b.Commit.ID, head)
			}
			return err
		}),
		Entry("a project for a protected branch", "protection", func(name string) error {
			p, err := client.project(name, nil)
			if err != nil {
				return err
			}
			made, _, err := client.api().ProtectedBranches.ProtectRepositoryBranches(p.ID, &gitlab.ProtectRepositoryBranchesOptions{Name: gitlab.Ptr("release/*")})
			if err != nil {
				return err
			}
			_, _, err = client.api().ProtectedBranches.GetProtectedBranch(p.ID, made.Name)
			return err
		}),
		Entry("a user, a token and a membership", "user", func(name string) error {
			p, err := client.project(name, nil)
			if err != nil {
				return err
			}
			u, _, err := client.api().Users.CreateUser(&gitlab.CreateUserOptions{
				Username: &name, Name: gitlab.Ptr("Anybody"), Email: gitlab.Ptr(name + "@example.com"),
				Password: gitlab.Ptr("a password that nobody needs"), SkipConfirmation: gitlab.Ptr(true),
			})
			if err != nil {
				return err
			}
			made, _, err := client.api().Users.CreatePersonalAccessToken(u.ID, &gitlab.CreatePersonalAccessTokenOptions{
				Name: gitlab.Ptr("Made just now"), Scopes: &[]string{"api"},
			})
			if err != nil {
				return err
			}
			they := newAnywhere(made.Token, client.chance, one, two)
			if me, _, err := they.api().Users.CurrentUser(); err != nil || me.ID != u.ID {
				return fmt.Errorf("the token is that of %+v: %w", me, err)
			}
			_, _, err = client.api().ProjectMembers.AddProjectMember(p.ID, &gitlab.AddProjectMemberOptions{
				UserID: u.ID, AccessLevel: gitlab.Ptr(gitlab.MaintainerPermissions),
			})
			if err != nil {
				return err
			}
			_, err = they.commit(p.ID, "main", "README.md")
			return err
		}),
		Entry("a group, a project in it and a group below it", "group", func(name string) error {
			g, _, err := client.api().Groups.CreateGroup(&gitlab.CreateGroupOptions{Name: &name, Path: gitlab.Ptr(name + "-g")})
			if err != nil {
				return err
			}
			below, _, err := client.api().Groups.CreateGroup(&gitlab.CreateGroupOptions{Name: &name, Path: gitlab.Ptr("below"), ParentID: &g.ID})
			if err != nil {
				return err
			}
			p, err := client.project("app", &below.ID)
			if err != nil {
				return err
			}
			if _, err = clone(p.PathWithNamespace); err != nil {
				return err
			}
			_, err = client.commit(p.ID, "main", "README.md")
			return err
		}),
		Entry("a branch and a tag", "branch", func(name string) error {
			p, err := client.project(name, nil)
			if err != nil {
				return err
			}
			first, err := client.commit(p.ID, "main", "README.md")
			if err != nil {
				return err
			}
			if _, _, err = client.api().Branches.CreateBranch(p.ID, &gitlab.CreateBranchOptions{Branch: gitlab.Ptr("topic"), Ref: gitlab.Ptr("main")}); err != nil {
				return err
			}
			second, err := client.commit(p.ID, "topic", "more.txt")
			if err != nil {
				return err
			}
			if _, _, err = client.api().Tags.CreateTag(p.ID, &gitlab.CreateTagOptions{TagName: gitlab.Ptr("v1"), Ref: gitlab.Ptr("topic")}); err != nil {
				return err
			}
			t, err := clone(p.PathWithNamespace)
			if err != nil {
				return err
			}
			if got := strings.Fields(t.Git("rev-parse", "origin/main", "origin/topic", "v1")); !slices.Equal(got, []string{first, second, second}) {
				return fmt.Errorf("a clone has %v, not %s and twice %s", got, first, second)
			}
			b, _, err := client.api().Branches.GetBranch(p.ID, "topic")
			if err == nil && b.Commit.ID != second {
				err = fmt.Errorf("the branch is %s, not %s", b.Commit.ID, second)
			}
			return err
		}),
	)

	It("sees no old head in a badge after any write", func() {
		p, err := client.project("any-badge", nil)
		Expect(err).NotTo(HaveOccurred())
		badge, err := client.badge(p.ID)
		Expect(err).NotTo(HaveOccurred())
		t, err := clone(p.PathWithNamespace)
		Expect(err).NotTo(HaveOccurred())
		var failed []string
		for n := range uses {
			commit, err := client.commit(p.ID, "main", fmt.Sprintf("over-rest-%d.txt", n))
			if err == nil {
				err = client.shows(p.ID, badge, commit)
			}
			if err != nil {
				failed = append(failed, fmt.Sprintf("after commit %d over REST: %v", n, err))
			}
			t.Git("fetch", "--quiet", client.url(p.PathWithNamespace), "main")
			t.Git("reset", "--quiet", "--hard", "FETCH_HEAD")
			t.Commit("pushed.txt", fmt.Sprintf("%d\n", n))
			t.Git("push", "--quiet", client.url(p.PathWithNamespace), "HEAD:main")
			if err := client.shows(p.ID, badge, t.Git("rev-parse", "HEAD")); err != nil {
				failed = append(failed, fmt.Sprintf("after push %d: %v", n, err))
			}
		}
		Expect(failed).To(BeEmpty(), "%d of %d writes", len(failed), 2*uses)
	})
})
