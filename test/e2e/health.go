package e2e

import (
	"context"
	_ "embed"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/argocd"
)

//go:embed testdata/health.yaml
var clinicManifests string

// verdicts returns the health of objects of Forgeplane as Argo CD sees it, by kind and name, and expects that kstatus agrees.
func verdicts(objects []unstructured.Unstructured) map[string]string {
	GinkgoHelper()
	check, err := argocd.Read(checkout.Dir)
	Expect(err).NotTo(HaveOccurred())
	found := map[string]string{}
	for i := range objects {
		o := &objects[i]
		if o.GroupVersionKind().Group != v1alpha1.GroupVersion.Group {
			continue
		}
		health, err := check.Verify(o)
		Expect(err).NotTo(HaveOccurred(), "%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
		found[strings.ToLower(o.GetKind())+"/"+o.GetName()] = health.Status
	}
	return found
}

// decode returns the objects in the output of kubectl, which writes one after the other.
func decode(output string) (objects []unstructured.Unstructured) {
	GinkgoHelper()
	for decoder := json.NewDecoder(strings.NewReader(output)); decoder.More(); {
		var o unstructured.Unstructured
		Expect(decoder.Decode(&o)).To(Succeed())
		objects = append(objects, o)
	}
	return objects
}

// every returns the objects of all kinds of Forgeplane that options select.
func every(options ...client.ListOption) []unstructured.Unstructured {
	GinkgoHelper()
	var all []unstructured.Unstructured
	for _, kind := range kinds() {
		all = append(all, list(kind.Spec.Names.Plural, options...)...)
	}
	return all
}

var _ = Describe("The health check for Argo CD", Ordered, func() {
	var clinic team
	var patients string
	of := func(state string) map[string]string {
		GinkgoHelper()
		return verdicts(every(client.MatchingLabels{"clinic": state}))
	}
	kindsOf := func(found map[string]string) []string {
		var kinds []string
		for object := range maps.Keys(found) {
			kind, _, _ := strings.Cut(object, "/")
			kinds = append(kinds, kind)
		}
		slices.Sort(kinds)
		return slices.Compact(kinds)
	}

	BeforeAll(func() {
		clinic = newTeam("clinic")
		patients = strings.ReplaceAll(clinicManifests, "DIRECTORY", show("", "repositorystorage/default", "{.spec.path}"))
	})

	It("calls an object that Forgeplane has not seen Progressing", func() {
		found := verdicts(decode(admin.DoWith(patients, "kubectl", "create", "--dry-run=server", "--output=json", "--filename=-")))
		Expect(found).To(HaveEach(argocd.Progressing))
		Expect(kindsOf(found)).To(HaveLen(len(v1alpha1.Kinds())-1), "all but RetainedRepository, which only Forgeplane creates")
	})

	It("calls an object in each state what its conditions mean", func() {
		// The objects that are ready hold what others claim too.
		admin.DoWith(patients, "kubectl", "apply", "--selector=clinic=ready", "--filename=-")
		Eventually(of).WithArguments("ready").WithPolling(polling).Should(HaveEach(argocd.Healthy))
		apply(patients)
		for state, want := range map[string]string{
			"waiting": argocd.Progressing, "stalled": argocd.Degraded, "expired": argocd.Healthy, "suspended": argocd.Suspended, "ready": argocd.Healthy,
		} {
			Eventually(of).WithArguments(state).WithPolling(polling).Should(And(Not(BeEmpty()), HaveEach(want)), state)
		}
		Expect(kindsOf(of("stalled"))).To(HaveLen(len(v1alpha1.Kinds())-1), "all but RetainedRepository")
		for _, o := range every(client.MatchingLabels{"clinic": "expired"}) {
			Expect(fill(&o, reason)).To(Equal("Expired"))
		}
		Expect(verdicts(every(client.InNamespace(clinic.name)))).To(HaveKeyWithValue("project/app", argocd.Healthy))
	})

	It("calls an object whose declaration has just changed Progressing", func() {
		for _, object := range []string{"project/app", "group/clinic", "label/ready", "label/stalled"} {
			text := clinic.kubectl("patch", object, "--type=merge", "--dry-run=server", "--output=json", "--patch", `{"spec":{"description":"Changed"}}`)
			Expect(verdicts(decode(text))).To(HaveKeyWithValue(object, argocd.Progressing))
		}
	})

	It("calls an object that is being deleted Progressing, whatever its state was", func() {
		admin.DoWith(patients, "kubectl", "delete", "--wait=false", "--filename=-")
		found := verdicts(every(client.HasLabels{"clinic"}))
		Expect(found).To(HaveEach(argocd.Progressing))
		Expect(kindsOf(found)).To(HaveLen(len(v1alpha1.Kinds()) - 1))
		for _, o := range every(client.HasLabels{"clinic"}) {
			change := `[{"op":"test","path":"/metadata/finalizers/0","value":"example.com/clinic"},{"op":"remove","path":"/metadata/finalizers/0"}]`
			Expect(api.Patch(context.Background(), &o, client.RawPatch(types.JSONPatchType, []byte(change)))).To(Succeed())
		}
		Eventually(every).WithArguments(client.HasLabels{"clinic"}).WithPolling(polling).Should(BeEmpty())
	})
})
