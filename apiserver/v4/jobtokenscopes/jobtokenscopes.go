// Package jobtokenscopes is the family "Job token scope" of the core interface document.
package jobtokenscopes

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/jobtoken"
)

// +kubebuilder:rbac:groups=forgeplane.dev,resources=jobtokenscopes,verbs=get;create;patch,roleName=forgeplane-apiserver

// Family serves the job token scopes of projects.
type Family struct {
	family.Kit
	scopes *store.Store[store.Only, *v1alpha1.JobTokenScope]
}

// New returns the family.
func New(k family.Kit) *Family {
	own := func(ctx context.Context, of auth.Subject, _ store.Only) (*v1alpha1.JobTokenScope, error) {
		return jobtoken.ScopeOf(ctx, k.Catalog, of.Scope)
	}
	return &Family{Kit: k, scopes: store.New(k.Writer, own)}
}

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/projects/{id}/job_token_scope", f.get).Needs(auth.AdminJobTokenScope).
			Doc("Get the job token scope of a project."),
		endpoint.Patch("/projects/{id}/job_token_scope", f.update).Needs(auth.AdminJobTokenScope).
			Status(http.StatusNoContent).Doc("Update whether the allowlist restricts access with job tokens."),
		endpoint.Get("/projects/{id}/job_token_scope/allowlist", f.list).Needs(auth.AdminJobTokenScope).Asks(auth.ReadProject).
			Doc("List the projects in the job token allowlist."),
		endpoint.Post("/projects/{id}/job_token_scope/allowlist", f.add).Needs(auth.AdminJobTokenScope).Asks(auth.ReadProject).
			Doc("Create an entry for a project in the job token allowlist. The caller must be able to see the project."),
		endpoint.Delete("/projects/{id}/job_token_scope/allowlist/{target_project_id}", f.remove).Needs(auth.AdminJobTokenScope).Asks(auth.ReadProject).
			Doc("Delete a project from the job token allowlist."),
		endpoint.Get("/projects/{id}/job_token_scope/groups_allowlist", f.listGroups).Needs(auth.AdminJobTokenScope).Asks(auth.ReadGroup).
			Doc("List the groups in the job token allowlist."),
		endpoint.Post("/projects/{id}/job_token_scope/groups_allowlist", f.addGroup).Needs(auth.AdminJobTokenScope).Asks(auth.ReadGroup).
			Doc("Create an entry for a group in the job token allowlist. The caller must be able to see the group."),
		endpoint.Delete("/projects/{id}/job_token_scope/groups_allowlist/{target_group_id}", f.removeGroup).Needs(auth.AdminJobTokenScope).Asks(auth.ReadGroup).
			Doc("Delete a group from the job token allowlist."),
	}
}

// Settings is "Job token scope settings" of the core interface document.
type Settings struct {
	InboundEnabled  bool `json:"inbound_enabled" doc:"Whether only the job tokens of the projects in the allowlist are let in."`
	OutboundEnabled bool `json:"outbound_enabled" doc:"Always false."`
}

// Addition is "Allowlist add result" of the core interface document.
type Addition struct {
	SourceProjectID int64 `json:"source_project_id" doc:"The project that owns the list."`
	TargetProjectID int64 `json:"target_project_id" doc:"The project that was added."`
}

func (f *Family) get(ctx context.Context, s auth.Project, _ *endpoint.None) (Settings, error) {
	declared, err := jobtoken.ScopeOf(ctx, f.Catalog, s.Scope)
	if err != nil {
		return Settings{}, err
	}
	return Settings{InboundEnabled: declared == nil || declared.Spec.Restricted()}, nil
}

type updateRequest struct {
	Enabled bool `param:"enabled" required:"" blank:"refuse" doc:"Whether only the job tokens of the projects in the allowlist are let in."`
}

func (f *Family) update(ctx context.Context, subject auth.Project, r *updateRequest) (endpoint.None, error) {
	return endpoint.None{}, f.change(ctx, subject, func(s *v1alpha1.JobTokenScope) error {
		s.Spec.InboundEnabled = ptr.To(r.Enabled)
		return nil
	})
}

type listRequest struct {
	endpoint.Paging
}

// list omits unresolved entries, duplicates and the project itself, which always has access.
func (f *Family) list(ctx context.Context, subject auth.Project, r *listRequest) (endpoint.List[entity.ProjectSummary], error) {
	caller, scope := subject.Caller, subject.Scope
	declared, err := jobtoken.ScopeOf(ctx, f.Catalog, scope)
	if err != nil {
		return endpoint.List[entity.ProjectSummary]{}, err
	}
	if declared == nil {
		declared = &v1alpha1.JobTokenScope{}
	}
	var all []catalog.Scope
	listed := map[types.UID]bool{scope.Project.UID: true}
	for _, e := range declared.Spec.Allowlist {
		allowed, err := jobtoken.Allowed(ctx, f.Catalog, declared, e)
		if errors.Is(err, catalog.ErrNotFound) || err == nil && listed[allowed.Project.UID] {
			continue
		}
		if err != nil {
			return endpoint.List[entity.ProjectSummary]{}, err
		}
		listed[allowed.Project.UID] = true
		all = append(all, allowed)
	}
	var failed error
	page := endpoint.Page(r.Paging, all, func(s catalog.Scope) entity.ProjectSummary {
		access, err := f.Guard.Access(ctx, caller, s)
		failed = errors.Join(failed, err)
		if !subject.Has(access, auth.ReadProject) {
			// The scope can name a project that the caller cannot see.
			return entity.UnseenProject(s.Project.RESTID())
		}
		return entity.SummarizeProject(s, f.WebURL)
	})
	return page, failed
}

type addRequest struct {
	TargetProjectID int64 `param:"target_project_id" required:"" blank:"refuse" doc:"Id of the project to let in."`
}

// maxEntries is the maximum number of projects in the allowlist.
const maxEntries = 100

func (f *Family) add(ctx context.Context, s auth.Project, r *addRequest) (Addition, error) {
	target, err := f.target(ctx, r.TargetProjectID)
	if errors.Is(err, catalog.ErrNotFound) {
		return Addition{}, endpoint.NotFound("target_project_id not found")
	}
	if err != nil {
		return Addition{}, err
	}
	access, err := f.Guard.Access(ctx, s.Caller, target)
	switch {
	case err != nil:
		return Addition{}, err
	case !s.Has(access, auth.ReadProject):
		return Addition{}, endpoint.BadRequest("The target_project that you are attempting to access does not exist or you don't have permission to perform this action")
	case target.Project.UID == s.Scope.Project.UID:
		return Addition{}, endpoint.BadRequest("Target project can't be the same as the source project")
	}
	err = f.change(ctx, s, func(declared *v1alpha1.JobTokenScope) error {
		there, err := jobtoken.Allows(ctx, f.Catalog, declared, target.Project)
		switch {
		case err != nil:
			return err
		case there:
			return endpoint.BadRequest("Target project is already in the job token scope")
		}
		if len(declared.Spec.Allowlist) >= maxEntries {
			declared.Spec.Allowlist, err = makeRoom(declared.Spec.Allowlist, func(e v1alpha1.AllowlistEntry) (v1alpha1.Reference, error) {
				_, err := f.Catalog.AnyProject(ctx, declared.Namespace, e.ProjectRef)
				return e.ProjectRef, err
			})
			if err != nil {
				return err
			}
		}
		if len(declared.Spec.Allowlist) >= maxEntries {
			return endpoint.BadRequest("The job token scope has " + strconv.Itoa(maxEntries) + " projects, and cannot have more")
		}
		declared.Spec.Allowlist = append(declared.Spec.Allowlist, v1alpha1.AllowlistEntry{ProjectRef: catalog.Refer(target.Project)})
		return nil
	})
	return Addition{SourceProjectID: s.Scope.Project.RESTID(), TargetProjectID: target.Project.RESTID()}, err
}

type removeRequest struct {
	TargetProjectID int64 `param:"target_project_id" doc:"Id of the project to let in no longer."`
}

// remove removes the entries that resolve to the project, and unresolved entries with its id.
func (f *Family) remove(ctx context.Context, s auth.Project, r *removeRequest) (endpoint.None, error) {
	scope := s.Scope
	target, err := f.target(ctx, r.TargetProjectID)
	gone := errors.Is(err, catalog.ErrNotFound)
	if err != nil && !gone {
		return endpoint.None{}, err
	}
	var missing error = endpoint.NotFound("Project")
	if !gone {
		access, err := f.Guard.Access(ctx, s.Caller, target)
		if err != nil {
			return endpoint.None{}, err
		}
		missing = notListed(s.Has(access, auth.ReadProject))
	}
	remove := func(declared *v1alpha1.JobTokenScope) error {
		left, err := f.without(ctx, declared, r.TargetProjectID, target.Project)
		if err == nil && len(left) == len(declared.Spec.Allowlist) {
			err = missing
		}
		declared.Spec.Allowlist = left
		return err
	}
	declared, err := jobtoken.ScopeOf(ctx, f.Catalog, scope)
	if err != nil {
		return endpoint.None{}, err
	}
	// The allowlist of a project never contains the project.
	if declared == nil || !gone && target.Project.UID == scope.Project.UID {
		return endpoint.None{}, missing
	}
	if err := remove(declared.DeepCopy()); err != nil {
		return endpoint.None{}, err
	}
	return endpoint.None{}, f.change(ctx, s, remove)
}

// without returns the list without the entries of an id and those that resolve to its project, which is nil if the id is unknown.
func (f *Family) without(
	ctx context.Context, declared *v1alpha1.JobTokenScope, id int64, p *v1alpha1.Project,
) (left []v1alpha1.AllowlistEntry, err error) {
	for _, e := range declared.Spec.Allowlist {
		if id != 0 && e.ProjectRef.ID == id {
			continue
		}
		if p != nil {
			allowed, err := jobtoken.Allowed(ctx, f.Catalog, declared, e)
			if err != nil && !errors.Is(err, catalog.ErrNotFound) {
				return nil, err
			}
			if err == nil && allowed.Project.UID == p.UID {
				continue
			}
		}
		left = append(left, e)
	}
	return left, nil
}

// makeRoom returns the entries without ids of projects or groups that no longer exist, which the list does not show. Other references can
// name a project or group that does not exist yet.
func makeRoom[E any](entries []E, leads func(E) (v1alpha1.Reference, error)) (left []E, err error) {
	for _, e := range entries {
		ref, err := leads(e)
		if catalog.IgnoreNotFound(err) != nil {
			return entries, err
		}
		if err == nil || ref.ID == 0 {
			left = append(left, e)
		}
	}
	return left, nil
}

// target returns the project that an entry with the id resolves to, or catalog.ErrNotFound.
func (f *Family) target(ctx context.Context, id int64) (catalog.Scope, error) {
	return jobtoken.Allowed(ctx, f.Catalog, &v1alpha1.JobTokenScope{}, v1alpha1.AllowlistEntry{ProjectRef: v1alpha1.Reference{ID: id}})
}

// notListed returns the response for a project that is not in the allowlist. seen says whether the caller can see the project. If not, the
// project is not found, whatever else would prevent its removal.
func notListed(seen bool) error {
	if !seen {
		return endpoint.NotFound("Project")
	}
	return endpoint.BadRequest("Target project is not in the job token scope")
}
