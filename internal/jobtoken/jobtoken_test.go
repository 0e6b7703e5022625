package jobtoken_test

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	. "github.com/forgeplane/forgeplane/internal/jobtoken"
)

func TestDecide(t *testing.T) {
	user, anybody, both := Rights{User: true}, Rights{Anybody: true}, Rights{User: true, Anybody: true}
	tests := map[string]struct {
		question Question
		want     Outcome
	}{
		"its own project":                                                 {Question{Own: true, Restricted: true, Rights: user}, AsUser},
		"its own project, which is public":                                {Question{Own: true, Restricted: true, Rights: both}, AsUser},
		"its own project, whose user has left":                            {Question{Own: true, Restricted: true}, Refused},
		"its own project, public, whose user is blocked":                  {Question{Own: true, Rights: anybody}, AsAnybody},
		"another project that is restricted":                              {Question{Restricted: true, Rights: user}, Refused},
		"another project that is restricted, and public":                  {Question{Restricted: true, Rights: both}, AsAnybody},
		"another project that lists the job's project":                    {Question{Restricted: true, Listed: true, Rights: user}, AsUser},
		"another project that lists the job's project, without the user":  {Question{Restricted: true, Listed: true}, Refused},
		"a public project that lists the job's project, without the user": {Question{Restricted: true, Listed: true, Rights: anybody}, AsAnybody},
		"another project that is open":                                    {Question{Rights: user}, AsUser},
		"another project that is open, but not to the user":               {Question{}, Refused},
		"another project that is open and public":                         {Question{Rights: anybody}, AsAnybody},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Decide(tt.question); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// questions yields every possible question.
func questions(yield func(Question) bool) {
	for n := range 32 {
		q := Question{n&1 != 0, n&2 != 0, n&4 != 0, Rights{n&8 != 0, n&16 != 0}}
		if !yield(q) {
			return
		}
	}
}

func TestDecide_neverExceedsRightsOfUser(t *testing.T) {
	for q := range questions {
		got := Decide(q)
		if got == AsUser && !q.User || got == AsAnybody && !q.Anybody {
			t.Errorf("%+v: %d", q, got)
		}
		if got == Refused && q.Anybody {
			t.Errorf("%+v: a token is worth less than none", q)
		}
	}
}

func TestDecide_grantsNoLessIfMoreIsAllowed(t *testing.T) {
	for q := range questions {
		open, listed, own, user := q, q, q, q
		open.Restricted, listed.Listed, own.Own, user.User = false, true, true, true
		for _, more := range []Question{open, listed, own, user} {
			if Decide(more) < Decide(q) {
				t.Errorf("%+v gets %d, and %+v gets %d", q, Decide(q), more, Decide(more))
			}
		}
	}
}

func TestDecide_givesUnlistedProjectsNoRightsOfUser(t *testing.T) {
	for q := range questions {
		if q.Restricted && !q.Listed && !q.Own && Decide(q) == AsUser {
			t.Errorf("%+v: the door is open", q)
		}
	}
}

// Objects of two namespaces: the project acme/web, and others.
func group(namespace string) *v1alpha1.Group {
	return &v1alpha1.Group{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: namespace}, Spec: v1alpha1.GroupSpec{Path: namespace}}
}

func project(namespace, name string, id int64) *v1alpha1.Project {
	return &v1alpha1.Project{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.ProjectSpec{ID: id, Path: name, GroupRef: v1alpha1.Reference{Name: namespace}},
	}
}

func scopeOf(namespace, name, project string, restricted bool, allowed ...v1alpha1.Reference) *v1alpha1.JobTokenScope {
	s := &v1alpha1.JobTokenScope{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.JobTokenScopeSpec{ProjectRef: v1alpha1.Reference{Path: project}, InboundEnabled: ptr.To(restricted)},
	}
	for _, a := range allowed {
		s.Spec.Allowlist = append(s.Spec.Allowlist, v1alpha1.AllowlistEntry{ProjectRef: a})
	}
	return s
}

func TestScopes_decideAsDeclared(t *testing.T) {
	byName := func(name string) v1alpha1.Reference { return v1alpha1.Reference{Name: name} }
	byPath := func(path string) v1alpha1.Reference { return v1alpha1.Reference{Path: path} }
	byID := func(id int64) v1alpha1.Reference { return v1alpha1.Reference{ID: id} }
	tests := map[string]struct {
		declared []client.Object
		source   string
		want     Outcome
	}{
		"without a scope nobody is let in":                {nil, "acme/api", Refused},
		"without a scope the project itself is let in":    {nil, "acme/web", AsUser},
		"with an empty list nobody is let in":             {[]client.Object{scopeOf("acme", "s", "acme/web", true)}, "acme/api", Refused},
		"with an empty list the project itself is let in": {[]client.Object{scopeOf("acme", "s", "acme/web", true)}, "acme/web", AsUser},
		"an open scope lets everybody in":                 {[]client.Object{scopeOf("acme", "s", "acme/web", false)}, "bolt/tool", AsUser},
		"a list lets in by name":                          {[]client.Object{scopeOf("acme", "s", "acme/web", true, byName("api"))}, "acme/api", AsUser},
		"a list lets in by path":                          {[]client.Object{scopeOf("acme", "s", "acme/web", true, byPath("Bolt/Tool"))}, "bolt/tool", AsUser},
		"a list lets in by id":                            {[]client.Object{scopeOf("acme", "s", "acme/web", true, byID(20))}, "bolt/tool", AsUser},
		"a list lets in nobody else":                      {[]client.Object{scopeOf("acme", "s", "acme/web", true, byID(20), byName("api"))}, "bolt/other", Refused},
		"a name means a project of the same namespace":    {[]client.Object{scopeOf("acme", "s", "acme/web", true, byName("tool"))}, "bolt/tool", Refused},
		"a broken entry does not affect the others":       {[]client.Object{scopeOf("acme", "s", "acme/web", true, byID(99), byPath("no/where"), byID(20))}, "bolt/tool", AsUser},
		"a broken entry lets nobody in":                   {[]client.Object{scopeOf("acme", "s", "acme/web", true, byID(99), byPath("no/where"))}, "bolt/tool", Refused},
		"the scope of another project does not count":     {[]client.Object{scopeOf("acme", "s", "acme/api", false, byID(20))}, "bolt/tool", Refused},
		"a scope in another namespace does not count":     {[]client.Object{scopeOf("bolt", "s", "acme/web", false, byID(20))}, "bolt/tool", Refused},
		"the older of two counts, if it is narrow": {
			[]client.Object{scopeOf("acme", "a", "acme/web", true), scopeOf("acme", "b", "acme/web", false, byID(20))}, "bolt/tool", Refused,
		},
		"the older of two counts, if it is wide": {
			[]client.Object{scopeOf("acme", "b", "acme/web", true, byID(20)), scopeOf("acme", "a", "acme/web", true)}, "bolt/tool", AsUser,
		},
		"an id means the older project": {
			[]client.Object{project("bolt", "younger", 20), scopeOf("acme", "s", "acme/web", true, byID(20))}, "bolt/younger", Refused,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			world := catalogtest.New(t, group("acme"), group("bolt"), project("acme", "web", 10), project("acme", "api", 11), project("bolt", "tool", 20), project("bolt", "other", 21))
			world.Put(tt.declared...)
			cat := world.Catalog()
			find := func(path string) *v1alpha1.Project {
				p, err := cat.ProjectByPath(t.Context(), path)
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			target, err := cat.ProjectScope(t.Context(), find("acme/web"))
			if err != nil {
				t.Fatal(err)
			}
			for _, may := range []Rights{{User: true}, {}} {
				want := tt.want
				if !may.User {
					want = Refused
				}
				if got, err := NewScopes(cat).Decide(t.Context(), find(tt.source), target, may); err != nil || got != want {
					t.Errorf("%+v: got %d, %v; want %d", may, got, err, want)
				}
			}
		})
	}
}

// broken is a cache that fails for a kind.
type broken struct {
	client.Reader
	fails func(client.ObjectList) bool
}

func (b broken) List(ctx context.Context, l client.ObjectList, o ...client.ListOption) error {
	if b.fails(l) {
		return errors.New("the cache is broken")
	}
	return b.Reader.List(ctx, l, o...)
}

func TestScopes_refuseOnError(t *testing.T) {
	world := catalogtest.New(t, group("acme"), group("bolt"), project("acme", "web", 10), project("bolt", "tool", 20),
		scopeOf("acme", "s", "acme/web", true, v1alpha1.Reference{ID: 20}))
	var source, web v1alpha1.Project
	for p, key := range map[*v1alpha1.Project]client.ObjectKey{&source: {Namespace: "bolt", Name: "tool"}, &web: {Namespace: "acme", Name: "web"}} {
		if err := world.Reader().Get(t.Context(), key, p); err != nil {
			t.Fatal(err)
		}
	}
	target, err := world.Catalog().ProjectScope(t.Context(), &web)
	if err != nil {
		t.Fatal(err)
	}
	for name, fails := range map[string]func(client.ObjectList) bool{
		"of the scopes":   func(l client.ObjectList) bool { _, is := l.(*v1alpha1.JobTokenScopeList); return is },
		"of the projects": func(l client.ObjectList) bool { _, is := l.(*v1alpha1.ProjectList); return is },
	} {
		got, err := NewScopes(catalog.New(broken{world.Reader(), fails})).Decide(t.Context(), &source, target, Rights{User: true, Anybody: true})
		if err == nil || got != Refused {
			t.Errorf("%s: got %d, %v", name, got, err)
		}
	}
}
