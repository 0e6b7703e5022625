package launch

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/internal/ci"
	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/pipeline"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/variable"
)

// Predefined returns the predefined variables that rules use most, for a pipeline with Files.
func Predefined(p *ci.Pipeline, projectID int64, defaultBranch string) []config.Variable {
	sha := p.Files.Commit()
	all := []config.Variable{
		{Key: "CI", Value: "true"}, {Key: "GITLAB_CI", Value: "true"}, {Key: "CI_PIPELINE_SOURCE", Value: p.Source},
		{Key: "CI_PROJECT_ID", Value: fmt.Sprint(projectID)}, {Key: "CI_PROJECT_PATH", Value: p.Project}, {Key: "CI_DEFAULT_BRANCH", Value: defaultBranch},
		{Key: "CI_COMMIT_REF_NAME", Value: p.Ref}, {Key: "CI_COMMIT_SHA", Value: sha}, {Key: "CI_COMMIT_SHORT_SHA", Value: sha[:8]},
	}
	switch {
	case p.Tag:
		all = append(all, config.Variable{Key: "CI_COMMIT_TAG", Value: p.Ref})
	case p.Source != SourceMergeRequest:
		all = append(all, config.Variable{Key: "CI_COMMIT_BRANCH", Value: p.Ref})
	}
	return all
}

// more returns the predefined variables of a pipeline that is created, beside those of Predefined.
func (l *Launcher) more(ctx context.Context, r Request, head *object.Commit) ([]config.Variable, error) {
	project, path := r.In.Project, r.In.Path()
	namespace := strings.TrimSuffix(path, "/"+project.Spec.Path)
	_, description, _ := strings.Cut(head.Message, "\n")
	all := []config.Variable{
		{Key: "CI_COMMIT_BEFORE_SHA", Value: cmp.Or(r.Before, strings.Repeat("0", len(r.SHA)))},
		{Key: "CI_COMMIT_MESSAGE", Value: head.Message}, {Key: "CI_COMMIT_TITLE", Value: head.Title()},
		{Key: "CI_COMMIT_DESCRIPTION", Value: strings.TrimSpace(description)}, {Key: "CI_COMMIT_AUTHOR", Value: head.Author.Name + " <" + head.Author.Email + ">"},
		{Key: "CI_COMMIT_TIMESTAMP", Value: head.Committer.When.Format("2006-01-02T15:04:05-07:00")}, {Key: "CI_COMMIT_REF_SLUG", Value: slug(r.Ref)},
		{Key: "CI_PROJECT_NAME", Value: project.Spec.Path}, {Key: "CI_PROJECT_NAMESPACE", Value: namespace},
		{Key: "CI_PROJECT_ROOT_NAMESPACE", Value: strings.SplitN(path, "/", 2)[0]}, {Key: "CI_PROJECT_URL", Value: l.WebURL + "/" + path},
		{Key: "CI_SERVER_URL", Value: l.WebURL}, {Key: "CI_API_V4_URL", Value: l.WebURL + "/api/v4"},
		{Key: "GITLAB_USER_ID", Value: fmt.Sprint(r.By.User.RESTID())}, {Key: "GITLAB_USER_LOGIN", Value: r.By.User.Spec.Username},
	}
	if r.Source == SourceTrigger || r.Source == SourcePipeline {
		all = append(all, config.Variable{Key: "CI_PIPELINE_TRIGGERED", Value: "true"})
	}
	about, err := l.ofMergeRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	open, err := l.openMergeRequests(ctx, r)
	return slices.Concat(all, about, open), err
}

// variables returns the variables that replace those of the configuration: those of the request, and before them those of the project, its
// groups and the installation, of which the masked ones are apart. Rules decide which jobs have an environment, so they get no variables of
// particular environments.
func (l *Launcher) variables(ctx context.Context, r Request) (all, masked []config.Variable, err error) {
	protected, err := l.protected(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	declared, err := variable.New(l.Catalog, l.Namespace).For(ctx, l.Credentials, r.In, variable.Job{Protected: protected})
	for _, v := range declared {
		of := config.Variable{Key: v.Key, Value: v.Value, Raw: v.Raw}
		switch given := func(g pipeline.Variable) bool { return g.Key == v.Key }; {
		case slices.ContainsFunc(r.Variables, given):
		case v.Masked:
			masked = append(masked, of)
		default:
			all = append(all, of)
		}
	}
	for _, v := range r.Variables {
		all = append(all, config.Variable{Key: v.Key, Value: v.Value})
	}
	return all, masked, err
}

// protected reports whether the branch of a pipeline is protected. Nothing protects tags, and pipelines that are about a merge request get nothing that
// is protected.
func (l *Launcher) protected(ctx context.Context, r Request) (bool, error) {
	if r.Tag || r.MergeRequest != nil {
		return false, nil
	}
	rules, err := protection.Rules(ctx, l.Catalog, r.In, []string{r.Ref}, l.Clock.Now())
	if err != nil {
		return false, fmt.Errorf("finding the protections: %w", err)
	}
	return len(rules) > 0, nil
}

var noSlug = regexp.MustCompile(`[^a-z0-9]`)

// slug returns a name in the form of a label of DNS.
func slug(name string) string {
	const most = 63
	text := noSlug.ReplaceAllString(strings.ToLower(name), "-")
	return strings.Trim(text[:min(len(text), most)], "-")
}
