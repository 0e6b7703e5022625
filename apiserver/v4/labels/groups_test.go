package labels_test

import (
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/labels"
)

// tree returns more groups and labels: the group below, which everybody sees, and the group hidden, both in the group sub.
func tree() []client.Object {
	return []client.Object{
		familytest.Group("acme", "below", 12, "sub", v1alpha1.VisibilityPublic), familytest.Group("acme", "hidden", 13, "sub", v1alpha1.VisibilityPrivate),
		familytest.Project("acme", "deep", 23, "below", v1alpha1.VisibilityPublic),
		declared("below", "below", 60, ofGroup("below")), declared("hidden", "hidden", 61, ofGroup("hidden")),
		declared("deep", "deep", 62, ofProject("deep")), declared("secret", "secret", 63, ofProject("secret")),
	}
}

func TestListGroupLabels_includesWhatIsAskedFor(t *testing.T) {
	f := newForge(t, tree()...)
	for query, want := range map[string]string{
		"":                               "legal urgent",
		"?include_ancestor_groups=false": "urgent",
		"?search=LEG":                    "legal",
		"?include_descendant_groups=true&include_ancestor_groups=false":                         "below urgent",
		"?only_group_labels=false":                                                              "bug docs legal urgent",
		"?only_group_labels=false&include_descendant_groups=true&include_ancestor_groups=false": "below bug deep docs urgent",
		"?per_page=1&page=2": "urgent",
	} {
		var got []string
		for _, l := range familytest.Decode[[]GroupLabel](t, f.As("otto", "GET /groups/11/labels"+query, "")) {
			got = append(got, l.Name)
		}
		if all := strings.Join(got, " "); all != want {
			t.Errorf("%s: got %s, want %s", query, all, want)
		}
	}
	if got := f.As("mary", "GET /groups/11/labels?include_descendant_groups=true&only_group_labels=false&search=e", "").Body; !strings.Contains(got, "hidden") || !strings.Contains(got, "secret") {
		t.Errorf("a member sees %s", got)
	}
}

func TestGroupLabel_isWrittenAndShown(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	made := f.As("rita", "POST /groups/acme%2Fsub/labels", `{"name":" wont fix ","color":"red","description":"*No*","priority":3}`)
	id := strconv.FormatInt(familytest.Decode[GroupLabel](t, made).ID, 10)
	g.Expect(made.Code).To(Equal(201))
	g.Expect(made.Body).To(MatchJSON(`{"id":` + id + `,"name":"wont fix","description":"*No*","description_html":"<em>No</em>","text_color":"#FFFFFF",
		"color":"#FF0000","open_issues_count":0,"closed_issues_count":0,"open_merge_requests_count":0,"subscribed":false}`))
	inProject := familytest.Decode[Label](t, f.As("rita", "GET /projects/20/labels/"+id, ""))
	g.Expect(inProject.IsProjectLabel).To(BeFalse())
	g.Expect(inProject.Priority).To(BeNil())
	var stored v1alpha1.LabelList
	g.Expect(f.Client.List(t.Context(), &stored)).To(Succeed())
	g.Expect(stored.Items).To(ContainElement(And(
		HaveField("Spec.Title", "wont fix"), HaveField("Spec.GroupRef", HaveValue(Equal(f.Named(&v1alpha1.Group{}, "acme/sub")))),
		HaveField("OwnerReferences", HaveExactElements(HaveField("Name", "sub"))))))

	g.Expect(f.As("rita", "POST /groups/11/labels/wont%20fix/subscribe", "").Code).To(Equal(201))
	g.Expect(f.As("rita", "POST /groups/11/labels/"+id+"/subscribe", "").String()).To(Equal("304"))
	g.Expect(familytest.Decode[GroupLabel](t, f.As("rita", "GET /groups/11/labels/"+id, "")).Subscribed).To(BeTrue())
	g.Expect(f.As("rita", "POST /groups/11/labels/"+id+"/unsubscribe", "").Code).To(Equal(201))

	changed := familytest.Decode[GroupLabel](t, f.As("rita", "PUT /groups/11/labels/"+id, `{"new_name":"wontfix","color":"#000"}`))
	g.Expect([]string{changed.Name, changed.Color, changed.DescriptionHTML}).To(Equal([]string{"wontfix", "#000", "<em>No</em>"}))
	again := familytest.Decode[GroupLabel](t, f.As("rita", "PUT /groups/11/labels", `{"name":"wontfix","description":null}`))
	g.Expect(again.Description).To(BeNil())
	g.Expect(f.As("rita", "DELETE /groups/11/labels?name=wontfix", "").String()).To(Equal("204"))
	g.Expect(f.As("rita", "GET /groups/11/labels/"+id, "").String()).To(Equal(`404 {"message":"404 Label Not Found"}`))
}

func TestGroupLabel_takesItsPriorityAlongInEachProject(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	g.Expect(f.As("mary", "PUT /groups/10/labels/legal", `{"new_name":"lawful"}`).Code).To(Equal(200))
	renamed := familytest.Decode[Label](t, f.As("mary", "GET /projects/20/labels/lawful", ""))
	g.Expect(renamed.Priority).To(HaveValue(BeEquivalentTo(7)))
	g.Expect(f.As("mary", "DELETE /groups/10/labels/lawful", "").String()).To(Equal("204"))
	p := &v1alpha1.Project{}
	g.Expect(f.Client.Get(t.Context(), client.ObjectKey{Namespace: "acme", Name: "web"}, p)).To(Succeed())
	g.Expect(p.Spec.LabelPriorities).To(HaveExactElements(HaveField("Title", "bug")))
}

func TestInvalidGroupRequests_areRefusedWithAReason(t *testing.T) {
	for _, tt := range []struct{ request, body, want string }{
		{"POST /groups/11/labels", ``, `400 {"error":"name is missing, color is missing"}`},
		{"POST /groups/11/labels", `{"name":"legal","color":"red"}`, `409 {"message":"Label already exists"}`},
		{"POST /groups/11/labels", `{"name":"urgent","color":"red"}`, `409 {"message":"Label already exists"}`},
		{"POST /groups/11/labels", `{"name":"a,b","color":"none"}`, `400 {"message":{"color":["must be a valid color code"],"title":["is invalid"]}}`},
		{"PUT /groups/11/labels/urgent", `{"priority":1}`, `400 {"error":"new_name, color, description are missing, at least one parameter must be provided"}`},
		{"PUT /groups/11/labels/urgent", `{"new_name":"legal"}`, `400 {"message":{"title":["has already been taken"]}}`},
		{"PUT /groups/11/labels/legal", `{"color":"red"}`, `404 {"message":"404 Label Not Found"}`},
		{"PUT /groups/11/labels", `{"color":"red"}`, `400 {"error":"label_id, name are missing, exactly one parameter must be provided"}`},
		{"DELETE /groups/11/labels/33", ``, `404 {"message":"404 Label Not Found"}`},
		{"DELETE /groups/11/labels/bug", ``, `404 {"message":"404 Label Not Found"}`},
		{"GET /groups/11/labels/legal?include_ancestor_groups=false", ``, `404 {"message":"404 Label Not Found"}`},
		{"GET /groups/11/labels/bug", ``, `404 {"message":"404 Label Not Found"}`},
		{"GET /groups/99/labels", ``, `404 {"message":"404 Group Not Found"}`},
	} {
		if got := newForge(t).As("mary", tt.request, tt.body).String(); got != tt.want {
			t.Errorf("%s %s\ngot  %s\nwant %s", tt.request, tt.body, got, tt.want)
		}
	}
}

func TestCreateGroupLabel_leavesOlderProjectLabels(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	g.Expect(f.As("rita", "POST /groups/11/labels", `{"name":"bug","color":"blue"}`).Code).To(Equal(201))
	g.Expect(familytest.Decode[Label](t, f.As("rita", "GET /projects/20/labels/bug", "")).ID).To(BeEquivalentTo(30))
	g.Expect(familytest.Decode[Label](t, f.As("mary", "GET /projects/21/labels/bug", "")).Color).To(Equal("#0000FF"))
}
