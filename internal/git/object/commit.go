package object

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Commit is a parsed commit.
type Commit struct {
	ID      string
	Tree    string
	Parents []string
	Author  Signature
	// Committer is the person who committed the author's work.
	Committer Signature
	// Message is in UTF-8, like the names, whatever the encoding of the commit is. Invalid characters are replaced.
	Message string
	// Signed is the form of the signature of the commit: PGP, SSH, X509, or empty for none. Nothing is known about its validity.
	Signed string
}

// Signature is a person and a time.
type Signature struct {
	Name, Email string
	// When is in the time zone of the signature. It is the beginning of 1970 if it cannot be parsed, or from the last day of 9999 on.
	When time.Time
}

// Title returns the first paragraph of the message, on one line.
func (c *Commit) Title() string {
	paragraph, _, _ := strings.Cut(strings.TrimLeft(c.Message, "\n"), "\n\n")
	return strings.Join(strings.FieldsFunc(paragraph, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
}

// MaxCommit is the number of bytes of a commit that are read.
const MaxCommit = 4 << 20

// CommitLimits limit what is kept of each commit when many are read.
type CommitLimits struct {
	// message is the maximum length of a message, in bytes, and parents the maximum number of parents.
	message, parents int
	// total is the maximum length of all messages together. Once they exceed it, each further message is limited to brief.
	total, brief int
}

var (
	// ListedCommits are the limits of lists.
	ListedCommits = CommitLimits{message: 16 << 10, parents: 100, total: 16 << 20, brief: 1 << 10}
	// WholeCommits keep everything.
	WholeCommits = CommitLimits{message: math.MaxInt, parents: math.MaxInt, total: math.MaxInt}
)

// Trim removes what exceeds the limits from a commit. text is the length of the messages before it.
func (l CommitLimits) Trim(c *Commit, text int) {
	longest := l.message
	if text > l.total {
		longest = l.brief
	}
	c.Message = beginning(c.Message, longest)
	if len(c.Parents) > l.parents {
		c.Parents = slices.Clone(c.Parents[:l.parents])
	}
}

// Ellipsis is the end of a text that was cut.
const Ellipsis = "..."

// beginning returns at most limit bytes of a text, followed by an ellipsis if it was cut. It does not keep the rest in memory.
func beginning(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + Ellipsis
}

// Abridge returns the message of a commit or tag for a list: a message of more than 16 KiB is cut there, followed by "...".
func Abridge(message string) string { return beginning(message, ListedCommits.message) }

// Listed returns the commit for a list: with an abridged message, and with at most 100 parents.
func (c *Commit) Listed() *Commit {
	listed := *c
	ListedCommits.Trim(&listed, 0)
	return &listed
}

// Size returns the approximate size of the commit in memory, in bytes.
func (c *Commit) Size() int {
	return len(c.Message) + 64*len(c.Parents) + len(c.Author.Name) + len(c.Author.Email) + len(c.Committer.Name) + len(c.Committer.Email) + 600
}

// signatureForms are the forms of signatures by their first line.
var signatureForms = map[string]string{
	"-----BEGIN PGP SIGNATURE-----": "PGP", "-----BEGIN PGP MESSAGE-----": "PGP",
	"-----BEGIN SSH SIGNATURE-----": "SSH", "-----BEGIN SIGNED MESSAGE-----": "X509",
}

// ParseCommit parses a commit object: headers, which continue on lines that begin with a space, an empty line and the message.
func ParseCommit(id string, content []byte) (*Commit, error) {
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
			if IsID(value) {
				c.Parents = append(c.Parents, value)
			}
		case "author":
			author = value
		case "committer":
			committer = value
		case "encoding":
			encoding = cmp.Or(encoding, value)
		case "gpgsig", "gpgsig-sha256":
			c.Signed = cmp.Or(c.Signed, signatureForms[value])
		}
	}
	if !IsID(c.Tree) {
		return nil, errors.New("a commit is damaged: it has no tree")
	}
	if encoding != "" {
		decode(encoding, &author, &committer, &message)
	}
	c.Author, c.Committer = parseSignature(author), parseSignature(committer)
	c.Message = strings.ToValidUTF8(message, "\uFFFD")
	return c, nil
}

// maxTime is the beginning of the last day of the year 9999: RFC 3339 cannot represent later years, in any time zone.
const maxTime = 253402214400

// maxSignature is the maximum length of a line with a person, in bytes.
const maxSignature = 1 << 10

// parseSignature parses "Name <email> seconds zone". Old histories have malformed lines, of which it returns the parts that it can parse.
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

// parseZone parses "+0130". An offset of a day or more is invalid.
func parseZone(text string) *time.Location {
	n, err := strconv.Atoi(text)
	if err != nil || len(text) != 5 || n == 0 || n <= -2360 || n >= 2360 {
		return time.UTC
	}
	return time.FixedZone("", (n/100*60+n%100)*60)
}
