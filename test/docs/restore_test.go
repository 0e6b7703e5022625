package docs_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("The commands for a backup", func() {
	It("separate held objects from waiting ones and declared ones from others, and omit the identity of the former objects", func(ctx SpecContext) {
		if _, err := exec.LookPath("jq"); err != nil {
			Skip("jq is not installed")
		}
		f := forge.New(cluster, forge.Options{})
		space := f.NewNamespace()
		acme := forge.Group("acme").In(space).Build()
		second := forge.Group("acme").Named("second").In(space).Build()
		forge.CreateInTurn(f, acme, second)
		f.ExpectReady(acme)
		f.ExpectStalled(second, v1alpha1.ReasonAlreadyExists)
		label := forge.LabelTitled("bug").Of(acme).Build()
		label.Spec.GroupRef.UID = string(acme.UID)
		made := forge.LabelTitled("made").Of(acme).Build()
		f.Create(label)
		f.CreateOverREST(made)
		f.ExpectReady(label, made)

		_, script, found := strings.Cut(read("docs/backup.md").text, "for part in ")
		Expect(found).To(BeTrue())
		script, _, _ = strings.Cut(script, "done\n")
		script = "for part in " + script + "done\n"
		dir := GinkgoT().TempDir()
		var all unstructured.UnstructuredList
		for _, kind := range []string{"GroupList", "LabelList"} {
			some := unstructured.UnstructuredList{}
			some.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
			Expect(f.Live().List(ctx, &some)).To(Succeed())
			all.Items = append(all.Items, some.Items...)
		}
		all.SetAPIVersion("v1")
		all.SetKind("List")
		text, err := all.MarshalJSON()
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(filepath.Join(dir, "all.json"), text, 0o600)).To(Succeed())
		run := exec.CommandContext(ctx, "sh", "-ec", script)
		run.Dir = dir
		out, err := run.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", out)

		parts := map[string]map[string]*unstructured.Unstructured{}
		for _, part := range []string{"held", "held-rest", "waiting", "waiting-rest"} {
			parts[part] = map[string]*unstructured.Unstructured{}
			text, err := os.ReadFile(filepath.Join(dir, part+".json"))
			Expect(err).NotTo(HaveOccurred())
			var list unstructured.UnstructuredList
			Expect(json.Unmarshal(text, &list)).To(Succeed())
			for i := range list.Items {
				if o := &list.Items[i]; o.GetNamespace() == space {
					parts[part][o.GetName()] = o
				}
			}
		}
		Expect(parts["held"]).To(And(HaveLen(2), HaveKey("acme"), HaveKey(label.Name)))
		Expect(parts["held-rest"]).To(And(HaveLen(1), HaveKey(made.Name)))
		Expect(parts["waiting"]).To(And(HaveLen(1), HaveKey("second")))
		Expect(parts["waiting-rest"]).To(BeEmpty())
		for _, o := range slices.Concat(slices.Collect(maps.Values(parts["held"])), slices.Collect(maps.Values(parts["held-rest"]))) {
			Expect(o.Object).NotTo(HaveKey("status"))
			Expect(o.GetUID()).To(BeEmpty())
			Expect(o.GetOwnerReferences()).To(BeEmpty())
			id, _, err := unstructured.NestedInt64(o.Object, "spec", "id")
			Expect(err).NotTo(HaveOccurred())
			Expect(id).NotTo(BeZero())
		}
		_, found, err = unstructured.NestedString(parts["held"][label.Name].Object, "spec", "groupRef", "uid")
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(BeFalse())
	}, SpecTimeout(2*time.Minute))
})
