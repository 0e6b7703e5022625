package tenancy_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
	"github.com/forgeplane/forgeplane/test/seed"
	"github.com/forgeplane/forgeplane/test/soak"
)

// steps is the number of acts of tenants in one spec.
var steps = soak.Times(8, 30)

// randomTenant can write everything in one namespace, and nothing elsewhere.
type randomTenant struct {
	client.Client
	namespace string
}

// randomTenants know each other's paths. The controllers of their installation run, and its server is another process.
type randomTenants struct {
	*forge.Forge
	running *forge.Running
	readers readers
	random  *rand.Rand
	tenants []randomTenant
	made    int
	// done are the UIDs of the objects that have themselves changed since the last look.
	done map[types.UID]bool
	// held maps each claim, in canonical form, to its holder at the last look.
	held map[string]types.UID
	// groups are the UIDs of all groups that have ever existed.
	groups []types.UID
	log    []string
}

var _ = Describe("Random tenants on a running installation", func() {
	first := seed.Value()
	for number := first; number < first+soak.Times[uint64](1, 40); number++ {
		It(fmt.Sprintf("remove no claim from its holder, and all readers see the same holder, with seed %d", number), func(ctx SpecContext) {
			w := newRandomTenants(ctx, number)
			for range steps {
				for range 1 + w.random.IntN(2) {
					w.act(ctx)
				}
				w.running.ExpectIdle()
				w.look(ctx)
			}
		})
	}
})

func newRandomTenants(ctx context.Context, number uint64) *randomTenants {
	GinkgoHelper()
	f := forge.New(cluster, forge.Options{})
	w := &randomTenants{
		Forge: f, random: rand.New(rand.NewPCG(number, 0)), done: map[types.UID]bool{}, held: map[string]types.UID{}, //nolint:gosec // the run must be repeatable
	}
	f.NewStorage("default")
	users := []client.Object{forge.User("ada").Build(), forge.User("bob").Build()}
	f.Create(users...)
	w.running = f.Run()
	w.readers = newReaders(ctx, f)
	for i := range 3 {
		t := randomTenant{namespace: f.NewNamespace()}
		name := t.namespace + "@example.com"
		t.Client = cluster.ClientOf(name)
		f.Create(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "editor"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
		})
		// Bindings come into force with a delay, so each tenant repeats its first write.
		root := forge.Group(words[i]).Named("root").In(t.namespace).Admitting(v1alpha1.NamespacesFromAll).Build()
		Eventually(func() error { return t.Create(ctx, root) }).Should(Succeed())
		w.groups = append(w.groups, root.UID)
		w.tenants = append(w.tenants, t)
	}
	w.running.ExpectIdle()
	return w
}

// words are the possible paths, titles and names. They are few, so that tenants conflict.
var words = []string{"a", "b", "c"}

func chosen[T any](w *randomTenants, from []T) T { return from[w.random.IntN(len(from))] }

// act does something that a tenant can do.
func (w *randomTenants) act(ctx context.Context) {
	GinkgoHelper()
	t := chosen(w, w.tenants)
	objects := w.objects(ctx, client.InNamespace(t.namespace))
	if n := w.random.IntN(10); n < 4 && len(objects) < 12 || len(objects) == 0 {
		w.create(ctx, t, objects)
		return
	}
	obj := chosen(w, objects)
	switch n := w.random.IntN(10); {
	case n < 6:
		w.say("change", obj)
		other := obj.DeepCopyObject().(v1alpha1.Object)
		w.claim(other, objects)
		Expect(client.IgnoreNotFound(t.Patch(ctx, other, client.MergeFrom(obj)))).To(Succeed(), w.story)
	case n < 7 && obj.GetDeletionTimestamp().IsZero():
		w.change(ctx, t, "hold", obj, func() { obj.SetFinalizers(append(obj.GetFinalizers(), forge.Hold)) })
	case n < 9:
		w.say("delete", obj)
		Expect(client.IgnoreNotFound(t.Delete(ctx, obj))).To(Succeed())
	default:
		w.change(ctx, t, "release", obj, func() {
			obj.SetFinalizers(without(obj.GetFinalizers(), forge.Hold))
		})
	}
}

func (w *randomTenants) create(ctx context.Context, t randomTenant, there []v1alpha1.Object) {
	GinkgoHelper()
	w.made++
	var obj v1alpha1.Object
	switch w.random.IntN(5) {
	case 0, 1:
		obj = forge.Group("a").Admitting(v1alpha1.NamespacesFromAll).Build()
	case 2, 3:
		obj = forge.Project("a").Discarded().Build()
	default:
		obj = &v1alpha1.Membership{Spec: v1alpha1.MembershipSpec{
			UserRef: v1alpha1.Reference{Name: chosen(w, []string{"ada", "bob"})}, Role: v1alpha1.RoleOwner,
			GroupRef: &v1alpha1.Reference{Name: w.group(there)},
		}}
	}
	obj.SetNamespace(t.namespace)
	obj.SetName(fmt.Sprintf("o%d", w.made))
	w.claim(obj, there)
	Expect(t.Create(ctx, obj)).To(Succeed())
	if _, ok := obj.(*v1alpha1.Group); ok {
		w.groups = append(w.groups, obj.GetUID())
	}
	w.say("create", obj)
}

// claim gives an object a place. The immutable fields of a membership stay.
func (w *randomTenants) claim(obj v1alpha1.Object, there []v1alpha1.Object) {
	switch o := obj.(type) {
	case *v1alpha1.Group:
		o.Spec.Path, o.Spec.ParentRef = chosen(w, words), nil
		switch w.random.IntN(3) {
		case 0:
			o.Spec.ParentRef = w.meaning(v1alpha1.Reference{Name: w.group(there)}, there)
		case 1:
			path := chosen(w, words)
			if w.random.IntN(3) == 0 {
				path += "/" + chosen(w, words)
			}
			o.Spec.ParentRef = w.meaning(v1alpha1.Reference{Path: path}, there)
		}
	case *v1alpha1.Project:
		o.Spec.Path, o.Spec.GroupRef = chosen(w, words), *w.meaning(v1alpha1.Reference{Name: w.group(there)}, there)
	case *v1alpha1.Membership:
		o.Spec.Role = chosen(w, []v1alpha1.Role{v1alpha1.RoleGuest, v1alpha1.RoleOwner})
	}
}

// meaning adds a UID to some references: of the object with the name, of another object, or of an object that is gone.
func (w *randomTenants) meaning(ref v1alpha1.Reference, there []v1alpha1.Object) *v1alpha1.Reference {
	switch w.random.IntN(5) {
	case 0:
		for _, o := range there {
			if _, ok := o.(*v1alpha1.Group); ok && o.GetName() == ref.Name {
				ref.UID = string(o.GetUID())
			}
		}
	case 1:
		if was := w.groups; len(was) > 0 {
			ref.UID = string(chosen(w, was))
		}
	}
	return &ref
}

// group returns the name of a group of the namespace.
func (w *randomTenants) group(there []v1alpha1.Object) string {
	names := []string{"root"}
	for _, o := range there {
		if g, ok := o.(*v1alpha1.Group); ok {
			names = append(names, g.Name)
		}
	}
	return chosen(w, names)
}

func (w *randomTenants) change(ctx context.Context, t randomTenant, what string, obj v1alpha1.Object, change func()) {
	GinkgoHelper()
	w.say(what, obj)
	Expect(client.IgnoreNotFound(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := t.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		change()
		return t.Update(ctx, obj)
	}))).To(Succeed(), w.story)
}

func (w *randomTenants) say(what string, obj v1alpha1.Object) {
	w.done[obj.GetUID()] = true
	w.log = append(w.log, fmt.Sprintf("%s %T %s", what, obj, client.ObjectKeyFromObject(obj)))
}

func (w *randomTenants) story() string { return strings.Join(w.log, "\n") }

// objects returns the objects that can claim something, by their names.
func (w *randomTenants) objects(ctx context.Context, in ...client.ListOption) (all []v1alpha1.Object) {
	GinkgoHelper()
	var groups v1alpha1.GroupList
	var projects v1alpha1.ProjectList
	var members v1alpha1.MembershipList
	for _, l := range []client.ObjectList{&groups, &projects, &members} {
		Expect(w.Live().List(ctx, l, in...)).To(Succeed())
	}
	for i := range groups.Items {
		all = append(all, &groups.Items[i])
	}
	for i := range projects.Items {
		all = append(all, &projects.Items[i])
	}
	for i := range members.Items {
		all = append(all, &members.Items[i])
	}
	return all
}

// look checks, while the controllers are idle, that no object has gained a claim that another object held and did not give up, and that every
// reader agrees with the status of the objects.
func (w *randomTenants) look(ctx context.Context) {
	GinkgoHelper()
	objects := w.objects(ctx)
	there, holders := map[types.UID]v1alpha1.Object{}, map[string]types.UID{}
	for _, o := range objects {
		there[o.GetUID()] = o
		for _, key := range o.GetCommonStatus().Claims {
			Expect(holders).NotTo(HaveKey(key), func() string { return "two hold it: " + key + "\n" + w.story() })
			holders[key] = o.GetUID()
		}
	}
	for key, was := range w.held {
		is, taken := holders[key]
		within, _, _ := strings.Cut(strings.SplitN(key, "/", 3)[1], "/")
		if taken && is != was && there[was] != nil && !w.done[was] && !w.done[types.UID(within)] {
			Fail(fmt.Sprintf("%s lost %s to %s:\n%s", there[was].GetName(), key, there[is].GetName(), w.story()))
		}
	}
	w.held = holders
	clear(w.done)
	for _, o := range objects {
		w.readers.expect(ctx, o, w.story)
	}
}

func without(all []string, one string) (rest []string) {
	for _, s := range all {
		if s != one {
			rest = append(rest, s)
		}
	}
	return rest
}

// secretOf returns the value of an access token.
func secretOf(f *forge.Forge, name string) string {
	GinkgoHelper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: forge.PlatformNamespace, Name: name}}
	f.Refresh(s)
	return string(s.Data["token"])
}
