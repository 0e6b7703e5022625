// Package settings is the family of the settings of the installation.
package settings

import (
	"context"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/feature"
)

// Family serves settings.
type Family struct {
	family.Kit
	values *store.Store[store.Only, *corev1.ConfigMap]
}

// New returns the family.
func New(k family.Kit) *Family {
	return &Family{Kit: k, values: store.Features(k.Writer, k.Features)}
}

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/application/settings", f.get).Needs(auth.AdminInstance).
			Doc("Get the settings of the installation."),
		endpoint.Put("/application/settings", f.update).Needs(auth.AdminInstance).Nonempty().Strict().
			Doc("Update the settings of the installation. Only default_projects_limit can change."),
	}
}

// Settings are the supported settings of the REST API. Only the first one can change.
type Settings struct {
	DefaultProjectsLimit      int      `json:"default_projects_limit" doc:"How many projects a new user can create; 100000 for no limit."`
	ID                        int      `json:"id"`
	DefaultBranchName         string   `json:"default_branch_name"`
	DefaultProjectVisibility  string   `json:"default_project_visibility"`
	DefaultGroupVisibility    string   `json:"default_group_visibility"`
	RestrictedVisibility      []string `json:"restricted_visibility_levels"`
	EnabledGitAccessProtocol  string   `json:"enabled_git_access_protocol"`
	ImportSources             []string `json:"import_sources"`
	CanCreateGroup            bool     `json:"can_create_group"`
	SignupEnabled             bool     `json:"signup_enabled"`
	PasswordAuthenticationWeb bool     `json:"password_authentication_enabled_for_web"`
	PasswordAuthenticationGit bool     `json:"password_authentication_enabled_for_git"`
	GravatarEnabled           bool     `json:"gravatar_enabled"`
	UserOAuthApplications     bool     `json:"user_oauth_applications"`
	UserDefaultExternal       bool     `json:"user_default_external"`
}

// unlimited is the number of projects that stands for no limit.
const unlimited = 100_000

func (f *Family) current(ctx context.Context) (Settings, error) {
	limit := f.Quotas.Projects
	if limit == 0 {
		limit = unlimited
	}
	chosen, set, err := f.Features.ProjectsLimit(ctx)
	if set {
		limit = int(chosen)
	}
	return Settings{
		DefaultProjectsLimit: limit,
		ID:                   1, DefaultBranchName: "main", DefaultProjectVisibility: "private", DefaultGroupVisibility: "private",
		RestrictedVisibility: []string{}, EnabledGitAccessProtocol: "http", ImportSources: []string{"git"}, CanCreateGroup: true,
	}, err
}

func (f *Family) get(ctx context.Context, _ auth.Instance, _ *endpoint.None) (Settings, error) {
	return f.current(ctx)
}

type updateRequest struct {
	DefaultProjectsLimit      endpoint.Optional[int64]  `param:"default_projects_limit" minimum:"0" maximum:"1000000" example:"20" doc:"How many projects a new user can create; null for the limit of all users."`
	DefaultBranchName         endpoint.Optional[string] `param:"default_branch_name" doc:"Cannot change."`
	DefaultProjectVisibility  endpoint.Optional[string] `param:"default_project_visibility" doc:"Cannot change."`
	DefaultGroupVisibility    endpoint.Optional[string] `param:"default_group_visibility" doc:"Cannot change."`
	RestrictedVisibility      []string                  `param:"restricted_visibility_levels" comma:"" doc:"Cannot change."`
	EnabledGitAccessProtocol  endpoint.Optional[string] `param:"enabled_git_access_protocol" doc:"Cannot change."`
	ImportSources             []string                  `param:"import_sources" comma:"" doc:"Cannot change."`
	CanCreateGroup            endpoint.Optional[bool]   `param:"can_create_group" doc:"Cannot change."`
	SignupEnabled             endpoint.Optional[bool]   `param:"signup_enabled" doc:"Cannot change."`
	PasswordAuthenticationWeb endpoint.Optional[bool]   `param:"password_authentication_enabled_for_web" doc:"Cannot change."`
	PasswordAuthenticationGit endpoint.Optional[bool]   `param:"password_authentication_enabled_for_git" doc:"Cannot change."`
	GravatarEnabled           endpoint.Optional[bool]   `param:"gravatar_enabled" doc:"Cannot change."`
	UserOAuthApplications     endpoint.Optional[bool]   `param:"user_oauth_applications" doc:"Cannot change."`
	UserDefaultExternal       endpoint.Optional[bool]   `param:"user_default_external" doc:"Cannot change."`
}

// fixed is the validation error for a changed setting that cannot change.
const fixed = "cannot be changed on this server"

// check accepts the current values of settings that cannot change, because clients send back the values that they read.
func (r *updateRequest) check(is Settings) error {
	var a endpoint.Attributes
	same(&a, "default_branch_name", r.DefaultBranchName, is.DefaultBranchName)
	same(&a, "default_project_visibility", r.DefaultProjectVisibility, is.DefaultProjectVisibility)
	same(&a, "default_group_visibility", r.DefaultGroupVisibility, is.DefaultGroupVisibility)
	same(&a, "enabled_git_access_protocol", r.EnabledGitAccessProtocol, is.EnabledGitAccessProtocol)
	same(&a, "can_create_group", r.CanCreateGroup, is.CanCreateGroup)
	same(&a, "signup_enabled", r.SignupEnabled, is.SignupEnabled)
	same(&a, "password_authentication_enabled_for_web", r.PasswordAuthenticationWeb, is.PasswordAuthenticationWeb)
	same(&a, "password_authentication_enabled_for_git", r.PasswordAuthenticationGit, is.PasswordAuthenticationGit)
	same(&a, "gravatar_enabled", r.GravatarEnabled, is.GravatarEnabled)
	same(&a, "user_oauth_applications", r.UserOAuthApplications, is.UserOAuthApplications)
	same(&a, "user_default_external", r.UserDefaultExternal, is.UserDefaultExternal)
	if len(r.RestrictedVisibility) > 0 {
		a.Refuse("restricted_visibility_levels", fixed)
	}
	if len(r.ImportSources) > 0 && !slices.Equal(r.ImportSources, is.ImportSources) {
		a.Refuse("import_sources", fixed)
	}
	return a.Err()
}

func same[T comparable](a *endpoint.Attributes, name string, sent endpoint.Optional[T], is T) {
	if sent.Set && (sent.Null || sent.Value != is) {
		a.Refuse(name, fixed)
	}
}

func (f *Family) update(ctx context.Context, s auth.Instance, r *updateRequest) (Settings, error) {
	is, err := f.current(ctx)
	if err == nil {
		err = r.check(is)
	}
	// Clients send back the values that they read. A default must not become a declared value.
	if limit := r.DefaultProjectsLimit; err == nil && limit.Set && (limit.Null || limit.Value != int64(is.DefaultProjectsLimit)) {
		err = f.values.UpdateOrCreate(ctx, s.Subject, store.Only{}, f.Features.Values, func(m *corev1.ConfigMap) error {
			if m.Data == nil {
				m.Data = map[string]string{}
			}
			if limit.Null {
				delete(m.Data, feature.DefaultProjectsLimit)
			} else {
				m.Data[feature.DefaultProjectsLimit] = strconv.FormatInt(limit.Value, 10)
			}
			return nil
		})
	}
	if err != nil {
		return Settings{}, err
	}
	return f.current(ctx)
}
