package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/bench/gitclient"
	"github.com/forgeplane/forgeplane/test/bench/reference"
	"github.com/forgeplane/forgeplane/test/bench/testbed"
	"github.com/forgeplane/forgeplane/test/history"
)

// These are the minimum numbers of rounds, which are higher for faster operations.
const (
	cloneRounds      = 25
	cloneLargeRounds = 11
	cloneManyRounds  = 11
	listRounds       = 25
	pushRounds       = 31

	atOnce       = 16
	largeCommits = 5000

	gitNamespace = "bench"
)

// servers are Forgeplane and the server of the reference, with the same repositories.
type servers struct {
	*testbed.Testbed
	bench   *bench
	client  *gitclient.Client
	backend *reference.GitBackend
	// copies is the directory that the backend serves.
	copies string
	// checkout and history are directories with this repository and with a large one.
	checkout, history string
}

func (b *bench) measureGit(ctx context.Context) error {
	return b.with(ctx, "git", func(ctx context.Context, t *testbed.Testbed) (err error) {
		s, err := b.newServers(ctx, t)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.backend.Stop()) }()
		return b.measureParts(ctx,
			group{[]string{rowClone, rowCloneMany, rowList, rowPush}, s.measureCheckout},
			group{[]string{rowCloneLarge, rowFork, rowMove, rowMovePause, rowMoveBlobs}, s.measureLarge},
			group{[]string{rowPushRules}, s.measureRules},
			group{[]string{rowCloneBeside, rowCloneBesideSame}, s.measureSlow},
		)
	})
}

func (b *bench) newServers(ctx context.Context, t *testbed.Testbed) (*servers, error) {
	s := &servers{Testbed: t, bench: b}
	var err error
	if s.client, err = b.client(t); err != nil {
		return nil, err
	}
	for name, path := range map[string]*string{"copies": &s.copies, "checkout": &s.checkout, "history": &s.history} {
		// There are servers for the rows of git, and others for the rows of mirrors.
		if *path, err = os.MkdirTemp(b.directory, "git-"+name+"-"); err != nil {
			return nil, err
		}
	}
	// The copy has only the current commit and its ancestors, because other branches of the checkout are private.
	if _, err := s.client.Run(ctx, s.checkout, nil, "init", "--quiet", "--bare", "--initial-branch=main"); err != nil {
		return nil, err
	}
	if _, err := s.client.Run(ctx, s.checkout, nil, "fetch", "--quiet", b.settings.checkout, "HEAD:refs/heads/main"); err != nil {
		return nil, err
	}
	if err := t.Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: gitNamespace}}); err != nil {
		return nil, err
	}
	if err := t.Create(ctx, newGroup(gitNamespace)); err != nil {
		return nil, err
	}
	s.backend, err = reference.StartGitBackend(ctx, s.copies)
	return s, err
}

// site is one repository on both servers.
type site struct {
	project         *v1alpha1.Project
	ours, reference string
}

// serve imports a repository into Forgeplane, and gives the backend a copy of the repository that Forgeplane has created.
func (s *servers) serve(ctx context.Context, name, from string) (*site, error) {
	project := newProject(gitNamespace, name, fileURL(from))
	if err := s.Create(ctx, project); err != nil {
		return nil, err
	}
	if err := s.AwaitQuiet(ctx, "protectedbranch", 0); err != nil {
		return nil, err
	}
	repository := name + ".git"
	copied := filepath.Join(s.copies, repository)
	if err := os.CopyFS(copied, os.DirFS(s.RepositoryDir(project))); err != nil {
		return nil, fmt.Errorf("copying a repository: %w", err)
	}
	if _, err := s.client.Run(ctx, copied, nil, "config", "http.receivepack", "true"); err != nil {
		return nil, err
	}
	return &site{
		project: project,
		ours:    s.URL() + "/" + gitNamespace + "/" + repository, reference: s.backend.URL + "/" + repository,
	}, nil
}

func (o *site) size() string { return fmt.Sprintf("%.1f MB", megabytes(o.project.Status.SizeBytes)) }

// compare measures the same request to both servers in turn, after a first one to each that does not count.
func (s *servers) compare(ctx context.Context, id string, often rounds, one *site,
	request func(ctx context.Context, url string) (time.Duration, error),
) error {
	to := func(url string) func(int) (float64, error) {
		return func(int) (float64, error) {
			took, err := request(ctx, url)
			return milliseconds(took), err
		}
	}
	if _, _, err := alternate(exactly(1), to(one.ours), to(one.reference)); err != nil {
		return err
	}
	o, r, err := alternate(often, to(one.ours), to(one.reference))
	if err != nil {
		return err
	}
	s.bench.record(id, o, r)
	return nil
}

func (s *servers) measureCheckout(ctx context.Context) error {
	s.bench.say("importing this repository")
	one, err := s.serve(ctx, "checkout", s.checkout)
	if err != nil {
		return err
	}
	commits, err := s.client.Run(ctx, s.checkout, nil, "rev-list", "--count", "--all")
	if err != nil {
		return err
	}
	for _, id := range []string{rowClone, rowCloneMany, rowList, rowPush} {
		s.bench.describe(id, fmt.Sprintf("%s commits, %s", commits, one.size()))
	}
	for _, row := range []struct {
		id      string
		often   rounds
		request func(ctx context.Context, url string) (time.Duration, error)
	}{
		{rowClone, until(cloneRounds), s.client.Clone},
		{rowCloneMany, until(cloneManyRounds), s.cloneAtOnce},
		{rowList, until(listRounds), s.client.List},
	} {
		if s.bench.wants(row.id) {
			if err := s.compare(ctx, row.id, row.often, one, row.request); err != nil {
				return err
			}
		}
	}
	if !s.bench.wants(rowPush) {
		return nil
	}
	return s.measurePush(ctx, one)
}

func (s *servers) measureLarge(ctx context.Context) error {
	s.bench.say("making a repository of %d commits", largeCommits)
	if err := s.client.History(ctx, s.history, history.Options{Commits: largeCommits}); err != nil {
		return err
	}
	one, err := s.serve(ctx, "history", s.history)
	if err != nil {
		return err
	}
	for _, id := range []string{rowCloneLarge, rowFork, rowMove} {
		s.bench.describe(id, one.size())
	}
	if s.bench.wants(rowCloneLarge) {
		if err := s.compare(ctx, rowCloneLarge, until(cloneLargeRounds), one, s.client.Clone); err != nil {
			return err
		}
	}
	if s.bench.wants(rowFork) {
		if err := s.measureFork(ctx, one); err != nil {
			return err
		}
	}
	if !s.bench.wants(rowMove, rowMovePause, rowMoveBlobs) {
		return nil
	}
	return s.measureMoves(ctx, one)
}

// cloneAtOnce starts several clones at the same time, and returns how long it takes until the last one is done.
func (s *servers) cloneAtOnce(ctx context.Context, url string) (time.Duration, error) {
	clients, ctx := errgroup.WithContext(ctx)
	begun := time.Now()
	for range atOnce {
		clients.Go(func() error {
			_, err := s.client.Clone(ctx, url)
			return err
		})
	}
	err := clients.Wait()
	return time.Since(begun), err
}

// newDirectory creates a directory in another one.
func newDirectory(in, name string) (string, error) {
	path := filepath.Join(in, name)
	if err := os.Mkdir(path, 0o700); err != nil {
		return "", err
	}
	return path, nil
}
