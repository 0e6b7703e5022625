package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/declare"
)

// The ids of what requests name. The project is in the team, and the team in the group above.
const (
	projectID, groupID, aboveID, otherProjectID = 10, 20, 21, 11
	targetID, newcomerID                        = 30, 31
	keyID, otherKeyID                           = 40, 41
	targetTokenID                               = 1000 + targetID
	team                                        = "team"
)

var roles = []v1alpha1.Role{
	v1alpha1.RoleGuest, v1alpha1.RoleReporter, v1alpha1.RoleDeveloper, v1alpha1.RoleMaintainer, v1alpha1.RoleOwner,
}

// member is the username of whoever has a role in a place: "project", "group" or "above".
func member(place string, r v1alpha1.Role) string { return place + "-" + strings.ToLower(string(r)) }

// memberID is the id of that user.
func memberID(place string, r v1alpha1.Role) int64 {
	return int64(100 + 10*slices.Index(places, place) + slices.Index(roles, r))
}

// places are where somebody may have a role.
var places = []string{"project", "group", "above"}

const publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHzGfvYMIbnIl4qhDCSM93IN4uxX6PGTGTQQuBHPCHLV"

const otherPublicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJqEzDVxZHFL5bZ3wnlHIHm5yD5UpXZ3B4BFq3ZCcXKE"

// declared returns what is there: a project and its groups of one visibility, everybody who may call, and one object of each
// kind that requests are about.
func declared(v v1alpha1.Visibility) []client.Object {
	all := []client.Object{
		familytest.User("admin", 1, familytest.Admin), familytest.User("outsider", 2),
		familytest.User("blocked", 3, familytest.Blocked), familytest.User("target", targetID), familytest.User("newcomer", newcomerID),
		familytest.Group(team, "above", aboveID, "", v), familytest.Group(team, "team", groupID, "above", v),
		familytest.Project(team, "app", projectID, "team", v), familytest.Project(team, "other", otherProjectID, "team", v),
		familytest.InProject(team, "app", "target", v1alpha1.RoleGuest), familytest.InGroup(team, "team", "target", v1alpha1.RoleGuest),
		deployKey(keyID, "app", publicKey), deployKey(otherKeyID, "other", otherPublicKey),
		&v1alpha1.ProtectedBranch{
			ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "main"},
			Spec:       v1alpha1.ProtectedBranchSpec{ID: 50, ProjectRef: &v1alpha1.Reference{Name: "app"}, Branch: "main"},
		},
		familytest.InProject(team, "app", "blocked", v1alpha1.RoleOwner), familytest.InGroup(team, "team", "blocked", v1alpha1.RoleOwner),
	}
	for _, r := range roles {
		for _, place := range places {
			name := member(place, r)
			all = append(all, familytest.User(name, memberID(place, r), func(s *v1alpha1.UserSpec) {
				s.Kubernetes = &v1alpha1.KubernetesIdentity{Username: "system:serviceaccount:ci:" + name}
			}))
			switch place {
			case "project":
				// Of the other project a deploy key may be taken over.
				all = append(all, familytest.InProject(team, "app", name, r), familytest.InProject(team, "other", name, r))
			case "group":
				all = append(all, familytest.InGroup(team, "team", name, r))
			default:
				all = append(all, familytest.InGroup(team, "above", name, r))
			}
		}
	}
	return append(all, tokens()...)
}

func deployKey(id int64, project, key string) *v1alpha1.DeployKey {
	return &v1alpha1.DeployKey{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "key-of-" + project},
		Spec: v1alpha1.DeployKeySpec{
			ID: id, ProjectRef: v1alpha1.Reference{Name: project}, Title: "CI", PublicKey: key, Access: v1alpha1.DeployKeyReadOnly,
		},
	}
}

// scopes are all that a token may have.
var scopes = []v1alpha1.TokenScope{
	v1alpha1.ScopeAPI, v1alpha1.ScopeReadAPI, v1alpha1.ScopeReadUser, v1alpha1.ScopeReadRepository,
	v1alpha1.ScopeWriteRepository, v1alpha1.ScopeReadRegistry, v1alpha1.ScopeWriteRegistry, v1alpha1.ScopeSudo,
}

// tokens are the administrator's: one of each scope, and some that are not good any more.
func tokens() []client.Object {
	id := int64(2000)
	token := func(value string, change func(*v1alpha1.AccessTokenSpec)) client.Object {
		id++
		t := &v1alpha1.AccessToken{
			ObjectMeta: metav1.ObjectMeta{Name: strings.ReplaceAll(value, "_", "-")},
			Spec: v1alpha1.AccessTokenSpec{
				ID: id, UserRef: v1alpha1.Reference{Name: "admin"}, Scopes: []v1alpha1.TokenScope{v1alpha1.ScopeAPI},
				SecretRef: v1alpha1.SecretKeyReference{Name: "a", Key: "token"},
			},
			Status: v1alpha1.AccessTokenStatus{ID: id, Digest: catalog.Digest(value)},
		}
		change(&t.Spec)
		return t
	}
	all := []client.Object{
		token("expired", func(s *v1alpha1.AccessTokenSpec) {
			s.ExpiresAt = &metav1.Time{Time: time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)}
		}),
		token("revoked", func(s *v1alpha1.AccessTokenSpec) { s.Revoked = true }),
		token("api-sudo", func(s *v1alpha1.AccessTokenSpec) {
			s.Scopes = []v1alpha1.TokenScope{v1alpha1.ScopeAPI, v1alpha1.ScopeSudo}
		}),
	}
	for _, scope := range scopes {
		all = append(all, token("scope-"+string(scope), func(s *v1alpha1.AccessTokenSpec) { s.Scopes = []v1alpha1.TokenScope{scope} }))
	}
	return all
}

// world is the whole REST API over declared objects in memory.
type world struct {
	t       *testing.T
	forge   *familytest.Forge
	client  client.Client
	handler *endpoint.Handler
	schemas *familytest.Schemas
	// writes counts what was done to declared objects.
	writes int
}

// definitions are the kinds as kube-apiserver knows them.
var definitions = sync.OnceValues(func() (*familytest.Schemas, error) { return familytest.LoadSchemas("../config/crd") })

// builder makes worlds that all begin alike.
type builder struct {
	schemas *familytest.Schemas
	objects []client.Object
}

// newBuilder returns a builder of worlds in which the project and its groups have a visibility.
func newBuilder(t *testing.T, v v1alpha1.Visibility) *builder {
	t.Helper()
	b := &builder{objects: declared(v)}
	var err error
	if b.schemas, err = definitions(); err != nil {
		t.Fatal(err)
	}
	for _, o := range b.objects {
		if err := b.schemas.Admit(t.Context(), o, nil); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b *builder) build(t *testing.T) *world {
	t.Helper()
	objects := make([]client.Object, len(b.objects))
	for i, o := range b.objects {
		objects[i] = o.DeepCopyObject().(client.Object)
	}
	w := &world{t: t, forge: familytest.New(t, objects...), schemas: b.schemas}
	w.client = w.watched(w.forge.Client.(client.WithWatch))
	external, err := url.Parse(familytest.WebURL)
	if err != nil {
		t.Fatal(err)
	}
	f := w.forge
	guard := auth.NewGuard(auth.NewAuthenticator(f.Catalog, f.Clock, clusterAdministrators{}), f.Catalog)
	w.handler = newREST(restOptions{
		external: external, version: "test", guard: guard, catalog: f.Catalog,
		writer: declare.NewWriter(w.client, w.client, f.IDs), ids: f.IDs, log: testr.New(t),
		clock: f.Clock, namespace: familytest.Namespace, home: "home",
	})
	return w
}

// watched counts writes, and refuses what kube-apiserver would refuse.
func (w *world) watched(c client.WithWatch) client.Client {
	admit := func(ctx context.Context, o client.Object, verb string, write func() error) error {
		var was client.Object
		if verb != "create" {
			was = o.DeepCopyObject().(client.Object)
			if err := c.Get(ctx, client.ObjectKeyFromObject(o), was); err != nil {
				return err
			}
		}
		if err := w.schemas.Admit(ctx, o, was); err != nil {
			return err
		}
		w.writes++
		return write()
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return admit(ctx, o, "create", func() error { return c.Create(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return admit(ctx, o, "patch", func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			w.writes++
			return c.Delete(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			w.writes++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
}

// clusterAdministrator is a Kubernetes identity that administers the instance; no User is declared for it.
const clusterAdministrator = "system:admin"

// clusterAdministrators stands for the question that door A asks kube-apiserver.
type clusterAdministrators struct{}

func (clusterAdministrators) Include(ctx context.Context) (bool, error) {
	identity, _ := auth.IdentityFrom(ctx)
	return identity == clusterAdministrator, nil
}

// send serves a request; body is JSON, or none where it is empty.
func (w *world) send(c caller, subject, method, target, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(w.t.Context(), method, target, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return w.serve(c.sign(r, subject))
}

func (w *world) serve(r *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	return answer
}

// objects returns everything that is declared, by kind and name.
func (w *world) objects() map[string]client.Object {
	w.t.Helper()
	all := map[string]client.Object{}
	for _, l := range []client.ObjectList{
		&v1alpha1.UserList{}, &v1alpha1.AccessTokenList{}, &v1alpha1.GroupList{}, &v1alpha1.ProjectList{},
		&v1alpha1.MembershipList{}, &v1alpha1.DeployKeyList{}, &v1alpha1.ProtectedBranchList{}, &corev1.SecretList{},
	} {
		if err := w.client.List(w.t.Context(), l); err != nil {
			w.t.Fatal(err)
		}
		err := meta.EachListItem(l, func(item runtime.Object) error {
			o := item.(client.Object)
			all[fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName())] = o
			return nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return all
}
