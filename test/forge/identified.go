package forge

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/ids"
)

// DescribeIDs adds specs about the ids of a kind to a suite. The first function returns the Forge of the spec. build returns an object with a name
// that is not created yet, becomes ready, and claims nothing that another object claims.
func DescribeIDs(forge func() *Forge, build func(name string) v1alpha1.Identified) {
	pinned := func(name string, id int64) v1alpha1.Identified {
		obj := build(name)
		spec, _ := obj.IDs()
		*spec = id
		return obj
	}
	expectID := func(obj v1alpha1.Identified, id int64) {
		GinkgoHelper()
		spec, status := obj.IDs()
		Expect(*spec).To(Equal(id), "the declared id")
		Expect(*status).To(Equal(id), "the id in force")
	}

	Describe("its id", func() {
		var f *Forge
		var ada, bob v1alpha1.Identified
		BeforeEach(func() {
			f = forge()
			ada, bob = build("ada"), build("bob")
		})

		It("counts from 1", func() {
			f.Create(ada, bob)
			f.ExpectReady(ada, bob)
			expectID(ada, 1)
			expectID(bob, 2)
		})

		It("is not used again when the object is gone", func() {
			f.Create(ada, bob)
			f.ExpectReady(ada, bob)
			f.Delete(bob)
			_, err := f.ReconcileOnce(bob)
			Expect(err).NotTo(HaveOccurred())
			f.ExpectGone(bob)
			eve := build("eve")
			f.Create(eve)
			f.ExpectReady(eve)
			expectID(eve, 3)
		})

		It("can be pinned, which does not move the counter, and the counter skips a pinned id", func() {
			highest := pinned("highest", ids.MaxID)
			first := pinned("first", 1)
			f.Create(highest, first)
			f.ExpectReady(highest, first)
			expectID(highest, ids.MaxID)
			expectID(first, 1)
			f.Create(ada)
			f.ExpectReady(ada)
			expectID(ada, 2)
		})

		It("must be below 2^53", func() {
			f.ExpectRefused(pinned("beyond", ids.MaxID+1), "spec.id")
			f.ExpectRefused(pinned("below", -1), "spec.id")
		})

		It("is restored when a replace has dropped it", func() {
			f.Create(ada)
			f.ExpectReady(ada)
			f.Replace(build("ada"))
			f.ExpectReady(ada)
			expectID(ada, 1)
		})

		It("cannot change, not even by dropping it first", func() {
			f.Create(ada)
			f.ExpectReady(ada)
			spec, _ := ada.IDs()
			f.ExpectChangeRefused(ada, func() { *spec = 7 }, "id cannot change once set")
			f.Change(ada, func() { *spec = 0 })
			f.ExpectChangeRefused(ada, func() { *spec = 7 }, "id cannot change once set")
			f.ExpectReady(ada)
			expectID(ada, 1)
		})

		It("belongs to the older one if two have pinned the same, and the younger one names the holder", func() {
			ada, bob = pinned("ada", 5), pinned("bob", 5)
			f.Create(ada, bob)
			older, younger := ByAge(ada, bob)
			f.ExpectReady(older)
			f.ExpectStalled(younger, v1alpha1.ReasonAlreadyExists, "id 5", older.GetName(), "omit spec.id")
			_, status := younger.IDs()
			Expect(*status).To(BeZero())

			spec, _ := younger.IDs()
			f.Change(younger, func() { *spec = 0 })
			f.ExpectReady(younger)
			expectID(younger, 1)
		})

		It("passes to the younger one when the older one is deleted, and both always agree on it", func() {
			f.Run()
			ada, bob = pinned("ada", 5), pinned("bob", 5)
			older, younger := CreateInTurn(f, ada, bob)
			f.ExpectReady(older)
			f.ExpectStalled(younger, v1alpha1.ReasonAlreadyExists, older.GetName())
			f.Delete(older)
			f.ExpectReady(younger)
			expectID(younger, 5)
		})

		It("is allocated once if several replicas allocate", func() {
			other := New(f.cluster, Options{})
			seen := map[int64]string{}
			for i := range 12 {
				obj := build(fmt.Sprintf("object-%d", i))
				f.Create(obj)
				if i%2 == 0 {
					f.ExpectReady(obj)
				} else {
					other.ExpectReady(obj)
				}
				_, status := obj.IDs()
				Expect(seen).NotTo(HaveKey(*status), "the id of %s", obj.GetName())
				seen[*status] = obj.GetName()
			}
		})
	})
}
