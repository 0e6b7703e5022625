package forge

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/fieldmanager"
)

// Declare returns an object that is not created yet. Its name is unique in its namespace, which DescribeTarget sets, and one of the references
// is nil.
type Declare func(name string, project, group *v1alpha1.Reference) v1alpha1.Targeted

// Targets are the kinds of targets of a kind.
type Targets bool

// The targets of a kind.
const (
	Projects          Targets = false
	ProjectsAndGroups Targets = true
)

// DescribeTarget adds specs about the project or group that an object of a kind is declared for to a suite. The first function returns the
// Forge of the spec.
func DescribeTarget(of string, targets Targets, forge func() *Forge, declare Declare) {
	Describe("the target of "+of, func() {
		var f *Forge
		var company, team *v1alpha1.Group
		var shop *v1alpha1.Project
		var namespace string
		BeforeEach(func() {
			f = forge()
			namespace = f.NewNamespace()
			company = Group("company").In(namespace).Build()
			team = Group("sales").In(namespace).Below(company).Build()
			shop = Project("shop").In(team).ID(800).Build()
			team.Spec.ID = 900
			f.Create(company, team, shop)
		})
		in := func(namespace, name string, project, group *v1alpha1.Reference) v1alpha1.Targeted {
			obj := declare(name, project, group)
			obj.SetNamespace(namespace)
			return obj
		}

		type reference struct {
			how      string
			ref      v1alpha1.Reference
			notFound string // in another namespace
		}
		references := func(name, path string, id int64) []reference {
			return []reference{
				{"by its name", v1alpha1.Reference{Name: name}, name},
				{"by its full path", v1alpha1.Reference{Path: path}, path},
				{"by its id", v1alpha1.Reference{ID: id}, fmt.Sprintf("with id %d", id)},
			}
		}
		for _, r := range references("shop", "company/SALES/shop", 800) {
			It("is found if it is a project, "+r.how, func() {
				obj := in(namespace, "one", &r.ref, nil)
				f.Create(obj)
				f.ExpectReady(obj)
				expectTarget(obj, "company/sales/shop")
			})
			It("is not found if it is a project in another namespace, "+r.how, func() {
				obj := in(f.NewNamespace(), "one", &r.ref, nil)
				f.Create(obj)
				f.ExpectWaiting(obj, v1alpha1.ReasonReferenceNotFound, "projectRef: project "+r.notFound+": not found")
				expectTarget(obj, "")
			})
		}
		if targets == ProjectsAndGroups {
			for _, r := range references("sales", "Company/sales", 900) {
				It("is found if it is a group, "+r.how, func() {
					obj := in(namespace, "one", nil, &r.ref)
					f.Create(obj)
					f.ExpectReady(obj)
					expectTarget(obj, "company/sales")
				})
				It("is not found if it is a group in another namespace, "+r.how, func() {
					obj := in(f.NewNamespace(), "one", nil, &r.ref)
					f.Create(obj)
					f.ExpectWaiting(obj, v1alpha1.ReasonReferenceNotFound, "groupRef: group "+r.notFound+": not found")
					expectTarget(obj, "")
				})
			}
		}

		It("can appear later, change its path, and lose it", func() {
			f.Run()
			UntilYounger(shop)
			later := Project("later").In(team).Build()
			obj := in(namespace, "one", &v1alpha1.Reference{Name: "later"}, nil)
			f.Create(obj)
			f.ExpectWaiting(obj, v1alpha1.ReasonReferenceNotFound, "projectRef: project later: not found")
			f.Create(later)
			f.ExpectReady(obj)
			f.Eventually(later).Should(HaveField("Status.FullPath", "company/sales/later"))
			f.ExpectRestartWritesNothing()

			f.Change(later, func() { later.Spec.Path = "renamed" })
			f.eventuallyAt(obj, "company/sales/renamed")
			f.ExpectReady(obj)
			f.Change(company, func() { company.Spec.Path = "example" })
			f.eventuallyAt(obj, "example/sales/renamed")
			f.Change(later, func() { later.Spec.Path = "SHOP" })
			f.ExpectWaiting(obj, v1alpha1.ReasonReferenceNotReady, "the Project later does not hold its full path")
			f.Delete(company)
			f.ExpectWaiting(obj, v1alpha1.ReasonReferenceNotFound, "projectRef", "company")
			expectPath(obj, "")
		})

		It("owns an object that was created over REST, until it is applied", func() {
			ref := v1alpha1.Reference{Name: "shop", UID: string(shop.UID)}
			obj := in(namespace, "one", &ref, nil)
			f.CreateOverREST(obj)
			f.ExpectReady(obj)
			expectOwners(obj, shop)
			f.Apply(obj)
			f.ExpectReady(obj)
			expectOwners(obj)

			By("starting with an owner that another client has added")
			f.own(obj, shop)
			expectOwners(obj, shop)
			f.ExpectReady(obj)
			expectOwners(obj)
			f.own(obj, shop)
			f.Run()
			f.Eventually(obj).Should(HaveField("ObjectMeta.OwnerReferences", BeEmpty()))
			f.ExpectReady(obj)
			f.ExpectRestartWritesNothing()
		})

		It("stays the same when the reference to it changes", func() {
			f.Run()
			other := Project("other").In(team).Build()
			obj := in(namespace, "one", &v1alpha1.Reference{Name: "shop"}, nil)
			f.Create(other, obj)
			f.ExpectReady(obj)
			become := func(ref v1alpha1.Reference) {
				f.Change(obj, func() { project, _ := obj.TargetRefs(); *project = ref })
			}
			for _, ref := range []v1alpha1.Reference{{Path: "company/sales/shop"}, {ID: 800}, {Name: "shop"}} {
				become(ref)
				f.ExpectReady(obj)
				ref.UID = string(shop.UID)
				Expect(obj.GetTargetStatus().TargetRef).To(HaveValue(Equal(ref)))
			}
			for _, ref := range []v1alpha1.Reference{{Name: "other", UID: string(other.UID)}, {Path: "no/where"}, {Name: "shop", UID: "another"}} {
				become(ref)
				f.ExpectStalled(obj, v1alpha1.ReasonInvalid,
					"projectRef was changed and does not lead to the Project company/sales/shop any more, to which this object belongs")
				expectPath(obj, "company/sales/shop")
				Expect(catalog.Belongs(obj, shop)).To(BeTrue())
				Expect(catalog.Belongs(obj, other)).To(BeFalse())
				f.ExpectRestartWritesNothing()
			}
			become(v1alpha1.Reference{Path: "Company/Sales/Shop"})
			f.ExpectReady(obj)
		})

		It("can be deleted: an object that was created over REST goes with it, and a declared object stays until the namespace goes", func() {
			f.NewStorage("default")
			f.Run()
			f.Change(shop, func() { shop.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete })
			other, stall := Project("other").In(team).Build(), Project("stall").In(team).Build()
			ofShop, ofOther := in(namespace, "one", &v1alpha1.Reference{Name: "shop"}, nil), in(namespace, "two", &v1alpha1.Reference{Name: "other"}, nil)
			f.Create(other, stall, ofShop, ofOther)
			ofStall := in(namespace, "three", &v1alpha1.Reference{Name: "stall", UID: string(stall.UID)}, nil)
			f.CreateOverREST(ofStall)
			f.ExpectReady(shop, ofShop, other, ofOther, stall, ofStall)
			var ofGroups []v1alpha1.Object
			if targets == ProjectsAndGroups {
				for i, group := range []string{"sales", "company"} {
					obj := in(namespace, fmt.Sprintf("group-%d", i), nil, &v1alpha1.Reference{Name: group})
					f.Create(obj)
					f.ExpectReady(obj)
					ofGroups = append(ofGroups, obj)
				}
			}
			f.Delete(shop, stall)
			f.ExpectGone(shop, stall, ofStall)
			f.ExpectWaiting(ofShop, v1alpha1.ReasonReferenceNotFound, "projectRef: project shop: not found")
			expectPath(ofShop, "")
			Expect(ofShop.GetCommonStatus().Claims).To(BeEmpty())
			f.ExpectReady(ofOther)
			f.ExpectReady(ofGroups...)

			By("declaring another project of the name")
			again := Project("shop").In(team).Build()
			f.Create(again)
			f.ExpectReady(again, ofShop)
			if len(ofGroups) > 0 {
				f.Delete(team)
				f.ExpectWaiting(ofGroups[0], v1alpha1.ReasonReferenceNotFound, "groupRef: group sales: not found")
				f.ExpectReady(ofGroups[1])
			}
			f.ExpectRestartWritesNothing()
			f.Delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
			f.ExpectGone(ofShop, again, ofOther, other, company)
			for _, obj := range ofGroups {
				f.ExpectGone(obj)
			}
		})
	})
}

// expectTarget expects that a declared object shows the full path of its target and that the target does not own it.
func expectTarget(obj v1alpha1.Targeted, path string) {
	GinkgoHelper()
	expectPath(obj, path)
	expectOwners(obj)
}

// expectOwners expects that an object has these owners.
func expectOwners(obj v1alpha1.Targeted, owners ...client.Object) {
	GinkgoHelper()
	uids := []any{}
	for _, o := range owners {
		uids = append(uids, HaveField("UID", o.GetUID()))
	}
	Expect(obj.GetOwnerReferences()).To(ConsistOf(uids...))
}

// own makes an object the owner of another one, as the controllers do.
func (f *Forge) own(obj, owner client.Object) {
	GinkgoHelper()
	before := obj.DeepCopyObject().(client.Object)
	Expect(controllerutil.SetOwnerReference(owner, obj, f.cluster.scheme)).To(Succeed())
	Expect(f.Live().Patch(GinkgoT().Context(), obj, client.MergeFrom(before), client.FieldOwner(fieldmanager.Controllers))).To(Succeed())
	f.Refresh(obj)
}

// expectPath expects that an object shows the full path of its target.
func expectPath(obj v1alpha1.Targeted, path string) {
	GinkgoHelper()
	Expect(obj.GetTargetStatus().TargetPath).To(Equal(path), "status.targetPath")
}

// eventuallyAt waits until an object shows the full path of its target.
func (f *Forge) eventuallyAt(obj v1alpha1.Targeted, path string) {
	GinkgoHelper()
	f.Eventually(obj).Should(HaveField("Status.TargetPath", path))
}
