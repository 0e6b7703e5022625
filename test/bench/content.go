package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/test/bench/gitclient"
	"github.com/forgeplane/forgeplane/test/bench/reference"
	"github.com/forgeplane/forgeplane/test/bench/testbed"
	"github.com/forgeplane/forgeplane/test/bench/traffic"
	"github.com/forgeplane/forgeplane/test/bench/usage"
	"github.com/forgeplane/forgeplane/test/history"
)

const (
	largeTopics   = 500
	largeReleases = 200
	// largeFile is the size of a large file in bytes.
	largeFile = 10 << 20
	// compared is the number of commits between two compared commits.
	compared = 200

	contentRounds = 15
	archiveRounds = 9

	// settleTime is the time without requests. When Go has nothing to do, it collects garbage every two minutes, and returns memory that was free
	// twice in a row.
	settleTime     = 6 * time.Minute
	settleInterval = 5 * time.Second
	// kept is the number of megabytes by which the memory can then exceed the memory before.
	kept = 50
)

// content is a project with a large history, and the repository that Forgeplane has created for it.
type content struct {
	*rest
	client *gitclient.Client
	// directory is the directory of the repository, and path is the path of the repository in the API.
	directory, path string
	// line is the history of main without merged commits, the newest commit first.
	line []string
	// file is a path on main, and large is the id of a large file.
	file, large string
}

func (b *bench) measureContent(ctx context.Context) error {
	return b.with(ctx, "content", func(ctx context.Context, t *testbed.Testbed) error {
		r, err := b.newREST(t)
		if err != nil {
			return err
		}
		c := &content{rest: r}
		if c.client, err = b.client(t); err != nil {
			return err
		}
		b.say("making a repository of %d commits", largeCommits)
		if err := c.populate(ctx); err != nil {
			return err
		}
		before, err := usage.MemoryOf(t.PID())
		if err != nil {
			return err
		}
		for _, measure := range []func(context.Context) error{
			c.measureAnswers, c.measureLarge, c.measureCommits, c.measureCompare, c.measureMergeBase, c.measureContributors, c.measureArchive,
		} {
			if err := measure(ctx); err != nil {
				return err
			}
		}
		return c.settle(ctx, before)
	})
}

// populate creates the project.
func (c *content) populate(ctx context.Context) error {
	if err := c.introduce(ctx); err != nil {
		return err
	}
	made, err := newDirectory(c.bench.directory, "content-history")
	if err != nil {
		return err
	}
	if err := c.client.History(ctx, made, history.Options{Commits: largeCommits, Topics: largeTopics}); err != nil {
		return err
	}
	words := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // it must be the same each time
	var text strings.Builder
	for text.Len() < largeFile {
		text.WriteString(history.Text(words, 10) + "\n")
	}
	if _, err := c.client.Run(ctx, made, releases(), "fast-import", "--quiet"); err != nil {
		return err
	}
	if _, err := c.client.CommitFile(ctx, made, "large", "large.txt", text.String()[:largeFile], 0); err != nil {
		return err
	}
	project := newProject(restNamespace, "content", fileURL(made))
	if err := c.Create(ctx, project); err != nil {
		return err
	}
	if err := c.AwaitQuiet(ctx, "project", 1); err != nil {
		return err
	}
	c.directory, c.path = c.RepositoryDir(project), fmt.Sprintf("/projects/%d/repository", project.Spec.ID)
	return c.look(ctx)
}

// releases returns annotated tags of the branches, for "git fast-import".
func releases() *bytes.Buffer {
	var stream bytes.Buffer
	for n := range largeReleases {
		message := fmt.Sprintf("Release %d\n\nWhat is new is in the changelog.\n", n)
		fmt.Fprintf(&stream, "tag release-%d\nfrom refs/heads/topic/%d\ntagger Ann Author <ann@example.com> %d +0000\ndata %d\n%s\n",
			n, n, 1_800_000_000+n, len(message), message)
	}
	return &stream
}

// look finds the values that the requests need.
func (c *content) look(ctx context.Context) error {
	line, err := c.git(ctx, "rev-list", "--first-parent", "main")
	if err != nil {
		return err
	}
	c.line = strings.Fields(line)
	if least := compared + contentRounds; len(c.line) < least {
		return fmt.Errorf("main has %d commits and must have at least %d", len(c.line), least)
	}
	files, err := c.git(ctx, "ls-tree", "-r", "--name-only", "main", "directory-07/")
	if err != nil {
		return err
	}
	c.file, _, _ = strings.Cut(files, "\n")
	c.large, err = c.git(ctx, "rev-parse", "large:large.txt")
	return err
}

func (c *content) git(ctx context.Context, args ...string) (string, error) {
	return c.client.Run(ctx, c.directory, nil, args...)
}

// measureAnswers counts small answers, and those of a handler that writes the same bytes.
func (c *content) measureAnswers(ctx context.Context) error {
	blob, err := c.git(ctx, "rev-parse", "main:"+c.file)
	if err != nil {
		return err
	}
	return c.measureRates(ctx, append(atBothDoors([]question{
		{row: rowContentTree, half: rowContentTreeHalf, path: c.path + "/tree?per_page=20"},
		{row: rowContentBranches, path: c.path + "/branches?per_page=20"},
		{row: rowContentTags, path: c.path + "/tags?per_page=20"},
	}), question{row: rowContentBlob, half: rowContentBlobHalf, path: c.path + "/blobs/" + blob}))
}

// measureLarge counts downloads of a large file, and those from a server of files.
func (c *content) measureLarge(ctx context.Context) (err error) {
	if !c.bench.wants(rowContentRaw) {
		return nil
	}
	q := question{row: rowContentRaw, path: c.path + "/blobs/" + c.large + "/raw"}
	request, err := c.request(ctx, c.URL()+"/api/v4"+q.path)
	if err != nil {
		return err
	}
	text, err := c.answer(http.DefaultClient, request, q)
	if err != nil {
		return err
	}
	file, err := c.bench.writeAnswer(text)
	if err != nil {
		return err
	}
	server, err := reference.StartFiles(ctx, filepath.Dir(file))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	same, err := c.request(ctx, "http://"+server.Address+"/"+filepath.Base(file))
	if err != nil {
		return err
	}
	return c.compare(ctx, q, traffic.Plain(request), traffic.Plain(same))
}

// measureCommits counts lists of commits, and the output of git for the same number of simultaneous calls.
func (c *content) measureCommits(ctx context.Context) error {
	if !c.bench.wants(rowContentCommits) {
		return nil
	}
	q := question{row: rowContentCommits, path: c.path + "/commits?per_page=20"}
	request, err := c.request(ctx, c.URL()+"/api/v4"+q.path)
	if err != nil {
		return err
	}
	if _, err := c.answer(http.DefaultClient, request, q); err != nil {
		return err
	}
	log := func(context.Context) (traffic.Connection, error) {
		return byHand(func(ctx context.Context) error {
			_, err := c.git(ctx, "log", "--max-count=20", "main")
			return err
		}), nil
	}
	return c.rest.compare(ctx, q, traffic.Plain(request), log)
}

// byHand is a connection whose answers come from a command.
type byHand func(ctx context.Context) error

// Exchange implements traffic.Connection.
func (h byHand) Exchange(ctx context.Context) (int, error) { return http.StatusOK, h(ctx) }

// Close implements traffic.Connection.
func (byHand) Close() error { return nil }

// measureCompare compares different commits in each round, and then the last ones again.
func (c *content) measureCompare(ctx context.Context) error {
	between := func(round int) (from, to string) { return c.line[round+compared], c.line[round] }
	ask := func(round int) string {
		from, to := between(round)
		return "/compare?from=" + from + "&to=" + to
	}
	hand := func(ctx context.Context, round int) error {
		from, to := between(round)
		_, err := c.git(ctx, "diff", from+"..."+to)
		if err == nil {
			_, err = c.git(ctx, "log", from+".."+to)
		}
		return err
	}
	return c.measureTwice(ctx, rowContentCompare, rowContentCompareAgain, ask, hand)
}

// measureMergeBase finds common ancestors of main and branches.
func (c *content) measureMergeBase(ctx context.Context) error {
	refs := func(round int) (a, b string) { return c.line[round], fmt.Sprintf("topic/%d", largeTopics/2+round) }
	return c.measureTwice(ctx, rowContentMergeBase, "",
		func(round int) string {
			a, b := refs(round)
			return "/merge_base?refs[]=" + a + "&refs[]=" + b
		},
		func(ctx context.Context, round int) error {
			a, b := refs(round)
			_, err := c.git(ctx, "merge-base", a, b)
			return err
		})
}

func (c *content) measureContributors(ctx context.Context) error {
	return c.measureTwice(ctx, rowContentContributors, rowContentContributorsAgain,
		func(round int) string { return "/contributors?ref=" + c.line[round] },
		func(ctx context.Context, round int) error {
			_, err := c.git(ctx, "shortlog", "--summary", "--email", c.line[round])
			return err
		})
}

// measureTwice requests something different in each round, together with the same by hand, and then repeats the last request.
func (c *content) measureTwice(ctx context.Context, first, again string, path func(round int) string, hand func(ctx context.Context, round int) error) error {
	if !c.bench.wants(first, again) {
		return nil
	}
	const warm = contentRounds // one round that does not count
	timed := func(hand func(context.Context, int) error) func(int) (float64, error) {
		return func(round int) (float64, error) {
			begun := time.Now()
			err := hand(ctx, round)
			return milliseconds(time.Since(begun)), err
		}
	}
	ours := timed(func(ctx context.Context, round int) error { return c.get(ctx, path(round)) })
	if _, err := ours(warm); err != nil {
		return err
	}
	o, r, err := alternate(exactly(contentRounds), ours, timed(hand))
	if err != nil {
		return err
	}
	c.bench.record(first, o, r)
	var repeated []float64
	for range contentRounds {
		took, err := ours(contentRounds - 1)
		if err != nil {
			return err
		}
		repeated = append(repeated, took)
	}
	c.bench.record(again, repeated, nil)
	return nil
}

// measureArchive packs the files of a different commit in each round.
func (c *content) measureArchive(ctx context.Context) error {
	if !c.bench.wants(rowContentArchive) {
		return nil
	}
	ours := func(round int) (float64, error) {
		begun := time.Now()
		err := c.get(ctx, "/archive.tar.gz?sha="+c.line[round])
		return milliseconds(time.Since(begun)), err
	}
	hand := func(round int) (float64, error) {
		begun := time.Now()
		_, err := c.git(ctx, "-c", "tar.tar.gz.command=gzip -cn", "archive", "--format=tar.gz", c.line[round])
		return milliseconds(time.Since(begun)), err
	}
	o, r, err := alternate(exactly(archiveRounds), ours, hand)
	c.bench.record(rowContentArchive, o, r)
	return err
}

// get reads an answer completely.
func (c *content) get(ctx context.Context, path string) error {
	request, err := c.request(ctx, c.URL()+"/api/v4"+c.path+path)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	if answer.StatusCode != http.StatusOK {
		err = errors.Join(err, fmt.Errorf("%s was answered with %s", path, answer.Status))
	}
	return errors.Join(err, answer.Body.Close())
}

// settle waits until all processes and memory of the requests are gone, at most for settleTime.
func (c *content) settle(ctx context.Context, before usage.Memory) error {
	if !c.bench.wants(rowContentProcesses, rowContentMemory) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime+settleInterval)
	defer cancel()
	ticker := time.NewTicker(settleInterval)
	defer ticker.Stop()
	for ended := time.Now().Add(settleTime); ; {
		processes, err := usage.Children(c.PID())
		if err != nil {
			return err
		}
		after, err := usage.MemoryOf(c.PID())
		if err != nil {
			return err
		}
		if settled := processes == 0 && megabytes(after.Resident-before.Resident) <= kept; settled || time.Now().After(ended) {
			c.bench.record(rowContentProcesses, []float64{float64(processes)}, nil)
			c.bench.record(rowContentMemory, []float64{megabytes(after.Resident)}, []float64{megabytes(before.Resident)})
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
