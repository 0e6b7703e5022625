package claim_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/claim"
)

func TestBegin_letsOneObjectTakeAClaim(t *testing.T) {
	g := NewWithT(t)
	var r claim.Register
	other := claim.Path("", "other")
	g.Expect(r.Begin(acme, "a")).To(BeTrue())
	g.Expect(r.Begin(acme, "a")).To(BeTrue(), "the same object again")
	g.Expect(r.Begin(acme, "b")).To(BeFalse())
	g.Expect(r.Begin(other, "b")).To(BeTrue(), "another claim")

	r.Cancel(acme, "b")
	g.Expect(r.Begin(acme, "b")).To(BeFalse(), "only the object that takes the claim can cancel")
	r.Cancel(acme, "a")
	g.Expect(r.Begin(acme, "b")).To(BeTrue())

	r.End("a")
	g.Expect(r.Begin(acme, "a")).To(BeFalse(), "the end of another object")
	r.End("b")
	g.Expect(r.Begin(acme, "a")).To(BeTrue())
	g.Expect(r.Begin(other, "a")).To(BeTrue())
}

func TestReleased_returnsWaitingObjectsOnce(t *testing.T) {
	g := NewWithT(t)
	var r claim.Register
	name := func(n string) types.NamespacedName { return types.NamespacedName{Namespace: "team", Name: n} }
	r.Wait(acme, "Group", name("a"))
	r.Wait(acme, "Group", name("a"))
	r.Wait(acme, "Group", name("b"))
	r.Wait(acme, "Project", name("c"))
	r.Wait(claim.Path("", "other"), "Group", name("d"))

	g.Expect(r.Released(acme.String(), "User")).To(BeEmpty())
	g.Expect(r.Released(acme.String(), "Group")).To(ConsistOf(name("a"), name("b")))
	g.Expect(r.Released(acme.String(), "Group")).To(BeEmpty())
	g.Expect(r.Released(acme.String(), "Project")).To(ConsistOf(name("c")))
	r.Wait(acme, "Project", name("e"))
	g.Expect(r.Released(acme.String(), "Project")).To(ConsistOf(name("e")), "after everything was released")
	g.Expect(r.Released(claim.Path("", "other").String(), "Group")).To(ConsistOf(name("d")))
}
