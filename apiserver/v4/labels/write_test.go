package labels_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/labels"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/epic"
)

func TestInvalidRequests_areRefusedWithAReason(t *testing.T) {
	const (
		notFound = `404 {"message":"404 Label Not Found"}`
		none     = `new_name, color, description, priority are missing, at least one parameter must be provided`
		neither  = `label_id, name are missing, exactly one parameter must be provided`
		both     = `400 {"error":"label_id, name are mutually exclusive"}`
	)
	long := strings.Repeat("ä", 256)
	tests := []struct{ request, body, want string }{
		{"POST /projects/20/labels", `{}`, `400 {"error":"name is missing, color is missing"}`},
		{"POST /projects/20/labels", `{"name":"x"}`, `400 {"error":"color is missing"}`},
		{"POST /projects/20/labels", `{"color":"red"}`, `400 {"error":"name is missing"}`},
		{"POST /projects/20/labels", `{"name":"bug","color":"red"}`, `409 {"message":"Label already exists"}`},
		{"POST /projects/20/labels", `{"name":" bug ","color":"red"}`, `409 {"message":"Label already exists"}`},
		{"POST /projects/20/labels", `{"name":"urgent","color":"red"}`, `409 {"message":"Label already exists"}`},
		{"POST /projects/20/labels", `{"name":"legal","color":"nothing"}`, `409 {"message":"Label already exists"}`},
		{"POST /projects/20/labels", `{"name":"x","color":"nothing"}`, `400 {"message":{"color":["must be a valid color code"]}}`},
		{"POST /projects/20/labels", `{"name":"x","color":"#abcd"}`, `400 {"message":{"color":["must be a valid color code"]}}`},
		{"POST /projects/20/labels", `{"name":",","color":"red"}`, `400 {"message":{"title":["is invalid"]}}`},
		{"POST /projects/20/labels", `{"name":" ","color":""}`, `400 {"message":{"color":["must be a valid color code"],"title":["can't be blank","is invalid"]}}`},
		{"POST /projects/20/labels", `{"name":"` + long + `","color":"red"}`, `400 {"message":{"title":["is too long (maximum is 255 characters)"]}}`},
		{"POST /projects/20/labels", `{"name":"x","color":"red","description":"` + strings.Repeat("a", 4097) + `"}`, `400 {"message":{"description":["is too long (maximum is 4096 characters)"]}}`},
		{"POST /projects/20/labels", `{"name":"x","color":"red","priority":"high"}`, `400 {"error":"priority is invalid"}`},
		{"POST /projects/20/labels", `{"name":"x","color":"red","priority":1.5}`, `400 {"error":"priority is invalid"}`},
		{"POST /projects/20/labels", `{"name":"x","color":"red","priority":3000000000}`, `400 {"error":"priority is invalid"}`},
		{"POST /projects/20/labels", `{"name":"x","color":"red","priority":-1}`, `400 {"message":{"priority":["must be greater than or equal to 0"]}}`},
		{"PUT /projects/20/labels/bug", `{}`, `400 {"error":"` + none + `"}`},
		{"PUT /projects/20/labels/bug", `{"new_name":"docs"}`, `400 {"message":{"title":["has already been taken"]}}`},
		{"PUT /projects/20/labels/bug", `{"new_name":"legal"}`, `400 {"message":{"title":["has already been taken"]}}`},
		{"PUT /projects/20/labels/bug", `{"new_name":"a,b","color":"x"}`, `400 {"message":{"color":["must be a valid color code"],"title":["is invalid"]}}`},
		{"PUT /projects/20/labels/bug", `{"new_name":null}`, `400 {"message":{"title":["can't be blank","is invalid"]}}`},
		{"PUT /projects/20/labels/bug", `{"priority":"x"}`, `400 {"error":"priority is invalid"}`},
		{"PUT /projects/20/labels/urgent", `{"priority":-1}`, `400 {"message":{"priority":["must be greater than or equal to 0"]}}`},
		{"PUT /projects/20/labels/none", `{"color":"red"}`, notFound},
		{"PUT /projects/20/labels", `{"color":"red"}`, `400 {"error":"` + neither + `"}`},
		{"PUT /projects/20/labels", `{}`, `400 {"error":"` + neither + ", " + none + `"}`},
		{"PUT /projects/20/labels", `{"name":"bug"}`, `400 {"error":"` + none + `"}`},
		{"PUT /projects/20/labels", `{"name":"bug","label_id":30,"color":"red"}`, both},
		{"PUT /projects/20/labels", `{"label_id":"bug","color":"red"}`, `400 {"error":"label_id is invalid"}`},
		{"PUT /projects/20/labels", `{"label_id":99,"color":"red"}`, notFound},
		{"DELETE /projects/20/labels/none", ``, notFound},
		{"DELETE /projects/20/labels", ``, `400 {"error":"` + neither + `"}`},
		{"DELETE /projects/20/labels?name=bug&label_id=30", ``, both},
		{"DELETE /projects/20/labels?name=none", ``, notFound},
		{"PUT /projects/20/labels/none/promote", ``, notFound},
		{"PUT /projects/20/labels/urgent/promote", ``, `400 {"message":"Failed to promote project label to group label"}`},
		{"PUT /projects/20/labels/promote", ``, `400 {"error":"name is missing"}`},
		{"PUT /projects/20/labels/promote", `{"name":"none"}`, notFound},
		{"POST /projects/20/labels/none/subscribe", ``, notFound},
		{"POST /projects/20/labels/none/unsubscribe", ``, notFound},
		{"GET /projects/99/labels", ``, `404 {"message":"404 Project Not Found"}`},
	}
	for _, tt := range tests {
		t.Run(tt.request+" "+fmt.Sprintf("%.60s", tt.body), func(t *testing.T) {
			f := newForge(t)
			f.Before = func(verb string, o client.Object) error {
				t.Errorf("%s of %T", verb, o)
				return nil
			}
			if got := f.As("mary", tt.request, tt.body); got.String() != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestLabel_isStoredAsAnObject(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	got := f.As("rita", "POST /projects/acme%2Fsub%2Fweb/labels", `{"name":" Größe: XL ","color":" DarkSlateGray","description":"_d_","priority":0}`)
	g.Expect(got.Code).To(Equal(201), got.String())
	made := familytest.Decode[Label](t, got)
	g.Expect(made.Name).To(Equal("Größe: XL"))
	g.Expect(made.Color).To(Equal("#2F4F4F"))
	g.Expect(made.DescriptionHTML).To(Equal("<em>d</em>"))
	for name, spec := range f.there(t) {
		if spec.ID == made.ID {
			g.Expect(name).To(HavePrefix("project-web-gr--e--xl-"))
			g.Expect(spec).To(Equal(v1alpha1.LabelSpec{
				ID: made.ID, ProjectRef: ptr.To(f.Named(&v1alpha1.Project{}, "acme/web")), Title: "Größe: XL", Color: "#2F4F4F", Description: "_d_", Priority: ptr.To[int32](0),
			}))
		}
	}
	key := fmt.Sprintf("PUT /projects/20/labels/%d", made.ID)
	changed := familytest.Decode[Label](t, f.As("rita", key, `{"new_name":"size","color":"#AbC","description":null,"priority":null}`))
	g.Expect(changed.Name).To(Equal("size"))
	g.Expect(changed.Color).To(Equal("#AbC"))
	g.Expect(changed.Description).To(BeNil())
	g.Expect(changed.Priority).To(BeNil())
	kept := familytest.Decode[Label](t, f.As("rita", key, `{"priority":3}`))
	g.Expect([]any{kept.Name, kept.Color, *kept.Priority}).To(Equal([]any{"size", "#AbC", int32(3)}))
	kept = familytest.Decode[Label](t, f.As("rita", "PUT /projects/20/labels", fmt.Sprintf(`{"label_id":%d,"color":"red"}`, made.ID)))
	g.Expect(*kept.Priority).To(BeEquivalentTo(3), "what is not sent stays")
	g.Expect(familytest.Decode[Label](t, f.As("rita", "GET /projects/20/labels/size", ""))).To(Equal(kept))

	f.subscribe(t, made.ID, 2)
	g.Expect(f.As("rita", "DELETE /projects/20/labels/size", "").String()).To(Equal("204"))
	g.Expect(f.subscribers).To(BeEmpty())
	g.Expect(f.As("rita", "GET /projects/20/labels/size", "").Code).To(Equal(404))
}

// meanwhile changes the color of a label just before the first patch of an object of the same kind as at.
func meanwhile(t *testing.T, f forge, at client.Object, name string) {
	f.Before = func(verb string, o client.Object) error {
		if verb != "patch" || fmt.Sprintf("%T", o) != fmt.Sprintf("%T", at) {
			return nil
		}
		f.Before = nil
		l := &v1alpha1.Label{}
		if err := f.Client.Get(t.Context(), client.ObjectKey{Namespace: "acme", Name: name}, l); err != nil {
			return err
		}
		l.Spec.Color = "#ABCDEF"
		return f.Client.Update(t.Context(), l)
	}
}

func TestUpdateLabel_keepsConcurrentChanges(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	meanwhile(t, f, &v1alpha1.Label{}, "bug")
	got := f.As("mary", "PUT /projects/20/labels/bug", `{"description":"mine","priority":2}`)
	g.Expect(got.Code).To(Equal(200), got.String())
	now := f.there(t)["bug"]
	g.Expect([]any{now.Color, now.Description, *now.Priority}).To(Equal([]any{"#ABCDEF", "mine", int32(2)}))
}

func TestSetPriority_leavesTheGroupLabelAlone(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	meanwhile(t, f, &v1alpha1.Project{}, "urgent")
	got := f.As("pete", "PUT /projects/20/labels/urgent", `{"priority":2}`)
	g.Expect(got.Code).To(Equal(200), got.String())
	g.Expect(f.there(t)["urgent"].Color).To(Equal("#ABCDEF"))
}

func TestCreateLabel_reusesTheTitleOfARenamedLabel(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	made := func() int64 {
		t.Helper()
		got := f.As("mary", "POST /projects/20/labels", `{"name":"again","color":"red"}`)
		g.Expect(got.Code).To(Equal(201), got.String())
		return familytest.Decode[Label](t, got).ID
	}
	for i := range 20 {
		id := made()
		g.Expect(f.As("mary", "POST /projects/20/labels", `{"name":"again","color":"red"}`).Code).To(Equal(409))
		got := f.As("mary", fmt.Sprintf("PUT /projects/20/labels/%d", id), fmt.Sprintf(`{"new_name":"former %d"}`, i))
		g.Expect(got.Code).To(Equal(200), got.String())
	}
	made()
	// Another request was faster, and the cache does not show its label yet.
	f.Before = func(verb string, o client.Object) error {
		if verb == "create" {
			f.Before = nil
			other := o.DeepCopyObject().(client.Object)
			return f.Client.Create(t.Context(), other)
		}
		return nil
	}
	g.Expect(f.As("mary", "POST /projects/20/labels", `{"name":"raced","color":"red"}`).String()).To(Equal(`409 {"message":"Label already exists"}`))
}

func TestGroupLabelPriority_isStoredInTheProject(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	project := func() (all []v1alpha1.LabelPriority) {
		p := &v1alpha1.Project{}
		g.Expect(f.Client.Get(t.Context(), client.ObjectKey{Namespace: "acme", Name: "web"}, p)).To(Succeed())
		return p.Spec.LabelPriorities
	}
	before := f.there(t)
	for body, want := range map[string]*int32{`{"priority":0}`: ptr.To[int32](0), `{"priority":5}`: ptr.To[int32](5), `{"priority":null}`: nil} {
		l := familytest.Decode[Label](t, f.As("pete", "PUT /projects/20/labels/urgent", body))
		g.Expect(l.Priority).To(Equal(want))
		g.Expect(familytest.Decode[Label](t, f.As("pete", "GET /projects/20/labels/urgent", "")).Priority).To(Equal(want))
		g.Expect(familytest.Decode[Label](t, f.As("mary", "GET /projects/21/labels/urgent", "")).Priority).To(BeNil(), "of another project")
	}
	g.Expect(f.there(t)).To(Equal(before))
	_ = f.As("pete", "PUT /projects/20/labels/urgent", `{"priority":4}`)
	_ = f.As("pete", "PUT /projects/20/labels/legal", `{"priority":8}`)
	g.Expect(project()).To(Equal([]v1alpha1.LabelPriority{{Title: "legal", Priority: 8}, {Title: "bug", Priority: 9}, {Title: "urgent", Priority: 4}}))
	got := f.As("rita", "PUT /projects/20/labels/urgent", `{"priority":6,"new_name":"now"}`)
	g.Expect(*familytest.Decode[Label](t, got).Priority).To(BeEquivalentTo(6))
	g.Expect(project()).To(ContainElement(v1alpha1.LabelPriority{Title: "now", Priority: 6}))
}

func TestDeleteLabel_honorsIfUnmodifiedSince(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t) // all objects were created in the first minute of 2026
	f.Header = http.Header{"If-Unmodified-Since": {time.Date(2025, 12, 31, 0, 0, 0, 0, time.UTC).Format(http.TimeFormat)}}
	for _, request := range []string{"DELETE /projects/20/labels/bug", "DELETE /projects/20/labels?name=bug"} {
		g.Expect(f.As("mary", request, "").String()).To(Equal(`412 {"message":"412 Precondition Failed"}`))
	}
	f.Header.Set("If-Unmodified-Since", time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC).Format(http.TimeFormat))
	g.Expect(f.As("mary", "DELETE /projects/20/labels/bug", "").Code).To(Equal(204))
}

func TestRESTWrites_canBeRefusedByAProject(t *testing.T) {
	for policy, refused := range map[v1alpha1.RESTWrites]bool{v1alpha1.RESTWritesAllow: false, v1alpha1.RESTWritesRefuse: true} {
		for _, tt := range []struct{ request, body string }{
			{"POST /projects/20/labels", `{"name":"x","color":"red"}`}, {"PUT /projects/20/labels/bug", `{"color":"red"}`},
			{"PUT /projects/20/labels/urgent", `{"priority":1}`}, {"PUT /projects/20/labels/urgent", `{"color":"red"}`},
			{"DELETE /projects/20/labels/bug", ""}, {"PUT /projects/20/labels/bug/promote", ""},
		} {
			t.Run(string(policy)+" "+tt.request+tt.body, func(t *testing.T) {
				f := newForge(t)
				p := &v1alpha1.Project{}
				if err := f.Client.Get(t.Context(), client.ObjectKey{Namespace: "acme", Name: "web"}, p); err != nil {
					t.Fatal(err)
				}
				p.Spec.RESTWrites = policy
				if err := f.Client.Update(t.Context(), p); err != nil {
					t.Fatal(err)
				}
				if got := f.As("mary", tt.request, tt.body); (got.Code == 403) != refused {
					t.Errorf("got %s", got)
				}
			})
		}
	}
}

func TestDelete_takesLabelFromEpics(t *testing.T) {
	f, g := newForge(t), NewWithT(t)
	e := epic.Epic{In: database.Subject{Kind: database.KindGroup, ID: 10, UID: "acme"}, Labels: []epic.Label{{ID: 33, UID: f.subject(t, 33).UID}}}
	g.Expect(f.Activity.Epics.Create(t.Context(), &e)).To(Succeed())
	g.Expect(f.As("mary", "DELETE /groups/10/labels/legal", "").String()).To(Equal("204"))
	g.Expect(f.Activity.Epics.Get(t.Context(), "acme", e.ID)).To(HaveField("Labels", BeEmpty()))
}
