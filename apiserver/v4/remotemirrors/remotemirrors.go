// Package remotemirrors is the family "Remote mirrors" of the administration interface document.
package remotemirrors

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/remotemirror"
)

// +kubebuilder:rbac:groups=forgeplane.dev,resources=remotemirrors,verbs=get;create;patch;delete,roleName=forgeplane-apiserver
// +kubebuilder:rbac:groups=forgeplane.dev,resources=remotemirrors/status,verbs=patch,roleName=forgeplane-apiserver
// +kubebuilder:rbac:groups="",namespace=forgeplane-system,resources=secrets,verbs=list;watch;create;delete,roleName=forgeplane-apiserver

// Family serves the mirrors of projects.
type Family struct {
	family.Kit
	mirrors store.Identified[*v1alpha1.RemoteMirror]
}

// New returns the family.
func New(k family.Kit) *Family {
	return &Family{Kit: k, mirrors: store.ByID(k.Writer, k.Catalog, store.OfProject(remotemirror.Of))}
}

// Table lists the endpoints. Callers who see the project and lack the ability receive 401, whether or not they have signed in (API
// behaviour, section 2.16).
func (f *Family) Table() endpoint.Table {
	table := endpoint.Table{
		endpoint.Get("/projects/{id}/remote_mirrors", f.list).
			Doc("List the mirrors of a project."),
		endpoint.Get("/projects/{id}/remote_mirrors/{mirror_id}", f.get).
			Doc("Get a mirror."),
		endpoint.Post("/projects/{id}/remote_mirrors", f.create).
			Doc("Create a mirror, which pushes a project to another repository over http, https, ssh or git. Credentials in the URL are stored in a Secret and never shown."),
		endpoint.Put("/projects/{id}/remote_mirrors/{mirror_id}", f.update).
			Doc("Update a mirror. Its URL cannot change."),
		endpoint.Delete("/projects/{id}/remote_mirrors/{mirror_id}", f.remove).
			Conditional().Doc("Delete a mirror. The refs that it pushed stay on the target."),
		endpoint.Post("/projects/{id}/remote_mirrors/{mirror_id}/sync", f.sync).Status(http.StatusNoContent).
			Doc("Start a push of the mirror."),
	}
	for _, e := range table {
		e.Needs(auth.AdminRemoteMirrors).Anonymous(endpoint.Hidden).Denies(endpoint.Unauthorized(""))
	}
	return table
}

type listRequest struct {
	endpoint.Paging
}

func (f *Family) list(ctx context.Context, s auth.Project, r *listRequest) (endpoint.List[Mirror], error) {
	p := s.Scope.Project
	all, err := f.mirrors.List(ctx, s.Subject)
	return endpoint.Page(r.Paging, all, func(m *v1alpha1.RemoteMirror) Mirror { return show(p, m) }), err
}

type mirrorRequest struct {
	MirrorID int64 `param:"mirror_id" doc:"Id of the mirror."`
}

func (f *Family) get(ctx context.Context, s auth.Project, r *mirrorRequest) (Mirror, error) {
	m, err := f.mirrors.Get(ctx, s.Subject, r.MirrorID)
	if err != nil {
		return Mirror{}, err
	}
	return show(s.Scope.Project, m), nil
}

type createRequest struct {
	URL                   string                    `param:"url" required:"" example:"https://git.example/bakery/web.git" doc:"URL of the repository to push to, with credentials if it needs them."`
	Enabled               endpoint.Optional[bool]   `param:"enabled" doc:"Whether the mirror is enabled; false when omitted."`
	KeepDivergentRefs     endpoint.Optional[bool]   `param:"keep_divergent_refs" doc:"Whether to keep refs of the target that the project does not have, or that have diverged."`
	OnlyProtectedBranches endpoint.Optional[bool]   `param:"only_protected_branches" doc:"Whether to leave out branches that are not protected."`
	MirrorBranchRegex     endpoint.Optional[string] `param:"mirror_branch_regex" doc:"Pattern of the names of the branches that are pushed, in RE2 syntax."`
	HostKeys              []string                  `param:"host_keys" doc:"Keys of the host for ssh, each as in the file of a public key, such as ssh-ed25519 AAAA. Without them, nothing is pushed."`
}

// create creates the mirror, then its Secret, and then enables the mirror, so that it never pushes without credentials.
func (f *Family) create(ctx context.Context, s auth.Project, r *createRequest) (Mirror, error) {
	p := s.Scope.Project
	at, err := f.parse(r.URL)
	if err != nil {
		return Mirror{}, err
	}
	if at.hostKeys, err = knownHosts(at.url, r.HostKeys); err != nil {
		return Mirror{}, err
	}
	m := &v1alpha1.RemoteMirror{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: v1alpha1.NaturalName(p.Name, at.url, rand.Text())},
		Spec:       v1alpha1.RemoteMirrorSpec{ProjectRef: catalog.ReferNamed(p), URL: at.url, Enabled: ptr.To(false)},
	}
	change := settings{KeepDivergentRefs: r.KeepDivergentRefs, OnlyProtectedBranches: r.OnlyProtectedBranches, MirrorBranchRegex: r.MirrorBranchRegex}
	if err := change.apply(m); err != nil {
		return Mirror{}, err
	}
	credentials := at.username != "" || at.password != "" || at.hostKeys != ""
	if !credentials {
		m.Spec.Enabled = ptr.To(r.Enabled.Or(false))
	} else if shown := at.shown(); shown != "" {
		m.Annotations = map[string]string{v1alpha1.AnnotationCredentials: shown}
	}
	err = f.mirrors.Create(ctx, m, func(ctx context.Context, w store.Unasked) error {
		if !credentials {
			return nil
		}
		return f.keep(ctx, w, m, at, r.Enabled.Or(false))
	})
	if err != nil {
		return Mirror{}, err
	}
	return show(p, m), nil
}

// keep stores the credentials in a Secret of the platform. The status of the mirror, which tenants cannot write, names the Secret.
func (f *Family) keep(ctx context.Context, w store.Unasked, m *v1alpha1.RemoteMirror, at target, enabled bool) error {
	secret := f.Credentials.New(v1alpha1.SecretOfRemoteMirror, m, map[string][]byte{credential.UsernameKey: []byte(at.username)})
	if at.password != "" {
		secret.Data[credential.PasswordKey] = []byte(at.password)
	}
	if at.hostKeys != "" {
		secret.Data[credential.KnownHostsKey] = []byte(at.hostKeys)
	}
	if err := w.Create(ctx, secret); err != nil {
		return err
	}
	err := w.Observe(ctx, m, func() { m.Status.SecretRef.Name = secret.Name })
	if err == nil {
		err = w.Update(ctx, m, func() error {
			m.Spec.Enabled = ptr.To(enabled)
			return nil
		})
	}
	if err != nil {
		return errors.Join(err, w.Discard(ctx, secret))
	}
	return nil
}

type updateRequest struct {
	MirrorID              int64                     `param:"mirror_id" doc:"Id of the mirror."`
	Enabled               endpoint.Optional[bool]   `param:"enabled" example:"true" doc:"Whether the mirror is enabled."`
	KeepDivergentRefs     endpoint.Optional[bool]   `param:"keep_divergent_refs" doc:"Whether to keep refs of the target that the project does not have, or that have diverged."`
	OnlyProtectedBranches endpoint.Optional[bool]   `param:"only_protected_branches" doc:"Whether to leave out branches that are not protected."`
	MirrorBranchRegex     endpoint.Optional[string] `param:"mirror_branch_regex" doc:"Pattern of the names of the branches that are pushed, in RE2 syntax."`
}

func (f *Family) update(ctx context.Context, s auth.Project, r *updateRequest) (Mirror, error) {
	m, err := f.mirrors.Get(ctx, s.Subject, r.MirrorID)
	if err != nil {
		return Mirror{}, err
	}
	change := settings{
		Enabled: r.Enabled, KeepDivergentRefs: r.KeepDivergentRefs, OnlyProtectedBranches: r.OnlyProtectedBranches, MirrorBranchRegex: r.MirrorBranchRegex,
	}
	if err := change.apply(m.DeepCopy()); err != nil {
		return Mirror{}, err
	}
	if m, err = f.mirrors.Update(ctx, s.Subject, r.MirrorID, change.apply); err != nil {
		return Mirror{}, err
	}
	return show(s.Scope.Project, m), nil
}

func (f *Family) remove(ctx context.Context, s auth.Project, r *mirrorRequest) (endpoint.None, error) {
	return endpoint.None{}, f.mirrors.Delete(ctx, s.Subject, r.MirrorID)
}

// sync sets an annotation that makes the controller push.
func (f *Family) sync(ctx context.Context, s auth.Project, r *mirrorRequest) (endpoint.None, error) {
	_, err := f.mirrors.Act(ctx, s.Subject, r.MirrorID, func(m *v1alpha1.RemoteMirror) error {
		if !m.Spec.IsEnabled() {
			return endpoint.BadRequest("the mirror is not enabled")
		}
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationSync, f.Clock.Now().UTC().Format(time.RFC3339Nano))
		return nil
	})
	return endpoint.None{}, err
}
