// Package triggertokens is the family "Pipeline trigger tokens" of the administration interface document.
package triggertokens

import (
	"context"
	"crypto/rand"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/triggertoken"
)

// maxDescription is the maximum length of a description.
const maxDescription = 1024

// +kubebuilder:rbac:groups=forgeplane.dev,resources=triggertokens,verbs=get;create;patch;delete,roleName=forgeplane-apiserver
// +kubebuilder:rbac:groups=forgeplane.dev,resources=triggertokens/status,verbs=patch,roleName=forgeplane-apiserver
// +kubebuilder:rbac:groups="",namespace=forgeplane-system,resources=secrets,verbs=list;watch;create;delete,roleName=forgeplane-apiserver

// Family serves trigger tokens.
type Family struct {
	family.Kit
	tokens store.Identified[*v1alpha1.TriggerToken]
}

// New returns the family.
func New(k family.Kit) *Family {
	return &Family{Kit: k, tokens: store.ByID(k.Writer, k.Catalog, store.OfProject(catalog.ListForProject[*v1alpha1.TriggerToken]))}
}

// Table lists the endpoints, except for the one that triggers a pipeline.
func (f *Family) Table() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/projects/{id}/triggers", f.list).Needs(auth.ManageTriggers).
			Doc("List the trigger tokens of a project."),
		endpoint.Get("/projects/{id}/triggers/{trigger_id}", f.get).Needs(auth.ManageTriggers).
			Doc("Get a trigger token."),
		endpoint.Post("/projects/{id}/triggers", f.create).Needs(auth.ManageTriggers).
			Doc("Create a trigger token, which the caller owns."),
		endpoint.Put("/projects/{id}/triggers/{trigger_id}", f.update).Found(f.find).Needs(auth.ManageTriggers).And(auth.Own).
			Doc("Update a trigger token that the caller owns."),
		endpoint.Delete("/projects/{id}/triggers/{trigger_id}", f.remove).Needs(auth.ManageTriggers).
			Conditional().Doc("Delete a trigger token of any owner."),
	}
}

type listRequest struct {
	endpoint.Paging
}

func (f *Family) list(ctx context.Context, s auth.Project, r *listRequest) (endpoint.List[Token], error) {
	all, err := f.tokens.List(ctx, s.Subject)
	if err != nil {
		return endpoint.List[Token]{}, err
	}
	shown, err := f.show(ctx, s.Subject, endpoint.Rows(r.Paging, all)...)
	if err != nil {
		return endpoint.List[Token]{}, err
	}
	return endpoint.Page(r.Paging, all, func(t *v1alpha1.TriggerToken) Token { return shown[t.UID] }), nil
}

type tokenRequest struct {
	TriggerID int64 `param:"trigger_id" doc:"Id of the trigger token."`
}

func (f *Family) get(ctx context.Context, s auth.Project, r *tokenRequest) (Token, error) {
	t, err := f.tokens.Get(ctx, s.Subject, r.TriggerID)
	if err != nil {
		return Token{}, err
	}
	return f.showOne(ctx, s.Subject, t)
}

type createRequest struct {
	Description string `param:"description" required:"" example:"nightly builds" doc:"Purpose of the token."`
}

func (f *Family) create(ctx context.Context, s auth.Project, r *createRequest) (Token, error) {
	p := s.Scope.Project
	owner, err := s.Caller.Account()
	if err != nil {
		return Token{}, err
	}
	if err := check(r.Description); err != nil {
		return Token{}, err
	}
	t := &v1alpha1.TriggerToken{
		// A project can have several tokens with the same description.
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: v1alpha1.NaturalName(p.Name, r.Description, rand.Text())},
		Spec: v1alpha1.TriggerTokenSpec{
			ProjectRef: catalog.ReferNamed(p), OwnerRef: ptr.To(catalog.Refer(owner)), Description: r.Description,
		},
	}
	err = f.tokens.Create(ctx, t, func(ctx context.Context, w store.Unasked) error { return f.issue(ctx, w, t, owner) })
	if err != nil {
		return Token{}, err
	}
	return f.showOne(ctx, s.Subject, t)
}

// issue gives a new token a value, which this process accepts when issue returns. Either this process or the controller creates the Secret
// first, and both compute the same digest.
func (f *Family) issue(ctx context.Context, w store.Unasked, t *v1alpha1.TriggerToken, owner *v1alpha1.User) error {
	s := f.Credentials.New(v1alpha1.SecretOfTriggerToken, t, map[string][]byte{credential.TokenKey: []byte(triggertoken.Generate())})
	if err := w.Ensure(ctx, s); err != nil {
		return err
	}
	err := w.Observe(ctx, t, func() {
		t.Status.ID, t.Status.SecretRef.Name, t.Status.IssuedTo = t.RESTID(), s.Name, string(owner.UID)
		t.Status.Digest = credential.Digest(string(s.Data[credential.TokenKey]))
	})
	if err != nil {
		return errors.Join(err, w.Discard(ctx, s))
	}
	return nil
}

type updateRequest struct {
	Description endpoint.Optional[string] `param:"description" example:"nightly builds" doc:"Purpose of the token."`
}

func (f *Family) update(ctx context.Context, s auth.ProjectRecord[owned], r *updateRequest) (Token, error) {
	if err := check(r.Description.Or("")); err != nil {
		return Token{}, err
	}
	t, err := f.tokens.Update(ctx, s.Subject, s.Record.RESTID(), func(t *v1alpha1.TriggerToken) error {
		if r.Description.Set {
			t.Spec.Description = r.Description.Or("")
		}
		return nil
	})
	if err != nil {
		return Token{}, err
	}
	return f.showOne(ctx, s.Subject, t)
}

func (f *Family) remove(ctx context.Context, s auth.Project, r *tokenRequest) (endpoint.None, error) {
	return endpoint.None{}, f.tokens.Delete(ctx, s.Subject, r.TriggerID)
}

func check(description string) error {
	if len([]rune(description)) > maxDescription {
		return endpoint.Invalid(map[string][]string{"description": {"is too long (maximum is 1024 characters)"}})
	}
	return nil
}
