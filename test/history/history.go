// Package history generates reproducible Git histories.
package history

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
)

const (
	// epoch is the time of the first commit. Each commit is a minute after the previous one.
	epoch = 1700000000
	// files is the number of files of a history, and fileLines is the number of lines of each file.
	files     = 400
	fileLines = 120
	// authors is the number of authors.
	authors = 40
	// topicShare and mergeShare are the percentages of commits that are on topic branches, and that merge a topic branch.
	topicShare = 25
	mergeShare = 4
	// renames is the number of commits on main after which a file is renamed, and tags is the number after which a tag is created.
	renames = 50
	tags    = 100
)

// Options describe a history.
type Options struct {
	// Commits is the number of commits. Each commit changes some lines of a few files.
	Commits int
	// Topics is the number of branches "topic/<number>", each of which begins at a commit of main. Some of them are merged. Histories with topics
	// also have tags and renamed files. There must be ten commits for each topic.
	Topics int
	// Branches are further branches at the last commit of main.
	Branches []string
}

// Stream returns the history in the format of "git fast-import".
func Stream(o Options) *bytes.Buffer {
	h := &history{random: rand.New(rand.NewPCG(1, 2))} //nolint:gosec // it must be the same each time
	for number := range o.Commits {
		h.commit(number, o)
	}
	for n, number := range h.tagged {
		h.reset(fmt.Sprintf("refs/tags/v%d.%d.0", n/10, n%10), mark(number))
	}
	for _, branch := range o.Branches {
		h.reset("refs/heads/"+branch, "refs/heads/main")
	}
	return &h.stream
}

type history struct {
	stream   bytes.Buffer
	random   *rand.Rand
	names    [files]string
	contents [files][]string
	// there reports which files exist on main.
	there [files]bool
	// begun is the number of topic branches, and open are the branches that are not merged yet.
	begun int
	open  []int
	// straight is the number of commits of main, without merges.
	straight int
	// tagged are the numbers of commits that get a tag.
	tagged []int
}

func (h *history) commit(number int, o Options) {
	percent := h.random.IntN(100)
	switch {
	case number > 0 && h.begun < o.Topics && number*o.Topics/o.Commits >= h.begun:
		h.open = append(h.open, h.begun)
		h.begin(topic(h.begun), number, "refs/heads/main")
		h.begun++
	case len(h.open) > 0 && percent < mergeShare:
		at := h.random.IntN(len(h.open))
		h.begin("refs/heads/main", number, "")
		fmt.Fprintf(&h.stream, "merge %s\n", topic(h.open[at]))
		h.open = append(h.open[:at], h.open[at+1:]...)
	case len(h.open) > 0 && percent < topicShare:
		h.begin(topic(h.open[h.random.IntN(len(h.open))]), number, "")
	default:
		h.begin("refs/heads/main", number, "")
		if h.straight++; o.Topics > 0 {
			h.extras(number)
		}
		h.change(true)
		return
	}
	h.change(false)
}

func mark(number int) string { return fmt.Sprintf(":%d", number+1) }

func topic(n int) string { return fmt.Sprintf("refs/heads/topic/%d", n) }

// extras renames a file in a commit on main or plans a tag for it, each after a certain number of commits.
func (h *history) extras(number int) {
	if at := h.random.IntN(files); h.straight%renames == 0 && h.there[at] {
		to := fmt.Sprintf("renamed/%d/file %03d.txt", number, at)
		fmt.Fprintf(&h.stream, "R %q %q\n", h.names[at], to)
		h.names[at] = to
	}
	if h.straight%tags == 0 {
		h.tagged = append(h.tagged, number)
	}
}

func (h *history) reset(ref, to string) { fmt.Fprintf(&h.stream, "reset %s\nfrom %s\n\n", ref, to) }

// begin begins a commit. If from is not empty, the commit begins a new branch there.
func (h *history) begin(ref string, number int, from string) {
	message := fmt.Sprintf("Change number %d\n", number)
	if number%7 == 0 {
		message += fmt.Sprintf("\nIt was due.\n\nChangelog: %s\n", []string{"added", "changed", "fixed"}[number%3])
	}
	who := h.random.IntN(authors)
	fmt.Fprintf(&h.stream, "commit %s\nmark %s\nauthor Author %d <author-%d@example.com> %d +0100\ncommitter Ann Author <ann@example.com> %d +0000\ndata %d\n%s",
		ref, mark(number), who, who, epoch+60*number, epoch+60*number, len(message), message)
	if from != "" {
		fmt.Fprintf(&h.stream, "from %s\n", from)
	}
}

// change changes some lines of a few files.
func (h *history) change(onMain bool) {
	for range 1 + h.random.IntN(4) {
		at := h.random.IntN(files)
		if h.contents[at] == nil {
			h.names[at] = fmt.Sprintf("directory-%02d/file-%03d.txt", at%20, at)
			for range fileLines {
				h.contents[at] = append(h.contents[at], line(h.random))
			}
		}
		h.there[at] = h.there[at] || onMain
		for range 1 + h.random.IntN(10) {
			h.contents[at][h.random.IntN(fileLines)] = line(h.random)
		}
		h.write(h.names[at], strings.Join(h.contents[at], ""))
	}
}

func (h *history) write(path, content string) {
	fmt.Fprintf(&h.stream, "M 100644 inline %q\ndata %d\n%s\n", path, len(content), content)
}

func line(random *rand.Rand) string { return Text(random, 8) + "\n" }

// Text returns some words in a line.
func Text(random *rand.Rand, words int) string {
	known := []string{"branch", "commit", "forge", "group", "label", "merge", "project", "push", "release", "token"}
	var text strings.Builder
	for range words {
		fmt.Fprintf(&text, "%s%d ", known[random.IntN(len(known))], random.IntN(1000))
	}
	return strings.TrimSpace(text.String())
}
