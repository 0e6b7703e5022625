// Package triggertokens is the family of the pipeline trigger tokens of projects.
package triggertokens

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/conditional"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/refusal"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/declare"
	"github.com/forgeplane/forgeplane/internal/naturalkey"
	"github.com/forgeplane/forgeplane/internal/triggertoken"
)

// maxDescription is how long a description may be.
const maxDescription = 1024

// +kubebuilder:rbac:groups=forgeplane.dev,resources=triggertokens,verbs=get;create;patch;delete,roleName=forgeplane-apiserver
// +kubebuilder:rbac:groups=forgeplane.dev,resources=triggertokens/status,verbs=patch,roleName=forgeplane-apiserver
// +kubebuilder:rbac:groups="",namespace=forgeplane-system,resources=secrets,verbs=list;watch;create;delete,roleName=forgeplane-apiserver

// Uses knows when something was last used; an activity.Store does.
type Uses interface {
	// LastUsed has no entry for what was never used.
	LastUsed(ctx context.Context, kind string, uids ...types.UID) (map[types.UID]time.Time, error)
}

// Family serves trigger tokens.
type Family struct {
	catalog *catalog.Catalog
	writer  *declare.Writer
	values  *credential.Store
	uses    Uses
	webURL  string
}

// New returns the family; values is where those of the tokens are, and webURL the address of the installation, without a slash at its
// end.
func New(cat *catalog.Catalog, w *declare.Writer, values *credential.Store, uses Uses, webURL string) *Family {
	return &Family{catalog: cat, writer: w, values: values, uses: uses, webURL: webURL}
}

// Table is "Pipeline trigger tokens" of the interface document, without the triggering itself.
func (f *Family) Table() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/projects/{id}/triggers", f.list).Needs(auth.ManageTriggers).
			Doc("List the trigger tokens of a project."),
		endpoint.Get("/projects/{id}/triggers/{trigger_id}", f.get).Needs(auth.ManageTriggers).
			Doc("Get a trigger token."),
		endpoint.Post("/projects/{id}/triggers", f.create).Needs(auth.ManageTriggers).
			Doc("Create a trigger token, which the caller owns."),
		endpoint.Put("/projects/{id}/triggers/{trigger_id}", f.update).Needs(auth.ManageTriggers).
			Doc("Change a trigger token that the caller owns."),
		endpoint.Delete("/projects/{id}/triggers/{trigger_id}", f.remove).Needs(auth.ManageTriggers).
			Conditional().Doc("Remove a trigger token, whoever owns it."),
	}
}

type listRequest struct {
	endpoint.Paging
}

func (f *Family) list(ctx context.Context, s auth.Project, r *listRequest) (endpoint.List[Token], error) {
	all, err := f.catalog.TriggerTokensOf(ctx, s.Scope.Project)
	if err != nil {
		return endpoint.List[Token]{}, err
	}
	// What has no id yet is not known to the API.
	all = slices.DeleteFunc(all, func(t *v1alpha1.TriggerToken) bool { return t.RESTID() == 0 })
	slices.SortFunc(all, func(a, b *v1alpha1.TriggerToken) int { return cmp.Compare(a.RESTID(), b.RESTID()) })
	shown, err := f.show(ctx, s, endpoint.Rows(r.Paging, all)...)
	if err != nil {
		return endpoint.List[Token]{}, err
	}
	return endpoint.Page(r.Paging, all, func(t *v1alpha1.TriggerToken) Token { return shown[t.UID] }), nil
}

type tokenRequest struct {
	TriggerID int64 `param:"trigger_id" doc:"Id of the trigger token."`
}

func (f *Family) get(ctx context.Context, s auth.Project, r *tokenRequest) (Token, error) {
	t, err := f.own(ctx, s, r.TriggerID)
	if err != nil {
		return Token{}, err
	}
	return f.showOne(ctx, s, t)
}

type createRequest struct {
	Description string `param:"description" required:"" doc:"What the token is for."`
}

func (f *Family) create(ctx context.Context, s auth.Project, r *createRequest) (Token, error) {
	p := s.Scope.Project
	owner, err := s.Caller.Person()
	if err != nil {
		return Token{}, err
	}
	if err := check(r.Description); err != nil {
		return Token{}, err
	}
	if err := f.writer.Allow(ctx, p, nil); err != nil {
		return Token{}, refusal.Of(err, "")
	}
	t := &v1alpha1.TriggerToken{
		// A project may have many of the same description.
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: naturalkey.Name(p.Name, r.Description, rand.Text())},
		Spec: v1alpha1.TriggerTokenSpec{
			ProjectRef: catalog.ReferNamed(p), OwnerRef: ptr.To(catalog.Refer(owner)), Description: r.Description,
		},
	}
	if err := f.writer.Create(ctx, t); err != nil {
		return Token{}, refusal.Of(err, "")
	}
	if err := f.issue(ctx, t, owner); err != nil {
		// Nobody will learn its value.
		return Token{}, errors.Join(err, f.writer.Discard(ctx, t))
	}
	return f.showOne(ctx, s, t)
}

// issue gives a value to a token that its owner makes. This process accepts the value when issue returns: this process or the
// controller, whichever is first, makes the Secret, and both come to the same digest.
func (f *Family) issue(ctx context.Context, t *v1alpha1.TriggerToken, owner *v1alpha1.User) error {
	s := f.values.New(v1alpha1.SecretOfTriggerToken, t, map[string][]byte{credential.TokenKey: []byte(triggertoken.Generate())})
	if err := f.writer.Ensure(ctx, s); err != nil {
		return err
	}
	err := f.writer.Observe(ctx, t, func() {
		t.Status.ID, t.Status.SecretRef.Name, t.Status.IssuedTo = t.RESTID(), s.Name, string(owner.UID)
		t.Status.Digest = catalog.Digest(string(s.Data[credential.TokenKey]))
	})
	if err != nil {
		return errors.Join(err, f.writer.Discard(ctx, s))
	}
	return nil
}

type updateRequest struct {
	TriggerID   int64                     `param:"trigger_id" doc:"Id of the trigger token."`
	Description endpoint.Optional[string] `param:"description" doc:"What the token is for."`
}

func (f *Family) update(ctx context.Context, s auth.Project, r *updateRequest) (Token, error) {
	t, err := f.own(ctx, s, r.TriggerID)
	if err != nil {
		return Token{}, err
	}
	owner, err := f.ownerOf(ctx, t)
	if err != nil {
		return Token{}, err
	}
	if !is(s, owner) {
		return Token{}, endpoint.Forbidden("")
	}
	if err := check(r.Description.Or("")); err != nil {
		return Token{}, err
	}
	if err := f.writer.Allow(ctx, s.Scope.Project, t); err != nil {
		return Token{}, refusal.Of(err, "")
	}
	if r.Description.Set {
		err = f.writer.Update(ctx, t, func() error {
			t.Spec.Description = r.Description.Or("")
			return nil
		})
		if err != nil {
			return Token{}, refusal.Of(err, "")
		}
	}
	return f.showOne(ctx, s, t)
}

func (f *Family) remove(ctx context.Context, s auth.Project, r *tokenRequest) (endpoint.None, error) {
	t, err := f.own(ctx, s, r.TriggerID)
	if err != nil {
		return endpoint.None{}, err
	}
	if err := f.writer.Allow(ctx, s.Scope.Project, t); err != nil {
		return endpoint.None{}, refusal.Of(err, "")
	}
	return endpoint.None{}, refusal.Of(conditional.Delete(ctx, f.writer, t), "")
}

// own returns a copy of the project's trigger token that has an id.
func (f *Family) own(ctx context.Context, s auth.Project, id int64) (*v1alpha1.TriggerToken, error) {
	all, err := f.catalog.TriggerTokensOf(ctx, s.Scope.Project)
	if err != nil {
		return nil, err
	}
	t, ok, err := catalog.WithID(ctx, f.catalog, all, id)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, endpoint.NotFound("")
	}
	return t.DeepCopy(), nil
}

func check(description string) error {
	if len([]rune(description)) > maxDescription {
		return endpoint.Invalid(map[string][]string{"description": {"is too long (maximum is 1024 characters)"}})
	}
	return nil
}
