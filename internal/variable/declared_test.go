package variable_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	. "github.com/forgeplane/forgeplane/internal/catalog/catalogtest/objects"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/variable"
)

const platform = "forgeplane-system"

// values are the values of variables by the names of the objects. Other variables have the name of the object as their value.
type values map[string]*string

func (v values) Variable(_ context.Context, o *v1alpha1.Variable) (string, bool, error) {
	value, ok := v[o.Name]
	switch {
	case !ok:
		return o.Name, true, nil
	case value == nil:
		return "", false, nil
	default:
		return *value, true, nil
	}
}

// declared returns a variable for all environments.
func declared(namespace, name, key string, change ...func(*v1alpha1.VariableSpec)) *v1alpha1.Variable {
	v := &v1alpha1.Variable{
		ObjectMeta: Meta("variable", namespace, name),
		Spec:       v1alpha1.VariableSpec{Key: key, EnvironmentScope: v1alpha1.AnyEnvironment, Type: v1alpha1.VariableEnvVar},
	}
	for _, c := range change {
		c(&v.Spec)
	}
	return v
}

func of(ref v1alpha1.Reference) func(*v1alpha1.VariableSpec) {
	return func(s *v1alpha1.VariableSpec) { s.ProjectRef = &ref }
}

func ofGroup(ref v1alpha1.Reference) func(*v1alpha1.VariableSpec) {
	return func(s *v1alpha1.VariableSpec) { s.GroupRef = &ref }
}

func in(scope string) func(*v1alpha1.VariableSpec) {
	return func(s *v1alpha1.VariableSpec) { s.EnvironmentScope = scope }
}

// forge has the project acme/sub/web.
type forge struct {
	*WithT
	t         *testing.T
	world     *catalogtest.World
	variables *variable.Variables
	web       catalog.Scope
}

func newForge(t *testing.T, all ...*v1alpha1.Variable) *forge {
	t.Helper()
	world, web := TenantWorld(t)
	for _, v := range all {
		world.Put(v)
	}
	f := &forge{WithT: NewWithT(t), t: t, world: world, variables: variable.New(world.Catalog(), platform)}
	var err error
	f.web, err = world.Catalog().ProjectScope(t.Context(), web)
	f.Expect(err).NotTo(HaveOccurred())
	return f
}

// got returns the variables of a job in the form KEY=value.
func (f *forge) got(j variable.Job, v values) (got []string) {
	f.t.Helper()
	all, err := f.variables.For(f.t.Context(), v, f.web, j)
	f.Expect(err).NotTo(HaveOccurred())
	for _, one := range all {
		got = append(got, one.Key+"="+one.Value)
	}
	return got
}

func TestFor_prefersTheProjectToItsGroupsAndTheInstallation(t *testing.T) {
	f := newForge(t,
		declared(platform, "everywhere", "A"), declared(platform, "low", "B"), declared(platform, "lower", "C"), declared(platform, "lowest", "D"),
		declared("a", "top", "B", ofGroup(ByName("acme"))), declared("a", "top-c", "C", ofGroup(ByPath("acme"))), declared("a", "top-d", "D", ofGroup(ByName("acme"))),
		declared("a", "sub", "C", ofGroup(ByPath("acme/sub"))), declared("a", "sub-d", "D", ofGroup(ByPath("acme/sub"))),
		declared("a", "own", "D", of(ByName("web"))), declared("a", "own-e", "E", of(ByID(100))),
		declared("a", "other", "F", of(ByName("other"))), declared("b", "foreign", "G", of(ByPath("acme/sub/web"))),
		declared("b", "foreign-group", "H", ofGroup(ByPath("acme"))), declared("a", "squat", "I"),
	)
	f.Expect(f.got(variable.Job{}, nil)).To(Equal([]string{"A=everywhere", "B=top", "C=sub", "D=own", "E=own-e"}))
}

func TestFor_prefersTheMostSpecificEnvironmentScope(t *testing.T) {
	f := newForge(t,
		declared("a", "any", "A", of(ByName("web"))), declared("a", "review", "A", of(ByName("web")), in("review/*")),
		declared("a", "exact", "A", of(ByName("web")), in("review/1")),
		declared("a", "group", "B", ofGroup(ByName("acme")), in("review/1")), declared("a", "project", "B", of(ByName("web"))),
		declared("a", "elsewhere", "C", of(ByName("web")), in("production")), declared("a", "fallback", "C", ofGroup(ByName("acme"))),
	)
	f.Expect(f.got(variable.Job{}, nil)).To(Equal([]string{"C=fallback", "A=any", "B=project"}))
	f.Expect(f.got(variable.Job{Environment: "review/2"}, nil)).To(ContainElement("A=review"))
	f.Expect(f.got(variable.Job{Environment: "review/1"}, nil)).To(ContainElements("A=exact", "B=project"))
	f.Expect(f.got(variable.Job{Environment: "production"}, nil)).To(ContainElements("A=any", "C=elsewhere"))
}

func TestFor_leavesOutWhatIsProtectedOrHasNoValidValue(t *testing.T) {
	protected := func(s *v1alpha1.VariableSpec) { s.Protected = true }
	masked := func(s *v1alpha1.VariableSpec) { s.Masked = true }
	leaving := declared("a", "leaving", "E", of(ByName("web")))
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	f := newForge(t,
		declared("a", "secret", "A", of(ByName("web")), protected), declared("a", "public", "A", ofGroup(ByName("acme"))),
		declared("a", "short", "B", of(ByName("web")), masked), declared("a", "long-enough", "C", of(ByName("web")), masked),
		declared("a", "none", "D", of(ByName("web"))), declared("a", "empty", "F", of(ByName("web"))), leaving,
	)
	v := values{"none": nil, "empty": ptr.To("")}
	f.Expect(f.got(variable.Job{}, v)).To(Equal([]string{"A=public", "C=long-enough", "F="}))
	f.Expect(f.got(variable.Job{Protected: true}, v)).To(Equal([]string{"A=secret", "C=long-enough", "F="}))
}

func TestFor_returnsHowAJobGetsAVariable(t *testing.T) {
	f := newForge(t, declared("a", "a-value-to-mask", "A", of(ByName("web")), func(s *v1alpha1.VariableSpec) {
		s.Type, s.Masked, s.Raw = v1alpha1.VariableFile, true, true
	}))
	f.Expect(f.variables.For(t.Context(), values{}, f.web, variable.Job{})).To(Equal([]variable.Variable{
		{Key: "A", Value: "a-value-to-mask", File: true, Masked: true, Raw: true},
	}))
}

func TestOf_returnsTheHolderOfEachKeyAndScope(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t, declared("a", "older", "A", of(ByName("web"))), declared("a", "younger", "A", of(ByID(100))),
		declared("a", "scoped", "A", of(ByName("web")), in("x")), declared("a", "z", "B", of(ByName("web"))),
		declared(platform, "older", "A"), declared(platform, "scoped", "A", in("x")))
	names := func(all []*v1alpha1.Variable, err error) (names []string) {
		t.Helper()
		g.Expect(err).NotTo(HaveOccurred())
		for _, v := range all {
			names = append(names, v.Name)
		}
		return names
	}
	g.Expect(names(f.variables.Of(t.Context(), f.web))).To(Equal([]string{"older", "scoped", "z"}))
	g.Expect(names(f.variables.WithKey(t.Context(), f.web, "A"))).To(Equal([]string{"older", "scoped"}))
	g.Expect(names(f.variables.WithKey(t.Context(), f.web, "a"))).To(BeEmpty(), "case matters")

	installation, younger := catalog.Scope{}, declared(platform, "younger", "A")
	younger.Status.Claims = []string{claim.Variable("", "A", "*").String()}
	f.world.Put(younger)
	g.Expect(names(f.variables.WithKey(t.Context(), installation, "A"))).To(Equal([]string{"younger", "scoped"}), "the holder keeps it")
	g.Expect(f.variables.Holder(t.Context(), installation, "A", "*")).To(HaveField("Name", "younger"))
	g.Expect(f.variables.Holder(t.Context(), installation, "A", "y")).To(BeNil())
}

func TestOf_findsVariablesOfTheInstallationOnlyInThePlatform(t *testing.T) {
	g := NewWithT(t)
	f := newForge(t, declared(platform, "real", "A"), declared("a", "squat", "A"), declared("a", "squat-b", "B"), declared(platform, "stray", "C", of(ByName("web"))))
	g.Expect(f.variables.Of(t.Context(), catalog.Scope{})).To(ConsistOf(HaveField("Name", "real")))
	g.Expect(f.variables.WithKey(t.Context(), catalog.Scope{}, "A")).To(ConsistOf(HaveField("Name", "real")))
	g.Expect(f.variables.Holder(t.Context(), catalog.Scope{}, "B", "*")).To(BeNil())
}
