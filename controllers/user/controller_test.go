package user_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("A user", func() {
	It("becomes ready with an id of its own", func() {
		ada := forge.User("ada").Build()
		f.Create(ada)
		f.ExpectReady(ada)
		Expect(ada.Spec.ID).To(BeEquivalentTo(1))
		Expect(ada.Status.ID).To(BeEquivalentTo(1))
	})
	It("is left alone by a restart", func() {
		f.Run()
		ada := forge.User("ada").Build()
		f.Create(ada)
		f.ExpectReady(ada)
		Expect(ada.Status.ID).To(BeEquivalentTo(1))
		f.ExpectRestartWritesNothing()
	})
})
