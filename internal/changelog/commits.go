package changelog

import (
	"regexp"
	"strings"

	"github.com/forgeplane/forgeplane/internal/git/object"
)

// Commits picks those commits of a release that are worth mentioning.
type Commits struct {
	trailer  string
	reverted map[string]bool
	picked   []Picked
}

// Picked is a commit that has the trailer.
type Picked struct {
	ID, Title string
	// Email is the author's.
	Email string
	// Category is the value of the trailer.
	Category string
	// Trailers are all trailers of the commit; of a repeated one, the last.
	Trailers map[string]string
}

// Pick returns Commits that pick the commits with a trailer. The trailer is case-sensitive.
func Pick(trailer string) *Commits {
	return &Commits{trailer: trailer, reverted: map[string]bool{}}
}

// reverts is a line as `git revert` writes it.
var reverts = regexp.MustCompile(`(?im)^This reverts commit ([0-9a-f]{64}|[0-9a-f]{40})\b`)

// Add adds a commit if it has the trailer. Call it with the newest commit first, because it skips commits that a newer one reverts.
func (c *Commits) Add(commit *object.Commit) {
	// A commit that was itself reverted reverts nothing.
	if c.reverted[commit.ID] {
		return
	}
	for _, found := range reverts.FindAllStringSubmatch(commit.Message, -1) {
		c.reverted[strings.ToLower(found[1])] = true
	}
	all := map[string]string{}
	for _, t := range commit.Trailers() {
		all[t.Key] = t.Value
	}
	if all[c.trailer] == "" {
		return
	}
	c.picked = append(c.picked, Picked{
		ID: commit.ID, Title: commit.Title(), Email: commit.Author.Email, Category: all[c.trailer], Trailers: all,
	})
}

// Picked returns the commits that were picked, in the order in which they were added.
func (c *Commits) Picked() []Picked { return c.picked }
