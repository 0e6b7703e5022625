package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Commit is what stands in a commit.
type Commit struct {
	ID      string
	Tree    string
	Parents []string
	Author  Signature
	// Committer is who made the commit of what the author wrote.
	Committer Signature
	// Message is in UTF-8, as the names are, whatever encoding the commit says it is in; what is not is replaced.
	Message string
}

// Signature is somebody and a time.
type Signature struct {
	Name, Email string
	// When is in the zone where it was. It is the beginning of 1970 where it cannot be read, and from the last day of 9999 on.
	When time.Time
}

// Title is the first paragraph of the message, on one line.
func (c *Commit) Title() string {
	paragraph, _, _ := strings.Cut(strings.TrimLeft(c.Message, "\n"), "\n\n")
	return strings.Join(strings.FieldsFunc(paragraph, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
}

// maxCommit is how much of a commit is read, in bytes.
const maxCommit = 4 << 20

// commitLimits are how much is kept of each commit where many are read.
type commitLimits struct {
	// message is how long a message may be, in bytes, and parents how many a commit may have.
	message, parents int
	// total is how long all messages may be together. Once they are longer, brief is how long each of the others may be.
	total, brief int
}

var (
	listedCommits = commitLimits{message: 16 << 10, parents: 100, total: 16 << 20, brief: 1 << 10}
	wholeCommits  = commitLimits{message: math.MaxInt, parents: math.MaxInt, total: math.MaxInt}
)

// trim takes from a commit what is beyond the limits, where the messages before it are as long as text.
func (l commitLimits) trim(c *Commit, text int) {
	longest := l.message
	if text > l.total {
		longest = l.brief
	}
	c.Message = beginning(c.Message, longest)
	if len(c.Parents) > l.parents {
		c.Parents = slices.Clone(c.Parents[:l.parents])
	}
}

const ellipsis = "..."

// beginning is what a text begins with, at most limit bytes and an ellipsis. It does not hold on to the rest.
func beginning(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + ellipsis
}

// Abridge returns the message of a commit or tag as lists have it: one of more than 16 KiB ends there, with "...".
func Abridge(message string) string { return beginning(message, listedCommits.message) }

// Listed returns the commit as lists have it: with its message abridged, and with 100 parents at most.
func (c *Commit) Listed() *Commit {
	listed := *c
	listedCommits.trim(&listed, 0)
	return &listed
}

// size is about how many bytes of memory the commit takes.
func (c *Commit) size() int {
	return len(c.Message) + 64*len(c.Parents) + len(c.Author.Name) + len(c.Author.Email) + len(c.Committer.Name) + len(c.Committer.Email) + 600
}

// ReadCommit returns the commit with an id. It is ErrObjectNotFound where there is none. Of one beyond 4 MiB it has what stands
// before that, and a message that ends with "...". Nobody changes it.
func (r *Repository) ReadCommit(ctx context.Context, id string) (*Commit, error) {
	if err := checkIDs(id); err != nil {
		return nil, err
	}
	return recall(ctx, r, "reading a commit", id, (*Commit).size, func(ctx context.Context) (*Commit, error) {
		found, err := r.readCommits(ctx, []string{id}, wholeCommits)
		if err != nil {
			return nil, err
		}
		return found[0], nil
	})
}

// parseCommit reads a commit object: headers, of which those that begin with a space go on, an empty line and the message.
func parseCommit(id string, content []byte) (*Commit, error) {
	c := &Commit{ID: id}
	headers, text, _ := bytes.Cut(content, []byte("\n\n"))
	var author, committer, encoding string
	message := string(text)
	for line := range bytes.Lines(headers) {
		name, value, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		switch name {
		case "tree":
			c.Tree = value
		case "parent":
			if IsObjectID(value) {
				c.Parents = append(c.Parents, value)
			}
		case "author":
			author = value
		case "committer":
			committer = value
		case "encoding":
			encoding = cmp.Or(encoding, value)
		}
	}
	if !IsObjectID(c.Tree) {
		return nil, errors.New("a commit is damaged: it has no tree")
	}
	if encoding != "" {
		decode(encoding, &author, &committer, &message)
	}
	c.Author, c.Committer = parseSignature(author), parseSignature(committer)
	c.Message = strings.ToValidUTF8(message, "\uFFFD")
	return c, nil
}

// maxTime is the beginning of the last day of the year 9999: RFC 3339 has no year beyond it, in any zone.
const maxTime = 253402214400

// maxSignature is how long the line about somebody may be, in bytes.
const maxSignature = 1 << 10

// parseSignature reads "Name <email> seconds zone". Old histories have worse; what cannot be read is left out.
func parseSignature(text string) Signature {
	text = beginning(strings.ToValidUTF8(text, "\uFFFD"), maxSignature)
	open, end := strings.Index(text, "<"), strings.LastIndex(text, ">")
	if open < 0 || end < open {
		return Signature{Name: strings.TrimSpace(text), When: time.Unix(0, 0).UTC()}
	}
	s := Signature{Name: strings.TrimSpace(text[:open]), Email: strings.TrimSpace(text[open+1 : end]), When: time.Unix(0, 0).UTC()}
	seconds, zone, _ := strings.Cut(strings.TrimSpace(text[end+1:]), " ")
	if n, err := strconv.ParseInt(seconds, 10, 64); err == nil && n >= 0 && n < maxTime {
		s.When = time.Unix(n, 0).In(parseZone(zone))
	}
	return s
}

// parseZone reads "+0130". A day or more is no offset.
func parseZone(text string) *time.Location {
	n, err := strconv.Atoi(text)
	if err != nil || len(text) != 5 || n == 0 || n <= -2360 || n >= 2360 {
		return time.UTC
	}
	return time.FixedZone("", (n/100*60+n%100)*60)
}
