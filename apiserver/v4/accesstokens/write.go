package accesstokens

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/accesstoken"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
)

// maxName is the maximum length of a name.
const maxName = 255

type createRequest struct {
	Name      string                       `param:"name" required:"" example:"deploy" doc:"Purpose of the token."`
	Scopes    []string                     `param:"scopes" required:"" comma:"" values:"api,read_api,read_user,read_repository,write_repository,read_registry,write_registry,sudo" example:"read_api" doc:"Purposes for which the token can be used."`
	ExpiresAt endpoint.Optional[time.Time] `param:"expires_at" doc:"Day from which the token is no longer accepted; a year from now when omitted."`
}

func (f *Family) create(ctx context.Context, s auth.User, r *createRequest) (entity.NewToken, error) {
	switch {
	case strings.TrimSpace(r.Name) == "":
		return entity.NewToken{}, endpoint.Message(http.StatusUnprocessableEntity, "Name can't be blank")
	case len([]rune(r.Name)) > maxName:
		return entity.NewToken{}, endpoint.Message(http.StatusUnprocessableEntity, "Name is too long (maximum is 255 characters)")
	case len(r.Scopes) == 0:
		return entity.NewToken{}, endpoint.Message(http.StatusUnprocessableEntity, "Scopes can't be blank")
	}
	expires, err := f.expiry(r.ExpiresAt, accesstoken.Lifetime)
	if err != nil {
		return entity.NewToken{}, err
	}
	spec := v1alpha1.AccessTokenSpec{Description: r.Name, ExpiresAt: &expires}
	seen := map[string]bool{}
	for _, scope := range r.Scopes {
		if !seen[scope] {
			seen[scope] = true
			spec.Scopes = append(spec.Scopes, v1alpha1.TokenScope(scope))
		}
	}
	return f.issue(ctx, s.User, spec, func(t *v1alpha1.AccessToken, then store.Then) error { return f.tokens.Create(ctx, t, then) })
}

// expiry returns the start of the requested day, or of the day after the given number of days.
func (f *Family) expiry(sent endpoint.Optional[time.Time], days int) (metav1.Time, error) {
	at, future := accesstoken.Expiry(sent.Or(time.Time{}), days, f.Clock.Now())
	if !future {
		return metav1.Time{}, endpoint.BadRequest("expires_at must be a date in the future")
	}
	return at, nil
}

// issue creates a token that every server accepts as soon as issue returns: it also writes the digest to the status, which the controller
// would do later. Only the response to this request contains the value.
func (f *Family) issue(
	ctx context.Context, u *v1alpha1.User, spec v1alpha1.AccessTokenSpec, create func(*v1alpha1.AccessToken, store.Then) error,
) (entity.NewToken, error) {
	if err := f.tidy(ctx, u); err != nil {
		return entity.NewToken{}, err
	}
	value := accesstoken.Generate()
	spec.UserRef, spec.Digest = catalog.Refer(u), credential.Digest(value)
	t := &v1alpha1.AccessToken{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.NaturalName(u.Spec.Username, spec.Description, rand.Text())}, Spec: spec,
	}
	err := create(t, func(ctx context.Context, w store.Unasked) error {
		return w.Observe(ctx, t, func() { t.Status.ID, t.Status.Digest = t.Spec.ID, t.Spec.Digest })
	})
	if err != nil {
		return entity.NewToken{}, err
	}
	return entity.NewToken{Token: f.show(owned{t, u}, nil), Value: value}, nil
}

// replace issues a successor of a token before it revokes the token, so a failure in between does not lock the user out. Of two concurrent
// rotations of a token, one succeeds.
func (f *Family) replace(ctx context.Context, s auth.Subject, old owned, sent endpoint.Optional[time.Time]) (entity.NewToken, error) {
	if old.Spec.Revoked {
		return entity.NewToken{}, revoked()
	}
	expires, err := f.expiry(sent, accesstoken.RotatedLifetime)
	if err != nil {
		return entity.NewToken{}, err
	}
	spec := v1alpha1.AccessTokenSpec{Description: old.Spec.Description, Scopes: old.Spec.Scopes, ExpiresAt: &expires}
	end := func(old *v1alpha1.AccessToken) error {
		if old.Spec.Revoked {
			return revoked()
		}
		old.Spec.Revoked = true
		return nil
	}
	return f.issue(ctx, old.user, spec, func(t *v1alpha1.AccessToken, then store.Then) error {
		return f.tokens.Replace(ctx, s, old, end, t, then)
	})
}

func revoked() error { return endpoint.BadRequest("token already revoked") }

// end revokes a token. It succeeds if the token was revoked before.
func (f *Family) end(ctx context.Context, s auth.Subject, t owned) error {
	_, err := f.tokens.Update(ctx, s, t, func(t *v1alpha1.AccessToken) error {
		t.Spec.Revoked = true
		return nil
	})
	return err
}
