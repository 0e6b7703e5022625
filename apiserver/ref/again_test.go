package ref_test

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/git/update"
)

// amend updates an object in the cluster.
func amend[T client.Object](t *testing.T, d *desk, obj T, key client.ObjectKey, how func(T)) {
	t.Helper()
	if err := d.Client.Get(t.Context(), key, obj); err != nil {
		t.Fatal(err)
	}
	how(obj)
	if err := d.Client.Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

// tokenOf returns the key of the token that a user sends with requests.
func tokenOf(t *testing.T, d *desk, username string) client.ObjectKey {
	t.Helper()
	var all v1alpha1.AccessTokenList
	if err := d.Client.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, o := range all.Items {
		if u, err := d.Catalog.User(t.Context(), o.Spec.UserRef); err == nil && u.Spec.Username == username {
			return client.ObjectKeyFromObject(&o)
		}
	}
	t.Fatalf("%s has no token", username)
	return client.ObjectKey{}
}

func TestWrite_isAuthorizedAfterPreparation(t *testing.T) {
	dora, acme := client.ObjectKey{Name: "dora"}, client.ObjectKey{Namespace: "acme", Name: "web"}
	tests := map[string]struct {
		meanwhile func(t *testing.T, d *desk)
		want      string
	}{
		"nothing happens": {func(*testing.T, *desk) {}, "201"},
		"the user is blocked": {func(t *testing.T, d *desk) {
			amend(t, d, &v1alpha1.User{}, dora, func(u *v1alpha1.User) { u.Spec.State = v1alpha1.UserBlocked })
		}, "403"},
		"the token is revoked": {func(t *testing.T, d *desk) {
			amend(t, d, &v1alpha1.AccessToken{}, tokenOf(t, d, "dora"), func(o *v1alpha1.AccessToken) { o.Spec.Revoked = true })
		}, "401"},
		"the token is deleted": {func(t *testing.T, d *desk) {
			o := &v1alpha1.AccessToken{ObjectMeta: metav1.ObjectMeta{Name: tokenOf(t, d, "dora").Name}}
			if err := d.Client.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}, "401"},
		"the token expires": {func(_ *testing.T, d *desk) { d.Clock.SetTime(d.Clock.Now().Add(2 * time.Hour)) }, "401"},
		"the role is lowered": {func(t *testing.T, d *desk) {
			var all v1alpha1.MembershipList
			if err := d.Client.List(t.Context(), &all); err != nil {
				t.Fatal(err)
			}
			for _, m := range all.Items {
				if m.Spec.Role == v1alpha1.RoleDeveloper {
					amend(t, d, &v1alpha1.Membership{}, client.ObjectKeyFromObject(&m), func(m *v1alpha1.Membership) { m.Spec.Role = v1alpha1.RoleGuest })
				}
			}
		}, "403"},
		"the project is archived": {func(t *testing.T, d *desk) {
			amend(t, d, &v1alpha1.Project{}, acme, func(p *v1alpha1.Project) { p.Spec.Archived = true })
		}, "403"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, history(t))
			amend(t, d, &v1alpha1.AccessToken{}, tokenOf(t, d, "dora"), func(o *v1alpha1.AccessToken) {
				o.Spec.ExpiresAt = &metav1.Time{Time: d.Clock.Now().Add(time.Hour)}
			})
			prepared := false
			d.Serve(endpoint.Table{endpoint.Post("/projects/{id}/drafts", func(ctx context.Context, s auth.Project, _ *draftRequest) (none made, err error) {
				return none, d.writer.Write(ctx, s, d.web, func(context.Context) ([]update.Ref, error) {
					was := d.client.Git(t, "rev-parse", "free")
					next := d.client.Git(t, "commit-tree", "-p", was, "-m", "slow", "main^{tree}")
					tt.meanwhile(t, d)
					prepared = true
					return []update.Ref{{Name: "refs/heads/free", Old: was, New: next}}, nil
				})
			}).Needs(auth.PushCode).Anonymous(endpoint.Hidden)})
			before := d.client.Git(t, "show-ref")
			answer := d.As("dora", "POST /projects/20/drafts", `{"branch":"free"}`).String()
			if !prepared || !strings.HasPrefix(answer, tt.want) {
				t.Errorf("got %s, want %s", answer, tt.want)
			}
			if refused := tt.want != "201"; (d.client.Git(t, "show-ref") == before) != refused || (len(d.pushed) == 0) != refused {
				t.Errorf("there is\n%s\nafter\n%s; told of %v", d.client.Git(t, "show-ref"), before, d.pushed)
			}
		})
	}
}
