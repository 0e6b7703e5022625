package apiserver

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/declare"
)

// BenchmarkREST serves the requests that "make bench" measures, without a network, and reports what each allocates. In the rows that end
// in "changing", an object changes before every request, so that no answer comes from a cache.
func BenchmarkREST(b *testing.B) {
	const projects, rules, labels, first = 2500, 45, 200, 100_000
	w := catalogtest.New(b, declared(v1alpha1.VisibilityPrivate)...)
	for n := range projects {
		p := familytest.Project(team, fmt.Sprintf("many-%d", n), int64(first+n), "team", v1alpha1.VisibilityPrivate)
		p.Generation, p.Status.ObservedGeneration, p.Status.FullPath = 1, 1, "above/team/"+p.Spec.Path
		w.Put(p)
	}
	for n := range rules {
		w.Put(&v1alpha1.ProtectedBranch{
			ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: fmt.Sprintf("rule-%d", n)},
			Spec: v1alpha1.ProtectedBranchSpec{
				ID: int64(first + n), ProjectRef: &v1alpha1.Reference{Name: "many-0"}, Branch: fmt.Sprintf("release/%02d/*", n),
				Push: []v1alpha1.AccessLevel{{Role: v1alpha1.AccessDeveloper}, {UserRef: &v1alpha1.Reference{Name: "target"}}},
			},
		})
	}
	for n := range labels {
		l := label(int64(first+n), fmt.Sprintf("area::%04d", n), v1alpha1.LabelSpec{ProjectRef: &v1alpha1.Reference{Name: "many-0"}})
		l.Name, l.Spec.Description, l.Status.ID = fmt.Sprintf("label-%d", n), fmt.Sprintf("Everything that has to do with the **area** %d.", n), l.Spec.ID
		w.Put(l)
	}
	external, err := url.Parse(familytest.WebURL)
	if err != nil {
		b.Fatal(err)
	}
	cat := w.Catalog()
	repositories := familytest.Repositories(b, cat)
	k := newKit(b, cat, auth.NewGuard(auth.NewAuthenticator(cat, clocktesting.NewFakePassiveClock(noon), nil), cat, repositories))
	k.Repositories, k.Refs = repositories, ref.NewUpdater(k.Guard, repositories, func(change.Event) {})
	k.Writer, k.Credentials = store.NewBackend(declare.NewWriter(nil, nil, &counter{last: 1 << 20}), cat, ""), credential.NewStore(w.Reader(), familytest.Namespace)
	handler := newREST(k, external, endpoint.Options{Log: logr.Discard()}, families(k))
	for _, path := range []string{
		"/user", "/projects/100000", "/projects/100000/protected_branches/release%2F07%2F%2A",
		"/projects/100000/protected_branches?per_page=20", "/projects?per_page=20", "/projects/100000/labels?per_page=20",
	} {
		for _, changing := range []bool{false, true} {
			name := path
			if changing {
				name += " changing"
			}
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if changing {
						w.Put(familytest.User("newcomer", newcomerID))
					}
					r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, path, http.NoBody)
					r.Header.Set("PRIVATE-TOKEN", familytest.Value(member("group", v1alpha1.RoleMaintainer)))
					answer := httptest.NewRecorder()
					if handler.ServeHTTP(answer, r); answer.Code != http.StatusOK {
						b.Fatal(answer.Code, answer.Body)
					}
				}
			})
		}
	}
}
