package projects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/avatar"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/apiserver/visible"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

// forkTable lists the endpoints about forks.
func (f *Family) forkTable() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/projects/{id}/forks", f.forks).Needs(auth.ReadProject).Asks(auth.AdminProject, auth.ReadStatistics).
			Anonymous(endpoint.Served).Also(http.StatusMethodNotAllowed).
			Doc("List the forks of a project that the caller can see."),
		endpoint.Post("/projects/{id}/fork", f.fork).Needs(auth.ReadCode).Asks(auth.CreateProjects).
			Doc("Create a fork of a project, with its branches and tags."),
		endpoint.Post("/projects/{id}/fork/{forked_from_id}", f.relate).Needs(auth.OwnProject).Asks(auth.ReadCode, auth.AdminProject).
			Doc("Create the fork relation to another project. The repository does not change."),
		endpoint.Delete("/projects/{id}/fork", f.unrelate).Needs(auth.OwnProject).Also(http.StatusNotModified).
			Doc("Delete the fork relation to another project."),
	}
}

func (f *Family) forks(ctx context.Context, s auth.Project, r *listRequest) (endpoint.List[Project], error) {
	return f.listed(ctx, s.Subject, r, visible.In{ForkOf: s.Scope.Project})
}

type forkRequest struct {
	Namespace     string                   `param:"namespace" doc:"Id or path of the group; namespace_id and namespace_path take precedence."`
	NamespaceID   endpoint.Optional[int64] `param:"namespace_id" doc:"Id of the group; the caller's own namespace when omitted."`
	NamespacePath string                   `param:"namespace_path" doc:"Path of the group."`
	Name          string                   `param:"name" doc:"Display name; that of the project when omitted."`
	Path          string                   `param:"path" doc:"Segment of the full path; that of the project when omitted."`
	Description   string                   `param:"description" doc:"Purpose of the fork; that of the project when omitted."`
	Visibility    string                   `param:"visibility" values:"private,internal,public" doc:"Users who can see the fork, at most those who can see the project; the same users when omitted."`
	Branches      string                   `param:"branches" doc:"Branches of the fork, separated by commas; all branches and tags when omitted."`
}

// into returns the id or path of the fork's group. It is empty for the caller's own namespace.
func (r *forkRequest) into() (string, error) {
	switch id := r.NamespaceID; {
	case id.Set && !id.Null && r.NamespacePath != "":
		return "", endpoint.Parameters("namespace_id, namespace_path are mutually exclusive")
	case id.Set && !id.Null:
		return strconv.FormatInt(id.Value, 10), nil
	case r.NamespacePath != "":
		return r.NamespacePath, nil
	default:
		return r.Namespace, nil
	}
}

func (f *Family) fork(ctx context.Context, s auth.Project, r *forkRequest) (none Project, err error) {
	of := s.Scope.Project
	if of.Status.RefsChecksum == "" {
		// The fork is created later, when the caller may no longer be able to read the project.
		return none, endpoint.Conflict("The project has no repository yet")
	}
	into, err := r.into()
	if err != nil {
		return none, err
	}
	origin := &v1alpha1.ForkOf{ProjectRef: catalog.Refer(of)}
	for branch := range strings.SplitSeq(r.Branches, ",") {
		if branch = strings.TrimSpace(branch); branch != "" && !slices.Contains(origin.Branches, branch) {
			origin.Branches = append(origin.Branches, branch)
		}
	}
	if err := checkBranches(origin.Branches); err != nil {
		return none, err
	}
	spec := newSpec()
	spec.Path, spec.Name = cmp.Or(r.Path, of.Spec.Path), cmp.Or(r.Name, catalog.Title(of.Spec.Name, of.Spec.Path))
	spec.Description = cmp.Or(r.Description, of.Spec.Description)
	spec.Visibility = catalog.Visibility(of.Spec.Visibility, s.Scope.Groups)
	if v, ok := entity.Visibilities[r.Visibility]; ok && catalog.Wider(spec.Visibility, v) {
		spec.Visibility = v
	}
	spec.Features, spec.ForkOf = of.Spec.Features, origin
	made, err := f.add(ctx, s.Subject, into, spec, avatar.Sent{})
	if missing := (*endpoint.Error)(nil); errors.As(err, &missing) && missing.Status == http.StatusNotFound {
		return none, endpoint.NotFound("Target Namespace")
	}
	if errors.Is(err, errTaken) {
		refused := taken()
		refused.Status = http.StatusConflict
		return none, refused
	}
	return made, err
}

// maxBranches is the maximum number of branches in a request for a fork.
const maxBranches = 100

// checkBranches returns the validation errors of the branches of a fork.
func checkBranches(branches []string) error {
	var a endpoint.Attributes
	if len(branches) > maxBranches {
		a.Refuse("branches", fmt.Sprintf("has more than %d entries: omit it to get all branches", maxBranches))
		return a.Err()
	}
	for _, b := range branches {
		if !a.Text("branches", b, maxDefaultBranch) {
			break
		}
		if err := object.CheckBranchName(b); err != nil {
			a.Refuse("branches", "contains a name that is not a valid branch name: "+err.Error())
			break
		}
	}
	return a.Err()
}

type relateRequest struct {
	ForkedFromID int64 `param:"forked_from_id" doc:"Id of the project that this project is a fork of."`
}

func (f *Family) relate(ctx context.Context, s auth.Project, r *relateRequest) (none Project, err error) {
	from, err := f.Guard.Locate(ctx, s.Subject, auth.ReadCode, r.ForkedFromID)
	if err != nil {
		return none, err
	}
	if _, forked := s.Scope.Project.Origin(); forked {
		return none, endpoint.Conflict("Project already forked")
	}
	if from.Project.UID == s.Scope.Project.UID {
		return none, endpoint.Conflict("A project cannot be a fork of itself")
	}
	own, err := f.Guard.Repository(ctx, s.Scope.Project)
	if err != nil {
		return none, err
	}
	if own.Status.RefsChecksum == "" {
		// The repository would be copied from the other project later, when the caller may no longer be able to read it.
		return none, endpoint.Conflict("The project has no repository yet")
	}
	return f.change(ctx, s, func(spec *v1alpha1.ProjectSpec) error {
		spec.ForkOf = &v1alpha1.ForkOf{ProjectRef: catalog.Refer(from.Project)}
		return nil
	})
}

func (f *Family) unrelate(ctx context.Context, s auth.Project, _ *endpoint.None) (none endpoint.None, err error) {
	if s.Scope.Project.Spec.ForkOf == nil {
		return none, endpoint.NotModified()
	}
	// The relation determines the first content of the repository.
	own, err := f.Guard.Repository(ctx, s.Scope.Project)
	if err != nil {
		return none, err
	}
	if own.Status.RefsChecksum == "" {
		return none, endpoint.Conflict("The fork is still being made")
	}
	_, err = f.projects.Update(ctx, s.Subject, store.Only{}, func(p *v1alpha1.Project) error {
		p.Spec.ForkOf = nil
		return nil
	})
	return none, err
}

// showForks sets the number of forks of a project, and its origin if the caller can see the origin.
func (f *Family) showForks(ctx context.Context, shown *Project, p *v1alpha1.Project, to viewer) error {
	forks, err := f.Catalog.Forks(ctx, p)
	if err != nil {
		return err
	}
	shown.ForksCount = len(forks)
	origin, err := f.originOf(ctx, p, to)
	if err == nil && origin.Project != nil {
		summary := f.simple(origin)
		shown.ForkedFromProject = &summary.ProjectSummary
	}
	return err
}

// originOf returns the scope of the origin of a fork. It is empty if the project is not a fork or the caller cannot see its origin.
func (f *Family) originOf(ctx context.Context, p *v1alpha1.Project, to viewer) (none catalog.Scope, err error) {
	ref, ok := p.Origin()
	if !ok {
		return none, nil
	}
	scope, err := f.Guard.Project(ctx, strconv.FormatInt(ref.ID, 10))
	if err != nil || !catalog.Means(ref, scope.Project) {
		return none, catalog.IgnoreNotFound(err)
	}
	if _, err := f.Guard.Visible(ctx, to.caller, scope); err != nil {
		return none, catalog.IgnoreNotFound(err)
	}
	return scope, nil
}

// checkWidth refuses a visibility for a fork that is wider than the visibility of its origin.
func (f *Family) checkWidth(ctx context.Context, p *v1alpha1.Project, v v1alpha1.Visibility) error {
	origin, err := f.Catalog.Origin(ctx, p)
	if err != nil {
		return catalog.IgnoreNotFound(err)
	}
	groups, err := f.Catalog.GroupsOf(ctx, origin)
	if err != nil && !catalog.Misplaced(err) {
		return err
	}
	if err == nil && catalog.Wider(v, catalog.Visibility(origin.Spec.Visibility, groups)) {
		return endpoint.Invalid(map[string][]string{
			"visibility_level": {entity.Visibility(v) + " is not allowed since the fork source project has lower visibility."},
		})
	}
	return nil
}
