package forge

import (
	"context"
	"reflect"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// Hold is a finalizer that only the test removes.
const Hold = "example.com/hold"

// Contest is a conflict about something that only one object can hold. Its objects are not created yet.
type Contest struct {
	// Old is created first. It claims something else, or nothing, until Seize is called.
	Old v1alpha1.Object
	// Young is the holder, which Old cannot replace.
	Young v1alpha1.Object
	// Seize changes something, so that Old claims what Young holds.
	Seize func()
	// Words are the name of the claim in the condition of Old.
	Words string
	// Holder returns the holder that readers find. It is nil if nothing looks up the holder.
	Holder func(ctx context.Context) (client.Object, error)
}

// DescribeHolder adds specs about something that only one object can hold to a suite. The first function returns the Forge of the spec. begin
// declares the objects that both refer to, and returns the contest.
func DescribeHolder(what string, forge func() *Forge, begin func() Contest) {
	Describe("the holder of "+what, func() {
		var f *Forge
		var c Contest
		expectHolder := func(holder client.Object) {
			GinkgoHelper()
			if c.Holder != nil {
				Eventually(c.Holder).WithContext(GinkgoT().Context()).WithPolling(polling).
					Should(HaveField("UID", holder.GetUID()))
			}
		}
		expectRefused := func() {
			GinkgoHelper()
			f.ExpectStalled(c.Old, v1alpha1.ReasonAlreadyExists, c.Words, "is held by "+reflect.TypeOf(c.Young).Elem().Name()+" "+c.Young.GetName())
			expectHolder(c.Young)
		}
		BeforeEach(func() {
			f = forge()
			f.Run()
			c = begin()
			CreateInTurn(f, c.Old, c.Young)
			f.ExpectReady(c.Young)
		})

		It("keeps it when an older object claims it later", func() {
			c.Seize()
			expectRefused()
			f.ExpectReady(c.Young)
			f.ExpectRestartWritesNothing()
			expectRefused()
		})

		It("keeps it while it is being deleted, and until it is gone", func() {
			f.Change(c.Young, func() { c.Young.SetFinalizers(append(c.Young.GetFinalizers(), Hold)) })
			f.Delete(c.Young)
			c.Seize()
			expectRefused()
			f.Change(c.Young, func() { c.Young.SetFinalizers(nil) })
			f.ExpectGone(c.Young)
			f.ExpectReady(c.Old)
			expectHolder(c.Old)
		})
	})
}
