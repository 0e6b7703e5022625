package mergerequest_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

func TestProjectRuleIDs_followFromNames(t *testing.T) {
	g := NewWithT(t)
	a, b := v1alpha1.ApprovalRule{Name: "a"}, v1alpha1.ApprovalRule{Name: "b"}
	ids := mergerequest.ProjectRuleIDs("uid", []v1alpha1.ApprovalRule{a, b})
	g.Expect(ids[0]).NotTo(Equal(ids[1]))
	g.Expect(ids).To(HaveEach(And(BeNumerically(">=", mergerequest.FirstProjectRule), BeNumerically("<", 2*mergerequest.FirstProjectRule))))
	g.Expect(mergerequest.ProjectRuleIDs("uid", []v1alpha1.ApprovalRule{b, a})).To(Equal([]int64{ids[1], ids[0]}))
	g.Expect(mergerequest.ProjectRuleIDs("other", []v1alpha1.ApprovalRule{a})).NotTo(Equal(ids[:1]))

	renamed := v1alpha1.ApprovalRule{Name: "c", ID: ids[0]}
	both := mergerequest.ProjectRuleIDs("uid", []v1alpha1.ApprovalRule{a, renamed})
	g.Expect(both[1]).To(Equal(ids[0]))
	g.Expect(both[0]).NotTo(Equal(ids[0]), "another rule has that id")
}
