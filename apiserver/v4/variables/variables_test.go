package variables_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/variables"
	"github.com/forgeplane/forgeplane/internal/credential"
)

// declared returns a variable of the project web for an environment scope, with a value of a Secret of its namespace.
func declared(name, key, scope string) *v1alpha1.Variable {
	return &v1alpha1.Variable{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: name},
		Spec: v1alpha1.VariableSpec{
			ProjectRef: &v1alpha1.Reference{Name: "web"}, Key: key, EnvironmentScope: scope, Type: v1alpha1.VariableFile,
			SecretRef: &v1alpha1.VariableSecretReference{Name: "ci", Key: "value"},
		},
	}
}

// newForge returns a forge with the private project web in the group acme.
func newForge(t *testing.T, more ...client.Object) *familytest.Forge {
	t.Helper()
	f := familytest.New(t, append([]client.Object{
		familytest.User("root", 1, familytest.Admin), familytest.User("mary", 2), familytest.User("otto", 3),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPrivate),
		familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPrivate),
		familytest.InGroup("acme", "acme", "otto", v1alpha1.RoleOwner), familytest.InProject("acme", "web", "mary", v1alpha1.RoleMaintainer),
	}, more...)...)
	return f.Serve(New(f.Kit).Table())
}

const (
	ofProject      = "/projects/20/variables"
	ofGroup        = "/groups/10/variables"
	ofInstallation = "/admin/ci/variables"
)

// managers are users who can change the variables at each path.
var managers = map[string]string{ofProject: "mary", ofGroup: "otto", ofInstallation: "root"}

// only returns the only variable.
func only(t *testing.T, f *familytest.Forge) *v1alpha1.Variable {
	t.Helper()
	var all v1alpha1.VariableList
	if err := f.Client.List(t.Context(), &all); err != nil || len(all.Items) != 1 {
		t.Fatalf("got %d variables: %v", len(all.Items), err)
	}
	return &all.Items[0]
}

func TestVariable_isCreatedChangedAndDeleted(t *testing.T) {
	for path, manager := range managers {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			f := newForge(t)
			made := f.As(manager, "POST "+path, `{"key":"HOST","value":"$A b","description":"Where"}`)
			g.Expect(made.Code).To(Equal(201), made.Body)
			g.Expect(made.Body).To(MatchJSON(`{"key":"HOST","value":"$A b","variable_type":"env_var","protected":false,"masked":false,"hidden":false,
				"raw":false,"environment_scope":"*","description":"Where"}`))
			g.Expect(f.As(manager, "GET "+path+"/HOST", "").Body).To(MatchJSON(made.Body))
			g.Expect(f.As(manager, "GET "+path, "").Body).To(MatchJSON("[" + made.Body + "]"))

			v := only(t, f)
			g.Expect(v.Spec.SecretRef).To(BeNil(), "what tenants can write leads to no value that REST received")
			var secret corev1.Secret
			g.Expect(f.Client.Get(t.Context(), client.ObjectKey{Namespace: familytest.Namespace, Name: v.Status.SecretRef.Name}, &secret)).To(Succeed())
			g.Expect(secret.Data).To(Equal(map[string][]byte{credential.ValueKey: []byte("$A b")}))
			g.Expect(credential.Held(&secret, v1alpha1.SecretOfVariable, v)).To(BeTrue())
			g.Expect(fmt.Sprint(v)).NotTo(ContainSubstring("$A b"))

			changed := f.As(manager, "PUT "+path+"/HOST", `{"value":"other-value","variable_type":"file","protected":true,"masked":true,"raw":true,
				"environment_scope":"review/*","description":null}`)
			g.Expect(changed.Code).To(Equal(200), changed.Body)
			g.Expect(changed.Body).To(MatchJSON(`{"key":"HOST","value":"other-value","variable_type":"file","protected":true,"masked":true,"hidden":false,
				"raw":true,"environment_scope":"review/*","description":null}`))
			g.Expect(f.As(manager, "PUT "+path+"/HOST", `{"protected":false}`).Body).To(And(ContainSubstring(`"protected":false`), ContainSubstring(`"value":"other-value"`)))
			g.Expect(f.As(manager, "DELETE "+path+"/HOST", "").String()).To(Equal("204"))
			g.Expect(f.As(manager, "GET "+path+"/HOST", "").String()).To(Equal(`404 {"message":"404 Variable Not Found"}`))
		})
	}
}

func TestVariable_belongsToItsPathOnly(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	for path, manager := range managers {
		g.Expect(f.As(manager, "POST "+path, fmt.Sprintf(`{"key":"HOST","value":"of %s"}`, path)).Code).To(Equal(201))
	}
	for path, manager := range managers {
		shown := familytest.Decode[[]Variable](t, f.As(manager, "GET "+path, ""))
		g.Expect(shown).To(ConsistOf(HaveField("Value", HaveValue(Equal("of "+path)))))
	}
	var all v1alpha1.VariableList
	g.Expect(f.Client.List(t.Context(), &all, client.InNamespace(familytest.Namespace))).To(Succeed())
	g.Expect(all.Items).To(ConsistOf(And(HaveField("Spec.ProjectRef", BeNil()), HaveField("Spec.GroupRef", BeNil()))))
}

func TestVariables_withOneKeyDifferInTheirEnvironmentScope(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	for _, scope := range []string{"*", "review/*", "production"} {
		made := f.As("mary", "POST "+ofProject, fmt.Sprintf(`{"key":"HOST","value":"of %[1]s","environment_scope":%[1]q}`, scope))
		g.Expect(made.Code).To(Equal(201), made.Body)
	}
	const taken = `400 {"message":{"key":["(HOST) has already been taken"]}}`
	const several = `409 {"message":"There are multiple variables with provided parameters. Please use 'filter[environment_scope]'"}`
	g.Expect(f.As("mary", "POST "+ofProject, `{"key":"HOST","value":"again","environment_scope":"production"}`).String()).To(Equal(taken))
	for _, request := range []string{"GET ", "PUT ", "DELETE "} {
		g.Expect(f.As("mary", request+ofProject+"/HOST", "").String()).To(Equal(several))
	}
	g.Expect(f.As("mary", "GET "+ofProject+"/HOST?filter[environment_scope]=review/*", "").Body).To(ContainSubstring(`"value":"of review/*"`))
	g.Expect(f.As("mary", "GET "+ofProject+"/HOST?filter[environment_scope]=review", "").String()).To(Equal(`404 {"message":"404 Variable Not Found"}`))
	g.Expect(f.As("mary", "PUT "+ofProject+"/HOST", `{"environment_scope":"production","filter":{"environment_scope":"*"}}`).String()).To(Equal(taken))
	moved := f.As("mary", "PUT "+ofProject+"/HOST", `{"environment_scope":"staging","filter":{"environment_scope":"production"}}`)
	g.Expect(moved.Body).To(And(ContainSubstring(`"value":"of production"`), ContainSubstring(`"environment_scope":"staging"`)))
	g.Expect(f.As("mary", "DELETE "+ofProject+"/HOST?filter[environment_scope]=*", "").String()).To(Equal("204"))
	again := f.As("mary", "POST "+ofProject, `{"key":"HOST","value":"again","environment_scope":"production"}`)
	g.Expect(again.Code).To(Equal(201), "the object with this name has another scope now: "+again.Body)
	scopes := []string{}
	for _, shown := range familytest.Decode[[]Variable](t, f.As("mary", "GET "+ofProject, "")) {
		scopes = append(scopes, shown.EnvironmentScope)
	}
	g.Expect(scopes).To(Equal([]string{"production", "review/*", "staging"}))
}

func TestValue_isNeverShownOfAHiddenVariable(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	made := f.As("mary", "POST "+ofProject, `{"key":"TOKEN","value":"long-enough","masked_and_hidden":true}`)
	g.Expect(made.Body).To(And(ContainSubstring(`"value":null`), ContainSubstring(`"masked":true,"hidden":true`)))
	g.Expect(f.As("mary", "GET "+ofProject, "").Body).NotTo(ContainSubstring("long-enough"))
	g.Expect(f.As("mary", "PUT "+ofProject+"/TOKEN", `{"value":"another-value"}`).Body).To(ContainSubstring(`"value":null`))
	g.Expect(f.As("mary", "PUT "+ofProject+"/TOKEN", `{"masked":false}`).String()).To(Equal(
		`400 {"message":{"base":["The visibility setting cannot be changed for masked and hidden variables."]}}`))
	value, ok, err := f.Credentials.Variable(t.Context(), only(t, f))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ok).To(BeTrue())
	g.Expect(value).To(Equal("another-value"))
}

func TestDeclaredVariable_hasTheValueOfItsSecret(t *testing.T) {
	g := NewWithT(t)
	v := declared("host", "HOST", "*")
	v.Status.SecretRef.Name = "copy"
	copied := credential.NewStore(nil, familytest.Namespace).New(v1alpha1.SecretOfVariable, v, map[string][]byte{credential.ValueKey: []byte("declared")})
	copied.Name = "copy"
	f := newForge(t, v, copied)
	g.Expect(f.As("mary", "GET "+ofProject+"/HOST", "").Body).To(And(ContainSubstring(`"value":"declared"`), ContainSubstring(`"variable_type":"file"`)))
	g.Expect(f.As("mary", "PUT "+ofProject+"/HOST", `{"value":"mine"}`).String()).To(Equal(
		`400 {"message":{"value":["is declared in the Secret ci of the namespace acme: change it there"]}}`))
	g.Expect(f.As("mary", "PUT "+ofProject+"/HOST", `{"masked":true}`).Code).To(Equal(200))
	g.Expect(f.As("mary", "GET "+ofProject+"/HOST", "").Body).To(ContainSubstring(`"value":"declared"`))
}

func TestVariable_withoutAValueShowsNull(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t, declared("host", "HOST", "*"))
	g.Expect(f.As("mary", "GET "+ofProject+"/HOST", "").Body).To(ContainSubstring(`"value":null`))
}

func TestCreate_leavesNothingIfTheValueCannotBeStored(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t)
	f.Before = func(verb string, o client.Object) error {
		if _, is := o.(*v1alpha1.Variable); is && verb == "patch status" {
			return fmt.Errorf("the server is on its way down")
		}
		return nil
	}
	g.Expect(f.As("mary", "POST "+ofProject, `{"key":"HOST","value":"a"}`).Code).To(Equal(500))
	var all v1alpha1.VariableList
	g.Expect(f.Client.List(t.Context(), &all)).To(Succeed())
	g.Expect(all.Items).To(BeEmpty())
	var secrets corev1.SecretList
	g.Expect(f.Client.List(t.Context(), &secrets, client.InNamespace(familytest.Namespace))).To(Succeed())
	g.Expect(secrets.Items).To(BeEmpty())
}

func TestInvalidRequests_areRefusedWithAReason(t *testing.T) {
	f := newForge(t)
	long := strings.Repeat("A", 256)
	for _, tt := range []struct{ request, body, want string }{
		{"POST", `{"value":"a"}`, `400 {"error":"key is missing"}`},
		{"POST", `{"key":"A"}`, `400 {"error":"value is missing"}`},
		{"POST", `{"key":"","value":"a"}`, `400 {"message":{"key":["can't be blank","can contain only letters, digits and '_'."]}}`},
		{"POST", `{"key":"A-B","value":"a"}`, `400 {"message":{"key":["can contain only letters, digits and '_'."]}}`},
		{"POST", `{"key":"` + long + `","value":"a"}`, `400 {"message":{"key":["is too long (maximum is 255 characters)"]}}`},
		{"POST", `{"key":"A","value":"a","variable_type":"secret"}`, `400 {"error":"variable_type does not have a valid value"}`},
		{"POST", `{"key":"A","value":"a","protected":"maybe"}`, `400 {"error":"protected is invalid"}`},
		{"POST", `{"key":"A","value":"a","environment_scope":""}`, `400 {"message":{"environment_scope":["can't be blank","can contain only letters, digits, '-', '_', '/', '$', '{', '}', '.', '*' and spaces"]}}`},
		{"POST", `{"key":"A","value":"a","environment_scope":"` + long + `"}`, `400 {"message":{"environment_scope":["is too long (maximum is 255 characters)"]}}`},
		{"POST", `{"key":"A","value":"a","description":"` + long + `"}`, `400 {"message":{"description":["is too long (maximum is 255 characters)"]}}`},
		{"POST", `{"key":"A","value":"short","masked":true}`, `400 {"message":{"value":["is invalid"]}}`},
		{"POST", `{"key":"A","value":"a\u0000b"}`, `400 {"error":"value is invalid"}`},
		{"POST", `{"key":"A","value":"` + strings.Repeat("a", 64<<10+1) + `"}`, `400 {"message":{"value":["is too long (maximum is 65536 characters)"]}}`},
	} {
		got := f.As("mary", tt.request+" "+ofProject, tt.body).String()
		if got != tt.want {
			t.Errorf("%s with %.80s\ngot  %s\nwant %s", tt.request, tt.body, got, tt.want)
		}
	}
	NewWithT(t).Expect(f.As("mary", "POST "+ofProject, `{"key":"A","value":"$HOME"}`).Code).To(Equal(201))
	for body, want := range map[string]string{
		`{"masked":true}`:            `400 {"message":{"value":["is invalid"]}}`,
		`{"environment_scope":"a,"}`: `400 {"message":{"environment_scope":["can contain only letters, digits, '-', '_', '/', '$', '{', '}', '.', '*' and spaces"]}}`,
	} {
		if got := f.As("mary", "PUT "+ofProject+"/A", body).String(); got != want {
			t.Errorf("PUT with %s\ngot  %s\nwant %s", body, got, want)
		}
	}
}

func TestRESTWrites_ofTheGroupRefuseItsVariables(t *testing.T) {
	g := NewWithT(t)
	group := familytest.Group("acme", "team", 11, "", v1alpha1.VisibilityPrivate)
	group.Spec.RESTWrites = v1alpha1.RESTWritesRefuse
	f := newForge(t, group, familytest.InGroup("acme", "team", "otto", v1alpha1.RoleOwner))
	g.Expect(f.As("otto", "POST /groups/11/variables", `{"key":"A","value":"a"}`).Code).To(Equal(403))
	g.Expect(f.As("root", "POST "+ofInstallation, `{"key":"A","value":"a"}`).Code).To(Equal(201))
}
