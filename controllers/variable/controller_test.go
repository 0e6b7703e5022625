package variable_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/variable"
	"github.com/forgeplane/forgeplane/test/forge"
)

// secret returns a Secret with one value, which is labelled for variables.
func secret(namespace, name, key, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.LabelSecret: v1alpha1.SecretOfVariable}},
		Data:       map[string][]byte{key: []byte(value)},
	}
}

// offer creates the Secret ci with a value in each namespace of a team that lacks it.
func offer() {
	GinkgoHelper()
	ctx := GinkgoT().Context()
	var namespaces corev1.NamespaceList
	Expect(f.Live().List(ctx, &namespaces)).To(Succeed())
	for _, n := range namespaces.Items {
		if !strings.HasPrefix(n.Name, "team-") || n.DeletionTimestamp != nil {
			continue
		}
		s := secret(n.Name, "ci", "value", "some-value")
		if err := f.Live().Get(ctx, client.ObjectKeyFromObject(s), &corev1.Secret{}); err != nil {
			f.Create(s)
		}
	}
}

var _ = Describe("A variable", func() {
	It("becomes ready, with defaults", func() {
		f.Create(secret(acme.Namespace, "ci", "value", "some-value"))
		v := forge.Variable("host", "HOST").Of(website).Secret("ci", "").Build()
		f.Create(v)
		f.ExpectReady(v)
		Expect(v.Spec).To(And(HaveField("SecretRef.Key", "value"), HaveField("Type", v1alpha1.VariableEnvVar), HaveField("EnvironmentScope", "*"),
			HaveField("Protected", false), HaveField("Masked", false), HaveField("Raw", false), HaveField("Hidden", false)))
		Expect(v.Status.TargetPath).To(Equal("acme/website"))
	})

	DescribeTable("is refused by the schema",
		func(change func(v *v1alpha1.Variable), words string) {
			v := forge.Variable("host", "HOST").Of(website).Build()
			change(v)
			f.ExpectRefused(v, words)
		},
		Entry("with a project and a group", func(v *v1alpha1.Variable) { v.Spec.GroupRef = &v1alpha1.Reference{Name: "acme"} }, "at most one of the fields in [projectRef groupRef]"),
		Entry("without a key", func(v *v1alpha1.Variable) { v.Spec.Key = "" }, "spec.key"),
		Entry("with a hyphen in the key", func(v *v1alpha1.Variable) { v.Spec.Key = "DEPLOY-HOST" }, "key must consist of letters, digits and underscores"),
		Entry("with a key that is too long", func(v *v1alpha1.Variable) { v.Spec.Key = strings.Repeat("A", 256) }, "spec.key"),
		Entry("of another type", func(v *v1alpha1.Variable) { v.Spec.Type = "env_var" }, "spec.type"),
		Entry("with a comma in the environment scope", func(v *v1alpha1.Variable) { v.Spec.EnvironmentScope = "a,b" }, "environmentScope must consist of letters, digits, spaces and the characters"),
		Entry("with a description that is too long", func(v *v1alpha1.Variable) { v.Spec.Description = strings.Repeat("a", 256) }, "spec.description"),
		Entry("hidden and not masked", func(v *v1alpha1.Variable) { v.Spec.Hidden = true }, "hidden can be true only if masked is true"),
		Entry("with a slash in the key of the Secret", func(v *v1alpha1.Variable) {
			v.Spec.SecretRef = &v1alpha1.VariableSecretReference{Name: "ci", Key: "a/b"}
		}, "key must consist of letters, digits, hyphens, underscores and dots"),
	)

	DescribeTable("is refused by the schema if it changes",
		func(change func(v *v1alpha1.Variable), words string) {
			v := forge.Variable("host", "HOST").Of(website).Masked().Build()
			v.Spec.Hidden = true
			f.Create(v)
			f.ExpectChangeRefused(v, func() { change(v) }, words)
		},
		Entry("its key", func(v *v1alpha1.Variable) { v.Spec.Key = "OTHER" }, "key cannot change: make a new variable"),
		Entry("from hidden to shown", func(v *v1alpha1.Variable) { v.Spec.Hidden = false }, "hidden cannot be set back to false: make a new variable"),
		Entry("to one of a group", func(v *v1alpha1.Variable) { v.Spec.ProjectRef, v.Spec.GroupRef = nil, v.Spec.ProjectRef }, "projectRef and groupRef cannot replace each other, and cannot be added or removed"),
		Entry("to one of the installation", func(v *v1alpha1.Variable) { v.Spec.ProjectRef = nil }, "projectRef and groupRef cannot replace each other, and cannot be added or removed"),
	)
})

var _ = Describe("A variable of the installation", func() {
	It("must be in the namespace of the platform", func() {
		f.Create(secret(acme.Namespace, "ci", "value", "stolen"), secret(forge.PlatformNamespace, "ci", "value", "some-value"))
		squat := forge.Variable("squat", "HOST").Secret("ci", "value").Build()
		squat.Namespace = acme.Namespace
		f.Create(squat)
		f.ExpectStalled(squat, v1alpha1.ReasonInvalid, "the variable is for the whole installation: it must be in the namespace forgeplane-system")
		Expect(squat.Status.Claims).To(BeEmpty())
		Expect(valueOf(squat)).To(BeEmpty())
		proper := forge.Variable("host", "HOST").Secret("ci", "value").Build()
		f.Create(proper)
		f.ExpectReady(proper)
		Expect(valueOf(proper)).To(Equal("some-value"))
		Expect(variable.New(f.Catalog, forge.PlatformNamespace).Of(GinkgoT().Context(), catalog.Scope{})).To(ConsistOf(HaveField("UID", proper.UID)))

		again := forge.Variable("again", "HOST").Secret("ci", "value").Build()
		f.Create(again)
		f.ExpectStalled(again, v1alpha1.ReasonAlreadyExists, "the key HOST with the environment scope * in the installation is held by Variable host")
	})

	It("keeps its Secret in the namespace of the platform", func() {
		f.Run()
		s := secret(forge.PlatformNamespace, "ci", "value", "some-value")
		v := forge.Variable("host", "HOST").Secret("ci", "value").Build()
		f.Create(s, v)
		f.ExpectReady(v)
		f.Delete(v)
		f.ExpectGone(v)
		f.Refresh(s)
		Expect(s.DeletionTimestamp).To(BeNil())
	})
})

var _ = Describe("A variable:", func() {
	forge.DescribeTarget("a variable", forge.ProjectsAndGroups, func() *forge.Forge { return f },
		func(name string, project, group *v1alpha1.Reference) v1alpha1.Targeted {
			offer()
			v := forge.Variable(name, strings.ToUpper(strings.ReplaceAll(name, "-", "_"))).Secret("ci", "value").Build()
			v.Spec.ProjectRef, v.Spec.GroupRef = project, group
			return v
		})

	forge.DescribeHolder("a key", func() *forge.Forge { return f }, func() forge.Contest {
		f.Create(secret(acme.Namespace, "ci", "value", "some-value"))
		old := forge.Variable("old", "HOST").Of(website).Environment("review/*").Secret("ci", "value").Build()
		return forge.Contest{
			Old: old, Young: forge.Variable("young", "HOST").Of(website).Secret("ci", "value").Build(),
			Words: "the key HOST with the environment scope * in acme/website",
			Seize: func() { f.Change(old, func() { old.Spec.EnvironmentScope = "*" }) },
			Holder: func(ctx context.Context) (client.Object, error) {
				s, err := f.Catalog.ProjectScope(ctx, website)
				if err != nil {
					return nil, err
				}
				return variable.New(f.Catalog, forge.PlatformNamespace).Holder(ctx, s, "HOST", "*")
			},
		}
	})
})
