package membership_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/declare"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("An object that was created over REST for a user", func() {
	var ada *v1alpha1.User
	var acme *v1alpha1.Group
	var site *v1alpha1.Project
	var member *v1alpha1.Membership
	var trigger *v1alpha1.TriggerToken
	var token *v1alpha1.AccessToken
	var asREST client.Client
	BeforeEach(func(ctx SpecContext) {
		asREST = client.WithFieldOwner(f.Live(), string(declare.FieldOwner))
		ada = forge.User("ada").Build()
		acme = forge.Group("acme").In(namespace).Build()
		site = forge.Project("site").In(acme).Build()
		f.Run()
		f.Create(ada, acme, site)
		f.ExpectReady(ada, acme)
		ref := catalog.Refer(ada)
		member = forge.Membership(ada).In(acme).As(v1alpha1.RoleMaintainer).Build()
		member.Spec.UserRef = ref
		trigger = forge.TriggerToken("nightly").Of(site).Build()
		trigger.Spec.OwnerRef = &ref
		token = forge.AccessToken("laptop").For(ada).Digest(credential.Digest("a value that the user has")).Build()
		token.Spec.UserRef = ref
		for _, o := range []client.Object{member, trigger, token} {
			Expect(asREST.Create(ctx, o)).To(Succeed())
		}
		f.ExpectReady(member, trigger, token)
	})

	It("is deleted with the user, unless another field manager declares it", func(ctx SpecContext) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"role":"Maintainer"}}`))
		byPath := forge.Membership(ada).In(site).Build()
		byID := forge.Membership(ada).In(site).Build()
		byID.Name, byID.Spec.UserRef = "by-id", catalog.Refer(ada)
		adopted := forge.Membership(ada).In(site).Build()
		adopted.Name, adopted.Spec.UserRef = "adopted", catalog.Refer(ada)
		f.Create(byPath, byID)
		Expect(asREST.Create(ctx, adopted)).To(Succeed())
		Expect(f.Live().Patch(ctx, adopted, patch, client.FieldOwner("gitops"))).To(Succeed())

		f.Delete(ada)
		f.ExpectGone(member, trigger, token)
		for _, declared := range []*v1alpha1.Membership{byPath, byID, adopted} {
			f.ExpectWaiting(declared, v1alpha1.ReasonReferenceNotFound, "userRef")
		}
		f.ExpectRestartWritesNothing()
		f.Refresh(byPath, byID, adopted)
	})

	It("stays for a day while the user does not exist yet, as when a backup is restored", func(ctx SpecContext) {
		for _, o := range []client.Object{member, trigger, token} {
			f.Delete(o)
			f.ExpectGone(o)
		}
		f.Delete(ada)
		f.ExpectGone(ada)
		restored := member.DeepCopy()
		restored.ObjectMeta = metav1.ObjectMeta{Namespace: member.Namespace, Name: "restored"}
		Expect(asREST.Create(ctx, restored)).To(Succeed())
		f.ExpectWaiting(restored, v1alpha1.ReasonReferenceNotFound, "userRef")
		f.ExpectRestartWritesNothing()
		f.Refresh(restored)
		f.Clock.SetTime(f.Clock.Now().Add(25 * time.Hour))
		wakes := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"role":"Developer"}}`))
		Expect(asREST.Patch(ctx, restored, wakes)).To(Succeed())
		f.ExpectGone(restored)
	})

	It("is deleted even if the user was replaced while no controller ran", func() {
		f.ExpectRestartWritesNothing()
		id := ada.Spec.ID
		f.Delete(ada)
		again := forge.User("ada").ID(id).Build()
		f.Create(again)
		f.ExpectReady(again)
		f.ExpectGone(member, trigger, token)
		f.ExpectRestartWritesNothing()
	})

	It("stays when a replace has dropped the id of the user", func() {
		replaced := forge.User("ada").Build()
		f.Replace(replaced)
		f.ExpectReady(replaced)
		Expect(replaced.Spec.ID).To(Equal(ada.Spec.ID))
		f.Refresh(member, trigger, token)
		f.ExpectReady(member, trigger, token)
	})
})
