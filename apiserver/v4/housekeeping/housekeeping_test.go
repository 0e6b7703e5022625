package housekeeping_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/housekeeping"
)

func TestHousekeeping_schedulesMaintenance(t *testing.T) {
	var asked []types.NamespacedName
	on := true
	f := familytest.New(t, familytest.User("mary", 2), familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic), familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleMaintainer))
	f.Maintain = func(project types.NamespacedName) bool {
		asked = append(asked, project)
		return on
	}
	f.Serve(housekeeping.New(f.Kit).Table())
	for body, want := range map[string]string{
		``: "201", `{"task":"prune"}`: "201", `{"task":"other"}`: `400 {"error":"task does not have a valid value"}`,
	} {
		asked = nil
		if got := f.As("mary", "POST /projects/20/housekeeping", body).String(); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
		if scheduled := len(asked) == 1 && asked[0] == (types.NamespacedName{Namespace: "acme", Name: "web"}); scheduled != (want == "201") {
			t.Errorf("%s: asked for %v", body, asked)
		}
	}
	on = false
	const off = `409 {"message":"Maintenance is turned off on this server by --maintenance-concurrency=0."}`
	if got := f.As("mary", "POST /projects/20/housekeeping", "").String(); got != off {
		t.Errorf("got %s", got)
	}
}
