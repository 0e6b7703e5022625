package tenancy_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/variable"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("An editor of one namespace, with a Variable,", func() {
	// offered returns a Secret that variables of its namespace can use.
	offered := func(namespace, value string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ci", Labels: map[string]string{v1alpha1.LabelSecret: v1alpha1.SecretOfVariable}},
			StringData: map[string]string{"value": value},
		}
	}

	It("gives nothing to the jobs of others, and gets neither their values nor the values of the installation", func(ctx SpecContext) {
		w := newWorld()
		theirs := forge.Variable("theirs", "HOST").Of(w.website).Secret("ci", "value").Build()
		global := forge.Variable("global", "PROXY").Secret("ci", "value").Build()
		w.Create(offered(w.team, "their-value"), offered(forge.PlatformNamespace, "global-value"), theirs, global)
		w.ExpectReady(theirs, global)
		w.declare(offered(w.space, "my-value"))
		w.youngerFromHere()
		w.before = w.snapshot()

		attempts := []attempt{
			{"of the whole installation", forge.Variable("v", "PROXY").Secret("ci", "value").Build(), v1alpha1.ReasonInvalid, "it must be in the namespace forgeplane-system"},
			{"with the Secret of another use", forge.Variable("v", "A").Of(w.mine).Secret("deploy", "token").Build(), v1alpha1.ReasonReferenceNotFound, "there is no Secret deploy"},
			{"with the Secret of the platform", forge.Variable("v", "B").Of(w.mine).Secret(global.Status.SecretRef.Name, "value").Build(), v1alpha1.ReasonReferenceNotFound, "there is no Secret variable-"},
			{"with the path of a Secret", forge.Variable("v", "C").Of(w.mine).Secret("../"+w.team+"/ci", "value").Build(), v1alpha1.ReasonReferenceNotFound, "there is no Secret ../"},
		}
		aim := func(what, field string, project, group *v1alpha1.Reference) {
			v := forge.Variable("v", "HOST").Secret("ci", "value").Build()
			v.Spec.ProjectRef, v.Spec.GroupRef = project, group
			attempts = append(attempts, attempt{what, v, v1alpha1.ReasonReferenceNotFound, field})
		}
		for how, ref := range refs("website", "acme/website", w.website.Spec.ID) {
			aim("of the project by "+how, "projectRef", &ref, nil)
		}
		for how, ref := range refs("acme", "acme", w.acme.Spec.ID) {
			aim("of the group by "+how, "groupRef", nil, &ref)
		}
		w.try(attempts...)

		values := credential.NewStore(w.Live(), forge.PlatformNamespace)
		of := variable.New(w.Catalog, forge.PlatformNamespace)
		for p, want := range map[*v1alpha1.Project][]variable.Variable{
			w.website: {{Key: "PROXY", Value: "global-value"}, {Key: "HOST", Value: "their-value"}},
			w.mine:    {{Key: "PROXY", Value: "global-value"}},
		} {
			scope, err := w.Catalog.ProjectScope(ctx, p)
			Expect(err).NotTo(HaveOccurred())
			Expect(of.For(ctx, values, scope, variable.Job{Protected: true})).To(Equal(want))
		}
		Expect(w.editor.Create(ctx, forge.Variable("intruder", "HOST").Build())).To(Satisfy(apierrors.IsForbidden), "in the namespace of the platform")
	})
})
