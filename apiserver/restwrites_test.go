package apiserver

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
)

// beyond are the endpoints of a project or group that do not change a declaration below it.
var beyond = map[string]bool{
	"POST /projects/{id}/remote_mirrors/{mirror_id}/sync":              true, // it asks a controller to do something
	"POST /projects/{id}/repository_storage_moves":                     true, // it is an act
	"DELETE /projects/{id}/registry/repositories/{repository_id}/tags": true, // it is an act
	"POST /projects/{id}/fork":                                         true, // it creates a project in another group: see TestFork_isRefusedByTheGroupItGoesTo
}

func TestRESTWrites_ofRootGroupHoldInEveryFamily(t *testing.T) {
	t.Parallel()
	refusing := newWorld(t, v1alpha1.VisibilityPrivate)
	above, err := refusing.store.world.Catalog().GroupByPath(t.Context(), "above")
	if err != nil {
		t.Fatal(err)
	}
	fixed := above.DeepCopy()
	fixed.Spec.RESTWrites = v1alpha1.RESTWritesRefuse
	refused := refusals(t, refusing, fixed, "the group above", func(s sample) bool { return s.subject() != "instance" })
	if len(refused) != 2 {
		t.Errorf("requests about %v were refused, want some about projects and some about groups", refused)
	}
}

func TestRESTWrites_ofProjectHoldInEveryFamilyOfItsGroups(t *testing.T) {
	t.Parallel()
	refusing := newWorld(t, v1alpha1.VisibilityPrivate)
	app, err := refusing.store.world.Catalog().ProjectByPath(t.Context(), "above/team/app")
	if err != nil {
		t.Fatal(err)
	}
	fixed := app.DeepCopy()
	fixed.Spec.RESTWrites = v1alpha1.RESTWritesRefuse
	refused := refusals(t, refusing, fixed, "above/team/app", func(s sample) bool {
		// PUT /groups/{id} changes the description of the group: see TestGroup_isHeldToRESTWritesBelow.
		return strings.HasPrefix(s.endpoint.Path(), "/groups/{id}") && s.endpoint.String() != "PUT /groups/{id}"
	})
	if !refused["group"] {
		t.Error("no request about a group was refused")
	}
}

// refusals expects that requests that write something are refused, because of fixed, in the world that gets it. It returns the subjects of
// these requests.
func refusals(t *testing.T, refusing *world, fixed client.Object, by string, about func(sample) bool) map[string]bool {
	t.Helper()
	allowing := newWorld(t, v1alpha1.VisibilityPrivate)
	refusing.store.world.Put(fixed)
	refused := map[string]bool{}
	for _, s := range samples(allowing.handler) {
		if !about(s) || !changes(s.endpoint) || beyond[s.endpoint.String()] {
			continue
		}
		send := func(w *world) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(t.Context(), s.endpoint.Method(), s.target(1), strings.NewReader(s.text(1)))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("PRIVATE-TOKEN", familytest.Value("admin"))
			return w.serve(r)
		}
		allowed := send(allowing)
		declares := allowing.store.writes > 0
		allowing.reset()
		if !declares {
			continue
		}
		answer := send(refusing)
		body := answer.Body.String()
		if answer.Code != http.StatusForbidden || !strings.Contains(body, by) || !strings.Contains(body, "does not accept changes over REST") {
			t.Errorf("%s: %d without restWrites, and %d %s with Refuse", s, allowed.Code, answer.Code, body)
		}
		if refusing.store.writes > 0 {
			t.Errorf("%s: something was written all the same", s)
			refusing.reset()
			refusing.store.world.Put(fixed)
		}
		refused[s.subject()] = true
	}
	return refused
}
