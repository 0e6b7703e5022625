package conventions_test

import (
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestPin_coversEveryKindWithAnID(t *testing.T) {
	g := NewWithT(t)
	var identified []string
	for _, crd := range kinds(t) {
		if _, ok := root(crd).Properties["spec"].Properties["id"]; ok {
			identified = append(identified, crd.Spec.Names.Plural)
		}
	}
	g.Expect(identified).NotTo(BeEmpty())
	want := permissions("", rbacv1.PolicyRule{APIGroups: []string{"forgeplane.dev"}, Resources: identified, Verbs: []string{"pin"}})
	restore := roles(t, "restore_role.yaml")
	g.Expect(restore).To(HaveLen(1))
	g.Expect(restore[0].Metadata.Labels).To(BeEmpty(), "it is aggregated to no other role")
	// A restore also changes the uid in fixed references.
	referring := append([]string{"jobtokenscopes", "memberships", "registrycleanups", "variables"}, identified...)
	g.Expect(permissions("", restore[0].Rules...)).To(Equal(
		permissions("", rbacv1.PolicyRule{APIGroups: []string{"forgeplane.dev"}, Resources: referring, Verbs: []string{"pin"}})))
	for role, needed := range markers(t) {
		g.Expect(needed).To(ContainElements(want), role)
	}
}
