// Package repository finds the Git repository of a project and reads facts about its content.
package repository

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
)

// The number of projects whose handles on repositories are held in memory, and of those whose branch names are: projects with few branches,
// and all others.
const (
	cachedHandles = 16384
	cachedSmall   = 16384
	cachedLarge   = 512
	// few is a number of branches that most projects do not exceed.
	few = 32
)

// ErrNoStorage says that no shard has been chosen for a project yet.
var ErrNoStorage = errors.New("the project has no storage yet")

// Repositories finds repositories. It is safe for concurrent use.
type Repositories struct {
	engine  *git.Engine
	catalog *catalog.Catalog
	// handles holds a handle for the code of a project by the UID of the project.
	handles *lru.Cache
	// small and large hold the names of branches by the UIDs of their projects.
	small, large *lru.Cache
	// waiters is nil if nothing calls Follow.
	waiters *waiters
	// home is the namespace in which users create projects over REST.
	home string
}

// New returns Repositories that use engine.
func New(engine *git.Engine, cat *catalog.Catalog) *Repositories {
	return &Repositories{
		engine: engine, catalog: cat, handles: lru.New(cachedHandles), small: lru.New(cachedSmall), large: lru.New(cachedLarge),
	}
}

// Path returns the path of a project's repository on its shard. It is derived from the namespace and name of the object and from the id. So
// it does not change when the project's path does, no two projects share a path even if they pin the same id, and a restored backup finds
// its repository.
func Path(p *v1alpha1.Project) string { return pathOf(p.Namespace, p.Name, p.RESTID()) }

func pathOf(namespace, name string, id int64) string {
	sum := sha256.Sum256(strconv.AppendInt([]byte(namespace+"/"+name+"/"), id, 10))
	digest := hex.EncodeToString(sum[:])
	return digest[:2] + "/" + digest[2:4] + "/" + digest + ".git"
}

// Paths returns the paths of all repositories of a project on its shard: of the code, the wiki and the designs, in this order. The code is
// at Path. The other repositories may not exist.
func Paths(p *v1alpha1.Project) []string { return beside(Path(p)) }

// beside returns the path of the code of a project, and the paths of the repositories that belong to it.
func beside(code string) []string {
	stem := strings.TrimSuffix(code, ".git")
	return []string{code, stem + ".wiki.git", stem + ".design.git"}
}

// Of returns the repository of a project, whether or not it exists. The error is ErrNoStorage before a shard was chosen, and
// catalog.ErrNotFound if the shard is no longer declared.
func (r *Repositories) Of(ctx context.Context, p *v1alpha1.Project) (*git.Repository, error) {
	if p.Status.Storage == "" || p.RESTID() == 0 {
		return nil, ErrNoStorage
	}
	s, err := r.catalog.Storage(ctx, p.Status.Storage)
	if err != nil {
		return nil, err
	}
	if known, ok := r.handles.Get(p.UID); ok && known.(handle).of(s, p) {
		return known.(handle).Repository, nil
	}
	repo, err := r.at(s, Path(p))
	if err == nil {
		r.handles.Add(p.UID, handle{repo, s, p.RESTID()})
	}
	return repo, err
}

// handle is a handle on the repository of the project with an id, on a shard as it is in the cache.
type handle struct {
	*git.Repository
	shard *v1alpha1.RepositoryStorage
	id    int64
}

func (h handle) of(s *v1alpha1.RepositoryStorage, p *v1alpha1.Project) bool {
	return h.shard == s && h.id == p.RESTID()
}

// Content is Of for callers that read or change the content of the repository. The error is ErrNoStorage if the project has no repository yet, and
// git.ErrStorageMissing if its shard is not declared. If the repository has existed and is gone, the error of reading it is git.ErrNotFound.
func (r *Repositories) Content(ctx context.Context, p *v1alpha1.Project) (*git.Repository, error) {
	repo, err := r.Of(ctx, p)
	switch {
	case errors.Is(err, catalog.ErrNotFound):
		return nil, fmt.Errorf("%s is not declared: %w", p.Status.Storage, git.ErrStorageMissing)
	case err != nil:
		return nil, err
	case p.Status.RefsChecksum == "" && errors.Is(repo.Check(), git.ErrNotFound):
		return nil, ErrNoStorage
	}
	return repo, nil
}

// All is Of for all repositories of a project, in the order of Paths.
func (r *Repositories) All(ctx context.Context, p *v1alpha1.Project) ([]*git.Repository, error) {
	if p.Status.Storage == "" || p.RESTID() == 0 {
		return nil, ErrNoStorage
	}
	return r.on(ctx, p.Status.Storage, Paths(p))
}

// on returns the repositories at some paths on a shard.
func (r *Repositories) on(ctx context.Context, storage string, paths []string) ([]*git.Repository, error) {
	s, err := r.catalog.Storage(ctx, storage)
	if err != nil {
		return nil, err
	}
	all := make([]*git.Repository, len(paths))
	for i, path := range paths {
		if all[i], err = r.at(s, path); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// noRefs is the checksum of a repository without branches and tags.
const noRefs = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// Filled reports whether the repository of a project is known to have had content, wherever the repository is now. A repository that the
// project took over from a deleted project counts.
func Filled(p *v1alpha1.Project) bool {
	if p.Status.RefsChecksum == "" {
		return p.Status.AdoptedRepository != ""
	}
	return p.Status.RefsChecksum != noRefs
}

// Observe updates the status of a project from its repository.
func (r *Repositories) Observe(ctx context.Context, p *v1alpha1.Project) error {
	repo, err := r.Of(ctx, p)
	if err != nil {
		return err
	}
	head, err := refs.ReadHead(ctx, repo)
	if err != nil {
		return fmt.Errorf("reading HEAD: %w", err)
	}
	checksum := sha256.New()
	for ref, err := range refs.List(ctx, repo, "refs/heads/", "refs/tags/") {
		if err != nil {
			return fmt.Errorf("listing refs: %w", err)
		}
		fmt.Fprintf(checksum, "%s %s\n", ref.Object, ref.Name)
	}
	size, err := upkeep.Size(ctx, repo)
	if err != nil {
		return fmt.Errorf("measuring the repository: %w", err)
	}
	p.Status.DefaultBranch, p.Status.HeadCommit = head.Branch, head.Commit
	if sum := hex.EncodeToString(checksum.Sum(nil)); sum != p.Status.RefsChecksum {
		if sum != noRefs || p.Status.RefsChecksum != "" {
			p.Status.LastActivityTime = ptr.To(metav1.Now())
		}
		p.Status.RefsChecksum = sum
	}
	p.Status.SizeBytes = size
	p.Status.RepositoryPath = Path(p)
	return nil
}

// Now returns a project whose status has the current HEAD of its repository; the stored status follows a push or commit a little later. If
// there is no repository, Now returns the project unchanged.
func (r *Repositories) Now(ctx context.Context, p *v1alpha1.Project) (*v1alpha1.Project, error) {
	repo, err := r.Of(ctx, p)
	var head refs.Head
	if err == nil {
		head, err = refs.ReadHead(ctx, repo)
	}
	if missing(err) {
		return p, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading HEAD: %w", err)
	}
	// A shallow copy suffices, because its parts never change.
	now := *p
	now.Status.DefaultBranch, now.Status.HeadCommit = head.Branch, head.Commit
	return &now, nil
}

// Empty reports whether a project has no branch at the moment, or had none when its repository was last reachable. It starts no process.
func (r *Repositories) Empty(ctx context.Context, p *v1alpha1.Project) (bool, error) {
	repo, err := r.Of(ctx, p)
	empty := true
	if err == nil {
		empty, err = repo.Empty()
	}
	if missing(err) {
		return p.Status.HeadCommit == "", nil
	}
	return empty, err
}

// Commits returns the number of commits of a project's default branch, as of the status; 0 if there is no such branch. See
// Content for the errors.
func (r *Repositories) Commits(ctx context.Context, p *v1alpha1.Project) (int, error) {
	if p.Status.HeadCommit == "" {
		return 0, nil
	}
	repo, err := r.Content(ctx, p)
	if err != nil {
		return 0, err
	}
	return history.Count(ctx, repo, p.Status.HeadCommit)
}

// missing reports whether an error says that a project has no repository, or that it cannot be reached.
func missing(err error) bool {
	return errors.Is(err, ErrNoStorage) || errors.Is(err, catalog.ErrNotFound) || git.OutOfReach(err)
}

// cached has the branch names of a project for one checksum of its refs.
type cached struct {
	checksum string
	names    []string
}

// Branches returns the sorted names of a project's branches; none before the repository was observed. It reads them only if the observed
// checksum has changed. Callers must not change the slice.
func (r *Repositories) Branches(ctx context.Context, p *v1alpha1.Project) ([]string, error) {
	if p.Status.RefsChecksum == "" {
		return nil, nil
	}
	for _, known := range []*lru.Cache{r.small, r.large} {
		if c, ok := known.Get(p.UID); ok && c.(cached).checksum == p.Status.RefsChecksum {
			return c.(cached).names, nil
		}
	}
	repo, err := r.Of(ctx, p)
	if err != nil {
		return nil, err
	}
	var names []string
	for ref, err := range refs.List(ctx, repo, "refs/heads/") {
		if err != nil {
			return nil, fmt.Errorf("listing branches: %w", err)
		}
		names = append(names, strings.TrimPrefix(ref.Name, "refs/heads/"))
	}
	keep, forget := r.small, r.large
	if len(names) > few {
		keep, forget = r.large, r.small
	}
	keep.Add(p.UID, cached{p.Status.RefsChecksum, names})
	forget.Remove(p.UID)
	return names, nil
}
