package jobtokenscopes_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/jobtokenscopes"
)

func byName(name string) v1alpha1.Reference { return v1alpha1.Reference{Name: name} }
func byPath(path string) v1alpha1.Reference { return v1alpha1.Reference{Path: path} }
func byID(id int64) v1alpha1.Reference      { return v1alpha1.Reference{ID: id} }

func declared(of string, allowed ...v1alpha1.Reference) *v1alpha1.JobTokenScope {
	s := &v1alpha1.JobTokenScope{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "scope-of-" + of},
		Spec:       v1alpha1.JobTokenScopeSpec{ProjectRef: byName(of), InboundEnabled: ptr.To(true)},
	}
	for _, a := range allowed {
		s.Spec.Allowlist = append(s.Spec.Allowlist, v1alpha1.AllowlistEntry{ProjectRef: a})
	}
	return s
}

// newForge returns a forge with the public projects acme/web, acme/api and bolt/tool, and the private projects acme/secret and
// bolt/hidden. Mary sees all of them except bolt/hidden. Only web has a scope.
func newForge(t *testing.T, more ...client.Object) *familytest.Forge {
	t.Helper()
	f := familytest.New(t, append([]client.Object{
		familytest.User("root", 1, familytest.Admin), familytest.User("mary", 2), familytest.User("dora", 3), familytest.User("otto", 4),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic), familytest.Group("bolt", "bolt", 11, "", v1alpha1.VisibilityPublic),
		familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic), familytest.Project("acme", "api", 21, "acme", v1alpha1.VisibilityPublic),
		familytest.Project("acme", "secret", 22, "acme", v1alpha1.VisibilityPrivate),
		familytest.Project("bolt", "tool", 30, "bolt", v1alpha1.VisibilityPublic), familytest.Project("bolt", "hidden", 31, "bolt", v1alpha1.VisibilityPrivate),
		familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleMaintainer), familytest.InGroup("acme", "acme", "dora", v1alpha1.RoleDeveloper),
		declared("web", byName("secret"), byPath("bolt/tool"), byID(31), byID(99), byPath("no/where"), byName("web"), byID(30)),
	}, more...)...)
	return f.Serve(New(f.Kit).Table())
}

// listed returns the ids in the allowlist of a project.
func listed(t *testing.T, f *familytest.Forge, id int64) (ids []int64) {
	t.Helper()
	for _, p := range familytest.Decode[[]entity.ProjectSummary](t, f.As("mary", fmt.Sprintf("GET /projects/%d/job_token_scope/allowlist", id), "")) {
		ids = append(ids, p.ID)
	}
	return ids
}

func TestAllowlist_showsEachResolvedProjectOnce(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	g.Expect(listed(t, f, 20)).To(Equal([]int64{22, 30, 31}))
	g.Expect(listed(t, f, 21)).To(BeEmpty())
	page := f.As("mary", "GET /projects/20/job_token_scope/allowlist?per_page=2&page=2", "")
	g.Expect(page.Header.Get("X-Total")).To(Equal("3"))
	// Mary does not see this project, so the answer has only the declared id.
	g.Expect(page.Body).To(MatchJSON(`[{"id":31,"description":"","name":"","name_with_namespace":"","path":"","path_with_namespace":"","created_at":null,
		"default_branch":"","tag_list":[],"topics":[],"ssh_url_to_repo":"","http_url_to_repo":"","web_url":"","avatar_url":null,"star_count":0,
		"last_activity_at":null,"namespace":{"id":0,"name":"","path":"","kind":"","full_path":"","parent_id":null,"avatar_url":null,"web_url":""}}]`))
	g.Expect(f.As("root", "GET /projects/20/job_token_scope/allowlist?per_page=2&page=2", "").Body).To(ContainSubstring(`"path_with_namespace":"bolt/hidden"`))
	first := familytest.Decode[[]map[string]any](t, f.As("mary", "GET /projects/20/job_token_scope/allowlist", ""))[0]
	g.Expect(first).To(And(HaveKeyWithValue("path_with_namespace", "acme/secret"), HaveKeyWithValue("name_with_namespace", "acme / secret"),
		HaveKeyWithValue("default_branch", "main"), HaveKeyWithValue("web_url", familytest.WebURL+"/acme/secret"),
		HaveKeyWithValue("http_url_to_repo", familytest.WebURL+"/acme/secret.git"), HaveKeyWithValue("tag_list", BeEmpty()),
		HaveKeyWithValue("namespace", HaveKeyWithValue("full_path", "acme")), Not(HaveKey("permissions")), Not(HaveKey("visibility"))))
}

func TestScope_isCreatedByTheFirstChange(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	get := func() string { return f.As("mary", "GET /projects/21/job_token_scope", "").String() }
	g.Expect(get()).To(Equal(`200 {"inbound_enabled":true,"outbound_enabled":false}`))
	g.Expect(scopes(t, f, "api")).To(BeEmpty())
	g.Expect(f.As("mary", "PATCH /projects/21/job_token_scope", `{"enabled":false}`).String()).To(Equal("204"))
	g.Expect(get()).To(Equal(`200 {"inbound_enabled":false,"outbound_enabled":false}`))
	g.Expect(f.As("mary", "POST /projects/21/job_token_scope/allowlist", `{"target_project_id":30}`).String()).
		To(Equal(`201 {"source_project_id":21,"target_project_id":30}`))
	made := scopes(t, f, "api")
	g.Expect(made).To(HaveLen(1))
	g.Expect(made[0].Namespace).To(Equal("acme"))
	g.Expect(made[0].Spec.InboundEnabled).To(HaveValue(BeFalse()))
	g.Expect(made[0].Spec.Allowlist).To(Equal([]v1alpha1.AllowlistEntry{{ProjectRef: f.Refer(&v1alpha1.Project{}, "bolt/tool")}}))

	var writes []string
	f.Before = func(verb string, _ client.Object) error { writes = append(writes, verb); return nil }
	g.Expect(f.As("mary", "PATCH /projects/21/job_token_scope", `{"enabled":false}`).String()).To(Equal("204"))
	g.Expect(writes).To(BeEmpty(), "it is so already")
}

func TestAllowlist_isCreatedByItsFirstEntry(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	g.Expect(f.As("mary", "POST /projects/acme%2Fapi/job_token_scope/allowlist", `{"target_project_id":20}`).Code).To(Equal(201))
	g.Expect(f.As("mary", "GET /projects/21/job_token_scope", "").Body).To(ContainSubstring(`"inbound_enabled":true`))
	g.Expect(listed(t, f, 21)).To(Equal([]int64{20}))
}

func TestAllowlist_keepsDeclaredEntries(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	g.Expect(f.As("mary", "POST /projects/20/job_token_scope/allowlist", `{"target_project_id":21}`).Code).To(Equal(201))
	g.Expect(f.As("mary", "DELETE /projects/20/job_token_scope/allowlist/30", "").String()).To(Equal("204"))
	g.Expect(allowlist(t, f, "web")).To(Equal([]v1alpha1.Reference{byName("secret"), byID(31), byID(99), byPath("no/where"), byName("web"), f.Refer(&v1alpha1.Project{}, "acme/api")}), "both ways to name a project went")
	g.Expect(listed(t, f, 20)).To(Equal([]int64{22, 31, 21}))
}

func TestDeleteEntry_removesUnresolvedEntriesByID(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	g.Expect(f.As("mary", "DELETE /projects/20/job_token_scope/allowlist/99", "").String()).To(Equal("204"))
	g.Expect(allowlist(t, f, "web")).To(Equal([]v1alpha1.Reference{
		byName("secret"), byPath("bolt/tool"), byID(31), byPath("no/where"), byName("web"), byID(30),
	}))
	g.Expect(f.As("mary", "DELETE /projects/20/job_token_scope/allowlist/99", "").Code).To(Equal(404))
}

func TestFullAllowlist_dropsEntriesOfDeletedProjects(t *testing.T) {
	g := NewWithT(t)
	full := declared("api", byPath("still/to-come"), byName("secret"))
	for id := range int64(98) {
		full.Spec.Allowlist = append(full.Spec.Allowlist, v1alpha1.AllowlistEntry{ProjectRef: byID(id + 1000)})
	}
	f := newForge(t, full)
	g.Expect(f.As("mary", "POST /projects/21/job_token_scope/allowlist", `{"target_project_id":30}`).Code).To(Equal(201))
	g.Expect(allowlist(t, f, "api")).To(Equal([]v1alpha1.Reference{byPath("still/to-come"), byName("secret"), f.Refer(&v1alpha1.Project{}, "bolt/tool")}))
}

func TestFullGroupAllowlist_dropsEntriesOfDeletedGroups(t *testing.T) {
	g := NewWithT(t)
	full := declared("api")
	for id := range int64(99) {
		full.Spec.GroupAllowlist = append(full.Spec.GroupAllowlist, v1alpha1.GroupAllowlistEntry{GroupRef: byID(id + 1000)})
	}
	full.Spec.GroupAllowlist = append(full.Spec.GroupAllowlist, v1alpha1.GroupAllowlistEntry{GroupRef: byPath("still/to-come")})
	f := newForge(t, full)
	g.Expect(f.As("mary", "POST /projects/21/job_token_scope/groups_allowlist", `{"target_group_id":11}`).Code).To(Equal(201))
	g.Expect(scopes(t, f, "api")[0].Spec.GroupAllowlist).To(Equal([]v1alpha1.GroupAllowlistEntry{
		{GroupRef: byPath("still/to-come")}, {GroupRef: f.Refer(&v1alpha1.Group{}, "bolt/bolt")},
	}))
}

func TestGroups_areLetInShownAndRemoved(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t, familytest.Group("bolt", "closed", 12, "", v1alpha1.VisibilityPrivate))
	const list = "/projects/21/job_token_scope/groups_allowlist"
	g.Expect(f.As("mary", "GET "+list, "").Body).To(MatchJSON(`[]`))
	g.Expect(f.As("mary", "POST "+list, `{"target_group_id":11}`).String()).To(Equal(`201 {"source_project_id":21,"target_group_id":11}`))
	g.Expect(scopes(t, f, "api")[0].Spec.GroupAllowlist).To(Equal([]v1alpha1.GroupAllowlistEntry{{GroupRef: f.Refer(&v1alpha1.Group{}, "bolt/bolt")}}))
	g.Expect(f.As("root", "POST "+list, `{"target_group_id":12}`).Code).To(Equal(201))
	bolt := `{"id":11,"name":"bolt","full_path":"bolt","web_url":"` + familytest.WebURL + `/groups/bolt"}`
	g.Expect(f.As("mary", "GET "+list, "").Body).To(MatchJSON(`[`+bolt+`,{"id":12,"name":"","full_path":"","web_url":""}]`), "Mary does not see the other group")
	for request, want := range map[string]string{
		`POST {"target_group_id":11}`: `400 {"message":"400 Bad request - This group is already in the job token allowlist."}`,
		`POST {"target_group_id":99}`: `404 {"message":"404 target_group_id not found Not Found"}`,
		`POST {"target_group_id":12}`: `400 {"message":"400 Bad request - The target_group that you are attempting to access does not exist or you don't have permission to perform this action"}`,
		`POST {}`:                     `400 {"error":"target_group_id is missing"}`,
		`DELETE /10`:                  `400 {"message":"400 Bad request - Target group is not in the job token scope"}`,
		`DELETE /99`:                  `404 {"message":"404 Group Not Found"}`,
	} {
		verb, rest, _ := strings.Cut(request, " ")
		at, body := list, rest
		if verb == "DELETE" {
			at, body = list+rest, ""
		}
		g.Expect(f.As("mary", verb+" "+at, body).String()).To(Equal(want), request)
	}
	g.Expect(f.As("mary", "DELETE "+list+"/11", "").String()).To(Equal("204"))
	g.Expect(f.As("mary", "DELETE "+list+"/12", "").String()).To(Equal("204"), "what they can list they can remove")
	g.Expect(f.As("mary", "GET "+list, "").Body).To(MatchJSON(`[]`))
}

// allowlist returns the declared entries of a project.
func allowlist(t *testing.T, f *familytest.Forge, name string) (all []v1alpha1.Reference) {
	t.Helper()
	for _, e := range scopes(t, f, name)[0].Spec.Allowlist {
		all = append(all, e.ProjectRef)
	}
	return all
}

func TestInvalidRequests_areRefusedWithAReason(t *testing.T) {
	const bad = `400 {"message":"400 Bad request - `
	full := declared("api")
	for i := range 100 {
		full.Spec.Allowlist = append(full.Spec.Allowlist, v1alpha1.AllowlistEntry{ProjectRef: byPath(fmt.Sprintf("still/to-come-%d", i))})
	}
	tests := []struct{ request, body, want string }{
		{"PATCH /projects/20/job_token_scope", `{}`, `400 {"error":"enabled is missing"}`},
		{"PATCH /projects/20/job_token_scope", `{"enabled":null}`, `400 {"error":"enabled is empty"}`},
		{"PATCH /projects/20/job_token_scope", `{"enabled":123}`, `400 {"error":"enabled is invalid"}`},
		{"POST /projects/20/job_token_scope/allowlist", `{}`, `400 {"error":"target_project_id is missing"}`},
		{"POST /projects/20/job_token_scope/allowlist", `{"target_project_id":"acme/api"}`, `400 {"error":"target_project_id is invalid"}`},
		{"POST /projects/20/job_token_scope/allowlist", `{"target_project_id":99}`, `404 {"message":"404 target_project_id not found Not Found"}`},
		{"POST /projects/20/job_token_scope/allowlist", `{"target_project_id":-1}`, `404 {"message":"404 target_project_id not found Not Found"}`},
		{"POST /projects/22/job_token_scope/allowlist", `{"target_project_id":31}`,
			bad + `The target_project that you are attempting to access does not exist or you don't have permission to perform this action"}`},
		{"POST /projects/20/job_token_scope/allowlist", `{"target_project_id":20}`, bad + `Target project can't be the same as the source project"}`},
		{"POST /projects/20/job_token_scope/allowlist", `{"target_project_id":22}`, bad + `Target project is already in the job token scope"}`},
		{"POST /projects/20/job_token_scope/allowlist", `{"target_project_id":30}`, bad + `Target project is already in the job token scope"}`},
		{"POST /projects/21/job_token_scope/allowlist", `{"target_project_id":30}`, bad + `The job token scope has 100 projects, and cannot have more"}`},
		{"DELETE /projects/20/job_token_scope/allowlist/x", ``, `400 {"error":"target_project_id is invalid"}`},
		{"DELETE /projects/20/job_token_scope/allowlist/98", ``, `404 {"message":"404 Project Not Found"}`},
		{"DELETE /projects/20/job_token_scope/allowlist/0", ``, `404 {"message":"404 Project Not Found"}`},
		{"DELETE /projects/20/job_token_scope/allowlist/20", ``, bad + `Target project is not in the job token scope"}`},
		{"DELETE /projects/20/job_token_scope/allowlist/21", ``, bad + `Target project is not in the job token scope"}`},
		{"DELETE /projects/22/job_token_scope/allowlist/21", ``, bad + `Target project is not in the job token scope"}`},
		// A project that Mary does not see is not found, whether it is in the allowlist or not.
		{"DELETE /projects/21/job_token_scope/allowlist/31", ``, `404 {"message":"404 Project Not Found"}`},
		{"DELETE /projects/22/job_token_scope/allowlist/31", ``, `404 {"message":"404 Project Not Found"}`},
		{"GET /projects/99/job_token_scope", ``, `404 {"message":"404 Project Not Found"}`},
	}
	for _, tt := range tests {
		t.Run(tt.request+" "+tt.body, func(t *testing.T) {
			f := newForge(t, full.DeepCopy())
			f.Before = func(verb string, o client.Object) error {
				t.Errorf("%s %T %s", verb, o, o.GetName())
				return nil
			}
			if got := f.As("mary", tt.request, tt.body).String(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestAddEntry_usesAScopeCreatedMeanwhile(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	once := true
	f.Before = func(verb string, o client.Object) error {
		if s, ok := o.(*v1alpha1.JobTokenScope); ok && verb == "create" && once {
			once = false
			other := s.DeepCopy()
			other.Spec.Allowlist = []v1alpha1.AllowlistEntry{{ProjectRef: byName("secret")}}
			g.Expect(f.Client.Create(t.Context(), other)).To(Succeed())
			return apierrors.NewAlreadyExists(schema.GroupResource{}, s.Name)
		}
		return nil
	}
	g.Expect(f.As("mary", "POST /projects/21/job_token_scope/allowlist", `{"target_project_id":30}`).Code).To(Equal(201))
	g.Expect(scopes(t, f, "api")).To(HaveLen(1))
	g.Expect(listed(t, f, 21)).To(Equal([]int64{22, 30}))
}

func TestUpdateScope_conflictsWhenItsNameIsTaken(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	g.Expect(f.As("mary", "PATCH /projects/21/job_token_scope", `{"enabled":true}`).Code).To(Equal(204))
	taken := scopes(t, f, "api")[0]
	g.Expect(f.Client.Delete(t.Context(), &taken)).To(Succeed())
	foreign := declared("web")
	foreign.Name = taken.Name
	foreign.UID = "another"
	g.Expect(f.Client.Create(t.Context(), foreign)).To(Succeed())
	g.Expect(f.As("mary", "PATCH /projects/21/job_token_scope", `{"enabled":false}`).String()).To(Equal(`409 {"message":"409 Conflict"}`))
	g.Expect(scopes(t, f, "api")).To(BeEmpty())
}

func TestRESTWrites_canBeRefusedByAProject(t *testing.T) {
	for _, more := range [][]client.Object{{declared("fixed", byID(30))}, nil} {
		p := familytest.Project("acme", "fixed", 23, "acme", v1alpha1.VisibilityPublic)
		p.Spec.RESTWrites = v1alpha1.RESTWritesRefuse
		f := newForge(t, append(more, p)...)
		f.Before = func(verb string, o client.Object) error { return errors.New(verb + " " + o.GetName()) }
		requests := map[string]string{
			"PATCH /projects/23/job_token_scope":          `{"enabled":false}`,
			"POST /projects/23/job_token_scope/allowlist": `{"target_project_id":21}`,
		}
		if more != nil {
			requests["DELETE /projects/23/job_token_scope/allowlist/30"] = ""
		}
		if got := f.As("mary", "DELETE /projects/23/job_token_scope/allowlist/31", ""); got.Code != 404 {
			t.Errorf("the removal of a project that she is not to know of: got %s", got)
		}
		for request, body := range requests {
			if got := f.As("mary", request, body); got.Code != 403 {
				t.Errorf("%s: got %s", request, got)
			}
		}
	}
}

// scopes returns the scopes that name a project.
func scopes(t *testing.T, f *familytest.Forge, name string) (all []v1alpha1.JobTokenScope) {
	t.Helper()
	var l v1alpha1.JobTokenScopeList
	if err := f.Client.List(t.Context(), &l); err != nil {
		t.Fatal(err)
	}
	for _, s := range l.Items {
		if s.Spec.ProjectRef.Name == name {
			all = append(all, s)
		}
	}
	return all
}

func TestProjectWithoutPlace_isNotFound(t *testing.T) {
	g := NewWithT(t)
	// The group above does not admit groups of this namespace.
	astray := familytest.Group("bolt", "astray", 12, "", v1alpha1.VisibilityPublic)
	astray.Spec.ParentRef = &v1alpha1.Reference{Path: "acme"}
	f := newForge(t, astray, familytest.Project("bolt", "lost", 40, "astray", v1alpha1.VisibilityPublic), declared("api", byID(40)))
	g.Expect(f.As("mary", "POST /projects/20/job_token_scope/allowlist", `{"target_project_id":40}`).String()).
		To(Equal(`404 {"message":"404 target_project_id not found Not Found"}`))
	g.Expect(f.As("mary", "DELETE /projects/20/job_token_scope/allowlist/40", "").String()).To(Equal(`404 {"message":"404 Project Not Found"}`))
	g.Expect(listed(t, f, 21)).To(BeEmpty())
}

func TestEntry_doesNotApplyToARecreatedProject(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	g.Expect(f.As("mary", "POST /projects/21/job_token_scope/allowlist", `{"target_project_id":30}`).Code).To(Equal(201))
	g.Expect(listed(t, f, 21)).To(Equal([]int64{30}))
	f.Recreate(&v1alpha1.Project{}, "bolt/tool")
	g.Expect(listed(t, f, 21)).To(BeEmpty())
	g.Expect(f.As("mary", "POST /projects/21/job_token_scope/allowlist", `{"target_project_id":30}`).Code).To(Equal(201))
	g.Expect(listed(t, f, 21)).To(Equal([]int64{30}))
	g.Expect(f.As("mary", "DELETE /projects/21/job_token_scope/allowlist/30", "").Code).To(Equal(204))
	g.Expect(allowlist(t, f, "api")).To(BeEmpty(), "the entry of the former one goes as well")
}
