package conformance

import (
	"net/http"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/forgeplane/forgeplane/internal/feature"
	"github.com/forgeplane/forgeplane/test/forgeplane"
)

var _ = throughEachDoor("Features", func(d *door) {
	const name = feature.MergeRequestApprovedFilter
	state := func() (state string) {
		GinkgoHelper()
		all, _, err := d.as(root).Features.ListFeatures()
		Expect(err).NotTo(HaveOccurred())
		Expect(all).To(HaveLen(len(feature.Definitions())))
		for _, f := range all {
			if f.Name == name {
				Expect(f.Gates).To(Equal([]gitlab.Gate{{Key: "boolean", Value: f.State == "on"}}))
				return f.State
			}
		}
		return ""
	}

	It("are turned on and off by administrators, and removed", func() {
		defined, _, err := d.as(root).Features.ListFeatureDefinitions()
		Expect(err).NotTo(HaveOccurred())
		Expect(defined).To(ContainElement(&gitlab.FeatureDefinition{Name: feature.ChangelogCommitsLimitation, Type: "ops", DefaultEnabled: true}))
		Expect(defined).To(ContainElement(&gitlab.FeatureDefinition{Name: name, Type: "ops"}))
		Expect(state()).To(Equal("off"))
		for _, value := range []any{true, "false", "true"} {
			set, r, err := d.as(root).Features.SetFeatureFlag(name, &gitlab.SetFeatureFlagOptions{Value: value})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(http.StatusCreated))
			Expect(set.Definition).To(Equal(&gitlab.FeatureDefinition{Name: name, Type: "ops"}))
			Expect(state()).To(Equal(set.State))
		}
		Expect(state()).To(Equal("on"))
		Expect(admin.Field(".data."+name, "configmap/"+feature.ConfigMap, "--namespace="+forgeplane.Namespace)).To(Equal("true"))
		_, err = d.as(root).Features.DeleteFeatureFlag(name)
		Expect(err).NotTo(HaveOccurred())
		Expect(state()).To(Equal("off"))
	})

	It("are available only to administrators", func() {
		Expect(answered(send(d.as(developer), "GET features", ""))).To(Equal(`403 {"message":"403 Forbidden"}`))
		Expect(answered(send(d.as(developer), "POST features/"+name, `{"value":true}`))).To(Equal(`403 {"message":"403 Forbidden"}`))
	})
})

var _ = Describe("A feature that is declared by kubectl", func() {
	It("is on at once, and so is a feature that two clients turn on at the same time", func() {
		DeferCleanup(func() { admin.Kubectl("delete", "configmap", feature.ConfigMap, "--namespace="+forgeplane.Namespace) })
		set := func(name string, value bool) {
			defer GinkgoRecover()
			_, _, err := own.as(root).Features.SetFeatureFlag(name, &gitlab.SetFeatureFlagOptions{Value: value})
			Expect(err).NotTo(HaveOccurred())
		}
		set(feature.ChangelogCommitsLimitation, true)
		admin.Kubectl("patch", "configmap", feature.ConfigMap, "--namespace="+forgeplane.Namespace, "--type=merge",
			`--patch={"data":{"`+feature.RestrictMergeStatusRecheck+`":"true"}}`)
		states := func(g Gomega) map[string]string {
			all, _, err := own.as(root).Features.ListFeatures()
			g.Expect(err).NotTo(HaveOccurred())
			is := map[string]string{}
			for _, f := range all {
				is[f.Name] = f.State
			}
			return is
		}
		Eventually(states).WithPolling(polling).Should(HaveKeyWithValue(feature.RestrictMergeStatusRecheck, "on"))
		value, since := true, logged()
		Eventually(func(g Gomega) {
			value = !value
			var both sync.WaitGroup
			for _, name := range []string{feature.MergeRequestApprovedFilter, feature.ChangelogCommitsLimitation} {
				both.Go(func() { set(name, value) })
			}
			both.Wait()
			want := map[bool]string{true: "on", false: "off"}[value]
			g.Expect(states(g)).To(And(HaveKeyWithValue(feature.MergeRequestApprovedFilter, want), HaveKeyWithValue(feature.ChangelogCommitsLimitation, want)))
			g.Expect(unused(since)).NotTo(ContainElement("forgeplane-apiserver in forgeplane-system: get configmaps forgeplane-features"))
		}).WithPolling(polling).Should(Succeed())
	})
})
