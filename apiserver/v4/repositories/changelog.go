package repositories

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/changelog"
	"github.com/forgeplane/forgeplane/internal/feature"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
)

const (
	// changelogs is the maximum number of changelogs per minute, whether or not they are committed (API behaviour, section 2.2).
	changelogs = 5
	// maxChangelogCommits is the maximum number of commits for a changelog. maxUnlimitedCommits applies if the feature that limits them is
	// off, because all ids are in memory.
	maxChangelogCommits, maxUnlimitedCommits = 15_000, 1_000_000
)

// configFiles are the paths of the configuration, in the order of precedence. The core interface document names the first. Repositories
// from GitLab have the second.
var configFiles = []string{".service/changelog_config.yml", ".gitlab/changelog_config.yml"}

// notAllowed is the message for a caller who cannot push to the branch because of their role or a protection.
const notAllowed = "You are not allowed to commit a changelog on this branch"

func (f *Family) changelogTable() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/projects/{id}/repository/changelog", f.notes).Needs(auth.ReadCode).Asks(auth.ReadGroup).
			Anonymous(endpoint.Served).Limited(changelogs, "changelog").Also(http.StatusUnprocessableEntity).
			Doc("Get the changelog section of a release from its commits."),
		endpoint.Post("/projects/{id}/repository/changelog", f.addNotes).Needs(auth.PushCode).Asks(auth.ReadGroup).
			Anonymous(endpoint.Hidden).Denies(endpoint.Forbidden(notAllowed)).Status(http.StatusOK).Limited(changelogs, "changelog").Also(http.StatusUnprocessableEntity).
			Doc("Create the changelog section of a release from its commits, and commit it to a file in the repository."),
	}
}

// Notes is "Changelog result" of the core interface document.
type Notes struct {
	Notes string `json:"notes" doc:"Markdown."`
}

type notesRequest struct {
	Version       string                       `param:"version" required:"" blank:"refuse" example:"1.2.0" doc:"A semantic version, with or without a v."`
	From          string                       `param:"from" doc:"The commit before the first one; the tag of the previous stable version if it is not given."`
	To            string                       `param:"to" doc:"The last commit; the head of the branch if it is not given."`
	Date          endpoint.Optional[time.Time] `param:"date" doc:"Date of the release; now if it is not given."`
	Trailer       string                       `param:"trailer" default:"Changelog" doc:"Trailer of the commits to include. It is case-sensitive."`
	ConfigFile    string                       `param:"config_file" doc:"Path of the configuration; if it is not given, .service/changelog_config.yml, or .gitlab/changelog_config.yml if there is no such file."`
	ConfigFileRef string                       `param:"config_file_ref" doc:"The branch, tag or commit that has the configuration; the default branch if it is not given."`
}

func (f *Family) notes(ctx context.Context, s auth.Project, r *notesRequest) (none Notes, err error) {
	repo, ctx, end, err := f.reading(ctx, s.Scope.Project)
	if err != nil {
		return none, ungenerated(err)
	}
	defer end()
	section, err := f.section(ctx, s, repo, r, "HEAD")
	if err != nil {
		return none, ungenerated(err)
	}
	return Notes{section.Text}, nil
}

// ungenerated returns the response for a changelog that cannot be generated.
func ungenerated(err error) error {
	var wrong changelog.Error
	switch {
	case errors.As(err, &wrong):
	case errors.Is(err, git.ErrOutputTooLarge):
		wrong = "The commits of the range are too large"
	case ref.Missing(err):
		wrong = "There is no such commit, or no repository yet"
	default:
		return err
	}
	return endpoint.Message(http.StatusUnprocessableEntity, "Failed to generate the changelog: %s", wrong)
}

// section generates the section of a version. The range ends at head by default.
func (f *Family) section(ctx context.Context, s auth.Project, repo *git.Repository, r *notesRequest, head string) (none changelog.Section, err error) {
	version, ok := changelog.ParseVersion(r.Version)
	if !ok {
		return none, endpoint.Parameters("version is invalid")
	}
	config, err := configuration(ctx, repo, r)
	if err != nil {
		return none, err
	}
	from, err := start(ctx, repo, config, version, r.From)
	if err != nil {
		return none, err
	}
	to, err := named(ctx, repo, cmp.Or(r.To, head))
	if err != nil {
		return none, err
	}
	commits, graph, err := f.picked(ctx, repo, from, to, cmp.Or(r.Trailer, "Changelog"))
	if err != nil {
		return none, err
	}
	entries, err := f.entries(ctx, s, commits, graph, config.Groups)
	if err != nil {
		return none, err
	}
	date := f.Clock.Now().UTC()
	if r.Date.Set && !r.Date.Null {
		date = r.Date.Value
	}
	return changelog.Release{Version: r.Version, Date: date, Config: config, Entries: entries}.Section()
}

// picked returns the commits of a range with a trailer, and all commits of the range.
func (f *Family) picked(ctx context.Context, repo *git.Repository, from, to, trailer string) ([]changelog.Picked, *history.Graph, error) {
	limited, err := f.Features.Enabled(ctx, feature.ChangelogCommitsLimitation)
	if err != nil {
		return nil, nil, err
	}
	limit := maxUnlimitedCommits
	if limited {
		limit = maxChangelogCommits
	}
	commits, all := changelog.Pick(trailer), &history.Graph{}
	for c, err := range history.Walk(ctx, repo, history.Log{Tips: []string{to}, Without: []string{from}, Limit: limit}) {
		switch {
		case errors.Is(err, history.ErrTooManyCommits):
			return nil, nil, changelog.Error(fmt.Sprintf("There are more than %d commits since the start of the range", limit))
		case err != nil:
			return nil, nil, err
		}
		commits.Add(c)
		all.Add(c)
	}
	return commits.Picked(), all, nil
}

// configuration reads the configuration that a request names, or else the first of configFiles that exists.
func configuration(ctx context.Context, repo *git.Repository, r *notesRequest) (*changelog.Config, error) {
	files := configFiles
	if r.ConfigFile != "" {
		files = []string{r.ConfigFile}
	}
	at, err := refs.Commit(ctx, repo, cmp.Or(r.ConfigFileRef, "HEAD"))
	if ref.Missing(err) && r.ConfigFileRef != "" {
		return nil, noCommit(r.ConfigFileRef)
	} else if ref.Missing(err) {
		return changelog.ParseConfig(nil)
	} else if err != nil {
		return nil, err
	}
	for _, path := range files {
		content, err := snapshot.ReadFile(ctx, repo, at, path, changelog.MaxConfig)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid):
		case errors.Is(err, git.ErrFileTooLarge):
			return nil, changelog.Error(fmt.Sprintf("The configuration is larger than %d bytes", changelog.MaxConfig))
		case err != nil:
			return nil, err
		default:
			return changelog.ParseConfig(content)
		}
	}
	return changelog.ParseConfig(nil)
}

// start returns the commit before the first one of a changelog: the requested commit, or the tag of the previous version.
func start(ctx context.Context, repo *git.Repository, config *changelog.Config, v changelog.Version, from string) (string, error) {
	if from != "" {
		return named(ctx, repo, from)
	}
	tags, err := refs.Sorted(ctx, repo, ref.Tags, refs.ByName, false)
	if err != nil {
		return "", err
	}
	tag, ok := config.Previous(v, func(yield func(string) bool) {
		for _, t := range tags {
			if (t.Type == "commit" || t.Type == "tag") && !yield(ref.Name(t)) {
				return
			}
		}
	})
	if !ok {
		return "", changelog.Error("The commit start range is unspecified, and no previous tag could be found to use instead")
	}
	return named(ctx, repo, ref.Tags+tag)
}

// named returns the id of the commit that a revision resolves to.
func named(ctx context.Context, repo *git.Repository, revision string) (string, error) {
	id, err := refs.Commit(ctx, repo, revision)
	if ref.Missing(err) {
		return "", noCommit(revision)
	}
	return id, err
}

func noCommit(revision string) error {
	return changelog.Error(fmt.Sprintf("There is no commit %.100q", revision))
}

// entries returns the changelog entries of commits, which are in a graph.
func (f *Family) entries(ctx context.Context, s auth.Project, commits []changelog.Picked, g *history.Graph, groups []string) ([]changelog.Entry, error) {
	brought, err := f.brought(ctx, s.Scope.Project.UID, g)
	if err != nil {
		return nil, err
	}
	authors, err := f.authors(ctx, s, groups)
	if err != nil {
		return nil, err
	}
	path, url := s.Scope.Path(), f.projectURL(s)
	entries := make([]changelog.Entry, len(commits))
	for i, c := range commits {
		e := changelog.Entry{
			Category: c.Category, Title: c.Title, Trailers: c.Trailers, Reference: path + "@" + c.ID, WebURL: url + "/-/commit/" + c.ID,
		}
		if e.Author, err = authors.of(ctx, c.Email); err != nil {
			return nil, err
		}
		if iid := brought[c.ID]; iid != 0 {
			e.MergeRequest = &changelog.MergeRequest{
				Reference: fmt.Sprintf("%s!%d", path, iid), WebURL: fmt.Sprintf("%s/-/merge_requests/%d", url, iid),
			}
		}
		entries[i] = e
	}
	return entries, nil
}
