package controllers_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1 "k8s.io/api/core/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/controllers"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/ids"
	"github.com/forgeplane/forgeplane/internal/label"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/internal/variable"
)

const hold = "example.com/hold"

// cluster is an API server in memory whose writes appear in the cache at once.
type cluster struct {
	client.Client
	cache *catalogtest.World
}

func (c *cluster) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return c.cache.Reader().Get(ctx, key, o, opts...)
}

func (c *cluster) List(ctx context.Context, l client.ObjectList, opts ...client.ListOption) error {
	return c.cache.Reader().List(ctx, l, opts...)
}

// show updates the cache with the current state of an object.
func (c *cluster) show(ctx context.Context, o client.Object, err error) error {
	if err != nil {
		return err
	}
	fresh := o.DeepCopyObject().(client.Object)
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(o), fresh); err != nil {
		c.cache.Remove(o)
		return client.IgnoreNotFound(err)
	}
	c.cache.Put(fresh)
	return nil
}

func (c *cluster) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return c.show(ctx, o, c.Client.Create(ctx, o, opts...))
}

func (c *cluster) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	return c.show(ctx, o, c.Client.Update(ctx, o, opts...))
}

func (c *cluster) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	return c.show(ctx, o, c.Client.Patch(ctx, o, p, opts...))
}

func (c *cluster) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return c.show(ctx, o, c.Client.Delete(ctx, o, opts...))
}

func (c *cluster) Status() client.SubResourceWriter { return status{c.Client.Status(), c} }

type status struct {
	client.SubResourceWriter
	of *cluster
}

func (s status) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	return s.of.show(ctx, o, s.SubResourceWriter.Patch(ctx, o, p, opts...))
}

type noEvents struct{}

func (noEvents) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}

// forge is a forge in which random tenants work.
type forge struct {
	*WithT
	t           *testing.T
	random      *rand.Rand
	cluster     *cluster
	catalog     *catalog.Catalog
	controllers map[string]reconcile.Reconciler
	made        int
	// done are the UIDs of the objects that a tenant has changed since the last look.
	done map[types.UID]bool
	// held are the holders at the last look, by the canonical form of the claim.
	held map[string]types.UID
	// above are the parents that paths led to when a tenant last changed a group.
	above map[types.UID]types.UID
	log   []string
	// volumes is the directory with the directories of shards.
	volumes string
}

var namespaces = []string{"red", "green", "blue"}

func newForge(t *testing.T, seed uint64) *forge {
	t.Helper()
	scheme := runtime.NewScheme()
	f := &forge{
		WithT: NewWithT(t), t: t, random: rand.New(rand.NewPCG(seed, 0)), done: map[types.UID]bool{}, held: map[string]types.UID{}, //nolint:gosec // the run must be repeatable
		above: map[types.UID]types.UID{},
	}
	f.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	f.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	var of []client.Object
	for _, o := range v1alpha1.Kinds() {
		of = append(of, o)
	}
	f.cluster = &cluster{
		fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(of...).
			WithIndex(&v1alpha1.RetainedRepository{}, "spec.storage", func(client.Object) []string { return nil }).Build(),
		catalogtest.New(t),
	}
	f.catalog = f.cluster.cache.Catalog()
	counted := ids.New(f.cluster, f.cluster.Client, f.cluster.Client, platform, ids.Range{})
	c, cat := f.cluster, f.catalog
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC))
	f.controllers = map[string]reconcile.Reconciler{}
	parts := controllers.Parts{
		Client: c, Secrets: c.Client, Events: noEvents{}, Catalog: cat, IDs: counted, Repositories: repository.New(nil, cat), Clock: clock,
		Namespace: platform,
	}
	for _, one := range parts.All() {
		f.controllers[one.Kind] = one.Reconciler
	}
	f.createSecrets()
	f.createForBots()
	f.createDirectories()
	return f
}

// claimants returns the kinds of the random objects.
func claimants() []v1alpha1.Object {
	return []v1alpha1.Object{
		&v1alpha1.Group{}, &v1alpha1.Project{}, &v1alpha1.User{}, &v1alpha1.Membership{}, &v1alpha1.Label{}, &v1alpha1.ProtectedBranch{},
		&v1alpha1.DeployKey{}, &v1alpha1.JobTokenScope{}, &v1alpha1.AccessToken{}, &v1alpha1.BotToken{}, &v1alpha1.RepositoryStorage{},
		&v1alpha1.Variable{},
	}
}

func kindOf(o client.Object) string { return strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1alpha1.") }

func all[T any](f *forge, l client.ObjectList, items func() []T) []*T {
	f.t.Helper()
	f.Expect(f.cluster.List(f.t.Context(), l)).To(Succeed())
	found := items()
	pointers := make([]*T, len(found))
	for i := range found {
		pointers[i] = &found[i]
	}
	// The cache returns them in any order, but a run must be repeatable from its seed.
	slices.SortFunc(pointers, func(a, b *T) int {
		return strings.Compare(any(a).(client.Object).GetName(), any(b).(client.Object).GetName())
	})
	return pointers
}

func (f *forge) groups() []*v1alpha1.Group {
	var l v1alpha1.GroupList
	return all(f, &l, func() []v1alpha1.Group {
		return slices.DeleteFunc(l.Items, func(g v1alpha1.Group) bool { return g.Name == homeOfBots })
	})
}

func (f *forge) projects() []*v1alpha1.Project {
	var l v1alpha1.ProjectList
	return all(f, &l, func() []v1alpha1.Project { return l.Items })
}

func (f *forge) users() []*v1alpha1.User {
	var l v1alpha1.UserList
	return all(f, &l, func() []v1alpha1.User { return l.Items })
}

func (f *forge) memberships() []*v1alpha1.Membership {
	var l v1alpha1.MembershipList
	return all(f, &l, func() []v1alpha1.Membership { return l.Items })
}

func (f *forge) labels() []*v1alpha1.Label {
	var l v1alpha1.LabelList
	return all(f, &l, func() []v1alpha1.Label { return l.Items })
}

func (f *forge) protections() []*v1alpha1.ProtectedBranch {
	var l v1alpha1.ProtectedBranchList
	return all(f, &l, func() []v1alpha1.ProtectedBranch { return l.Items })
}

// objects returns all objects.
func (f *forge) objects() (found []v1alpha1.Object) {
	for _, o := range f.groups() {
		found = append(found, o)
	}
	for _, o := range f.projects() {
		found = append(found, o)
	}
	for _, o := range f.users() {
		found = append(found, o)
	}
	for _, o := range f.memberships() {
		found = append(found, o)
	}
	for _, o := range f.labels() {
		found = append(found, o)
	}
	for _, o := range f.protections() {
		found = append(found, o)
	}
	for _, o := range f.deployKeys() {
		found = append(found, o)
	}
	for _, o := range f.jobTokenScopes() {
		found = append(found, o)
	}
	for _, o := range f.accessTokens() {
		found = append(found, o)
	}
	for _, o := range f.botTokens() {
		found = append(found, o)
	}
	for _, o := range f.storages() {
		found = append(found, o)
	}
	for _, o := range f.variables() {
		found = append(found, o)
	}
	return found
}

func one[T any](f *forge, from []T) T { return from[f.random.IntN(len(from))] }

func (f *forge) word() string { return one(f, []string{"a", "b", "c", "B"}) }

// meaning adds to some references the UID of the object that they refer to, whether or not it exists.
func (f *forge) meaning(ref v1alpha1.Reference, uid types.UID) v1alpha1.Reference {
	switch f.random.IntN(5) {
	case 0:
		ref.UID = string(uid)
	case 1:
		ref.UID = "former"
	}
	return ref
}

// spec makes an object claim something.
func (f *forge) spec(o v1alpha1.Object) {
	groups, projects, users := f.groups(), f.projects(), f.users()
	uids := map[string]types.UID{}
	named := func(from []string) v1alpha1.Reference {
		name := one(f, append(from, "nobody"))
		return f.meaning(v1alpha1.Reference{Name: name}, uids[name])
	}
	var inGroups, inProjects, all []string
	for _, g := range groups {
		uids[g.Name] = g.UID
		if g.Namespace == o.GetNamespace() {
			inGroups = append(inGroups, g.Name)
		}
	}
	for _, p := range projects {
		uids[p.Name] = p.UID
		if p.Namespace == o.GetNamespace() {
			inProjects = append(inProjects, p.Name)
		}
	}
	for _, u := range users {
		uids[u.Name] = u.UID
		all = append(all, u.Name)
	}
	target := func(project, group **v1alpha1.Reference) {
		*project, *group = nil, nil
		if ref := named(inGroups); f.random.IntN(2) == 0 {
			*group = &ref
		} else {
			ref = named(inProjects)
			*project = &ref
		}
	}
	switch o := o.(type) {
	case *v1alpha1.Group:
		o.Spec.Path, o.Spec.ParentRef = f.word(), nil
		o.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: one(f, []v1alpha1.NamespacesFrom{v1alpha1.NamespacesFromAll, v1alpha1.NamespacesFromSame})}
		switch ref := named(inGroups); f.random.IntN(4) {
		case 0, 1:
			o.Spec.ParentRef = &ref
		case 2:
			ref = v1alpha1.Reference{Path: f.word()}
			if f.random.IntN(3) == 0 {
				ref.Path += "/" + f.word()
			}
			if len(groups) > 0 {
				ref = f.meaning(ref, one(f, groups).UID)
			}
			o.Spec.ParentRef = &ref
		}
	case *v1alpha1.Project:
		o.Spec.Path, o.Spec.GroupRef = f.word(), named(inGroups)
	case *v1alpha1.User:
		o.Spec.Username, o.Spec.Email = f.word(), f.word()+"@example.com"
	case *v1alpha1.Membership:
		o.Spec.UserRef, o.Spec.Role = named(all), v1alpha1.RoleOwner
		target(&o.Spec.ProjectRef, &o.Spec.GroupRef)
	case *v1alpha1.Label:
		o.Spec.Title, o.Spec.Color = f.word(), "#fff"
		target(&o.Spec.ProjectRef, &o.Spec.GroupRef)
	case *v1alpha1.ProtectedBranch:
		o.Spec.Branch = f.word()
		target(&o.Spec.ProjectRef, &o.Spec.GroupRef)
	case *v1alpha1.BotToken:
		f.specOfBot(o, target)
	case *v1alpha1.Variable:
		f.specOfVariable(o, target)
	case *v1alpha1.RepositoryStorage:
		f.specOfStorage(o)
	default:
		f.specOfFixed(o, func() v1alpha1.Reference { return named(inProjects) }, func() v1alpha1.Reference { return named(all) })
	}
	f.pin(o)
}

// act does something that a tenant can do.
func (f *forge) act() {
	ctx, objects := f.t.Context(), f.objects()
	say := func(what string, o v1alpha1.Object) {
		f.done[o.GetUID()] = true
		f.log = append(f.log, fmt.Sprintf("%s %s %s/%s", what, kindOf(o), o.GetNamespace(), o.GetName()))
	}
	if n := f.random.IntN(10); n < 3 && len(objects) < 40 || len(objects) == 0 {
		o := one(f, claimants())
		f.made++
		o.SetName(fmt.Sprintf("o%d", f.made))
		o.SetUID(types.UID(fmt.Sprintf("u%03d", f.random.IntN(1000)*1000+f.made)))
		o.SetGeneration(1)
		// Some objects are created in the same second.
		o.SetCreationTimestamp(metav1.Time{Time: time.Date(2026, 1, 1, 0, f.made/60, f.made%60/2, 0, time.UTC)})
		switch o.(type) {
		case *v1alpha1.User, *v1alpha1.AccessToken, *v1alpha1.RepositoryStorage:
		default:
			o.SetNamespace(one(f, namespaces))
		}
		f.spec(o)
		say("create", o)
		f.Expect(f.cluster.Create(ctx, o)).To(Succeed())
		return
	}
	if f.random.IntN(20) == 0 {
		if f.random.IntN(2) == 0 {
			f.fillSecret()
		} else {
			f.fillBotSecret()
		}
		return
	}
	o := one(f, objects)
	switch n := f.random.IntN(10); {
	case n < 6:
		f.spec(o)
		o.SetGeneration(o.GetGeneration() + 1)
		say("change", o)
		f.Expect(f.cluster.Update(ctx, o)).To(Succeed())
	case n < 7 && o.GetDeletionTimestamp().IsZero():
		o.SetFinalizers(append(o.GetFinalizers(), hold))
		f.Expect(f.cluster.Update(ctx, o)).To(Succeed())
	case n < 9:
		say("delete", o)
		if len(o.GetFinalizers()) > 0 && o.GetDeletionTimestamp().IsZero() {
			o.SetGeneration(o.GetGeneration() + 1) // as the API server does
			f.Expect(f.cluster.Update(ctx, o)).To(Succeed())
		}
		f.Expect(f.cluster.Delete(ctx, o)).To(Succeed())
	case len(o.GetFinalizers()) > 0:
		say("release", o)
		o.SetFinalizers(nil)
		f.Expect(f.cluster.Update(ctx, o)).To(Succeed())
	}
}

// reconcile runs the controller of an object.
func (f *forge) reconcile(o v1alpha1.Object) {
	_, err := f.controllers[kindOf(o)].Reconcile(f.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
	f.Expect(err).NotTo(HaveOccurred())
}

// settle reconciles everything until nothing changes any more.
func (f *forge) settle() {
	for range 50 {
		before := f.cluster.cache.Changes()
		for _, o := range f.objects() {
			f.reconcile(o)
		}
		if after := f.cluster.cache.Changes(); after == before {
			return
		}
	}
	f.t.Fatal("the controllers do not come to rest:", f.story())
}

func (f *forge) story() string { return strings.Join(f.log[max(0, len(f.log)-40):], "\n") }

// holders returns the holder of each claim, and fails if a claim has two.
func (f *forge) holders() map[string]v1alpha1.Object {
	holders := map[string]v1alpha1.Object{}
	for _, o := range f.objects() {
		for _, key := range append(idInForce(o), o.GetCommonStatus().Claims...) {
			f.Expect(holders).NotTo(HaveKey(key), "two hold %s: %s", key, f.story())
			holders[key] = o
		}
	}
	f.apart()
	return holders
}

// look checks, while the controllers are idle, that an object lost a claim only if its tenant or the owner of its container changed something, and
// that all readers agree.
func (f *forge) look() {
	holders := f.holders()
	there := map[types.UID]v1alpha1.Object{}
	for _, o := range f.objects() {
		there[o.GetUID()] = o
	}
	for key, uid := range f.held {
		if o := there[uid]; o != nil && !f.done[uid] && (!followsPath(o) || isID(key)) && f.declares(o, key) {
			f.Expect(holders[key]).NotTo(BeNil(), "%s lost %s: %s %+v", o.GetName(), key, f.story(), o)
			f.Expect(holders[key].GetUID()).To(Equal(uid), "%s lost %s: %s", o.GetName(), key, f.story())
		}
	}
	f.lookAbove()
	clear(f.held)
	clear(f.done)
	for key, o := range holders {
		f.held[key] = o.GetUID()
	}
	f.readersAgree(holders)
}

// followsPath reports whether an object depends on another one by path. Such a path can temporarily lead elsewhere when the holder of the path
// changes.
func followsPath(o v1alpha1.Object) bool {
	switch o := o.(type) {
	case *v1alpha1.Group:
		return o.Spec.ParentRef != nil && o.Spec.ParentRef.Path != ""
	case *v1alpha1.DeployKey:
		return o.Spec.ProjectRef.Path != ""
	case *v1alpha1.JobTokenScope:
		return o.Spec.ProjectRef.Path != ""
	default:
		return false
	}
}

// lookAbove checks that a path brought no group below a group of another namespace, unless the group itself was changed.
func (f *forge) lookAbove() {
	for uid := range f.done {
		delete(f.above, uid)
	}
	for _, g := range f.groups() {
		// A group that is being deleted keeps its status when its parent is deleted.
		if !followsPath(g) || g.Status.FullPath == "" || !g.DeletionTimestamp.IsZero() {
			continue
		}
		parent, err := f.catalog.Parent(f.t.Context(), g)
		f.Expect(err).NotTo(HaveOccurred())
		if was, ok := f.above[g.UID]; ok && was != parent.UID {
			f.Expect(parent.Namespace).To(Equal(g.Namespace), "%s follows its path to %s: %s", g.Name, parent.Name, f.story())
		}
		f.above[g.UID] = parent.UID
	}
}

// declares reports whether the spec of an object currently makes a claim.
func (f *forge) declares(o v1alpha1.Object, key string) bool {
	if isID(key) {
		return slices.Contains(declaredID(o), key)
	}
	declared, err := f.declared(o)
	f.Expect(err).NotTo(HaveOccurred())
	for _, k := range declared {
		if k.String() == key {
			return true
		}
	}
	return false
}

func (f *forge) declared(o v1alpha1.Object) ([]claim.Claim, error) {
	ctx := f.t.Context()
	switch o := o.(type) {
	case *v1alpha1.Group:
		return catalog.GroupClaims(ctx, f.catalog, o)
	case *v1alpha1.Project:
		return catalog.ProjectClaims(ctx, f.catalog, o)
	case *v1alpha1.User:
		return catalog.UserClaims(ctx, f.catalog, o)
	case *v1alpha1.Membership:
		return catalog.MembershipClaims(ctx, f.catalog, o)
	case *v1alpha1.Label:
		return label.Claims(ctx, f.catalog, o)
	case *v1alpha1.ProtectedBranch:
		return protection.Claims(ctx, f.catalog, o)
	case *v1alpha1.BotToken:
		return f.declaredByBot(ctx, o)
	case *v1alpha1.RepositoryStorage:
		return []claim.Claim{repository.DirectoryClaim(o)}, nil
	case *v1alpha1.Variable:
		return variable.Claims(ctx, f.catalog, o)
	default:
		return f.declaredByFixed(o)
	}
}

// readersAgree checks that every reader, including a server that has just started, finds the objects whose status says so.
func (f *forge) readersAgree(holders map[string]v1alpha1.Object) {
	ctx := f.t.Context()
	for _, c := range []*catalog.Catalog{f.catalog, catalog.New(f.cluster.cache.Reader())} {
		seen := map[types.UID]bool{}
		tree := c.View(nil, time.Now())
		inGroups, err := tree.Groups(ctx)
		f.Expect(err).NotTo(HaveOccurred())
		inProjects, err := tree.Projects(ctx)
		f.Expect(err).NotTo(HaveOccurred())
		for _, s := range append(inGroups, inProjects...) {
			seen[s.Target().GetUID()] = true
			f.inPlace(s.Scope)
		}
		place := func(o v1alpha1.Object, fullPath string) {
			if idInForce(o) == nil {
				f.Expect(fullPath).To(BeEmpty(), "%s: %s", o.GetName(), f.story())
				return // it waits for another id, and is not served until then
			}
			listed := fullPath != "" && o.GetDeletionTimestamp().IsZero()
			f.Expect(seen[o.GetUID()]).To(Equal(listed), "%s at %q in the tree: %s", o.GetName(), fullPath, f.story())
			if fullPath != "" && listed {
				f.Expect(c.ByPath(ctx, fullPath)).To(HaveField("UID", o.GetUID()), "%s: %s", fullPath, f.story())
			}
		}
		for _, g := range f.groups() {
			place(g, g.Status.FullPath)
		}
		for _, p := range f.projects() {
			place(p, p.Status.FullPath)
		}
		for _, o := range f.objects() {
			f.agrees(c, o, holders)
			f.agreesOnID(c, o, holders)
		}
	}
}

// inPlace checks that each object of a chain is below the next one according to its own reference, including the UID if it has one.
func (f *forge) inPlace(s catalog.Scope) {
	if p := s.Project; p != nil {
		f.Expect(f.catalog.Group(f.t.Context(), p.Namespace, p.Spec.GroupRef)).To(HaveField("UID", s.Groups[0].UID), "%s: %s", p.Name, f.story())
		f.Expect(p.Spec.GroupRef.UID).To(BeElementOf("", string(s.Groups[0].UID)), "%s: %s", p.Name, f.story())
	}
	for i, g := range s.Groups[:len(s.Groups)-1] {
		above := s.Groups[i+1].UID
		f.Expect(f.catalog.Parent(f.t.Context(), g)).To(HaveField("UID", above), "%s: %s", g.Name, f.story())
		f.Expect(g.Spec.ParentRef.UID).To(BeElementOf("", string(above)), "%s: %s", g.Name, f.story())
	}
}

// free checks that a group or project is not kept from its place by an object that refers to a different place.
func (f *forge) free(o v1alpha1.Object) {
	ctx := f.t.Context()
	var s catalog.Scope
	var err error
	switch o := o.(type) {
	case *v1alpha1.Group:
		s.Groups, err = f.catalog.Ancestors(ctx, o)
	case *v1alpha1.Project:
		s, err = f.catalog.ProjectScope(ctx, o)
	default:
		return
	}
	if catalog.Misplaced(err) {
		return
	}
	f.Expect(err).NotTo(HaveOccurred())
	holder, err := f.catalog.HolderAt(ctx, s)
	if catalog.Misplaced(err) {
		return
	}
	f.Expect(err).NotTo(HaveOccurred())
	place, err := f.declared(holder.(v1alpha1.Object))
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(place).To(ContainElement(s.PathClaim()), "%s keeps %s from its place: %s", holder.GetName(), o.GetName(), f.story())
}

// agrees checks that looking up a claim of an object finds its holder.
func (f *forge) agrees(c *catalog.Catalog, o v1alpha1.Object, holders map[string]v1alpha1.Object) {
	ctx := f.t.Context()
	declared, err := f.declared(o)
	f.Expect(err).NotTo(HaveOccurred())
	for _, k := range declared {
		holder := holders[k.String()]
		if holder == nil {
			f.free(o)
			continue // it is free: its container has no place or is being deleted
		}
		var found client.Object
		switch o := o.(type) {
		case *v1alpha1.User:
			if k == claim.Username(o.Spec.Username) {
				found, err = c.UserByUsername(ctx, o.Spec.Username)
			} else {
				found, err = c.UserByEmail(ctx, o.Spec.Email)
			}
		case *v1alpha1.Membership:
			u, userErr := c.User(ctx, o.Spec.UserRef)
			f.Expect(userErr).NotTo(HaveOccurred())
			s, scopeErr := c.ScopeOf(ctx, o)
			if scopeErr != nil {
				continue
			}
			found, err = c.MembershipIn(ctx, u, s)
		case *v1alpha1.ProtectedBranch:
			s, scopeErr := c.ScopeOf(ctx, o)
			if scopeErr != nil {
				continue
			}
			found, err = protection.Holder(ctx, c, s, o.Spec.Branch)
		case *v1alpha1.Label:
			s, scopeErr := c.ScopeOf(ctx, o)
			if scopeErr != nil {
				continue
			}
			found, err = label.Holder(ctx, c, s, o.Spec.Title)
		case *v1alpha1.Group, *v1alpha1.Project:
			continue // lookups in the tree are already checked
		case *v1alpha1.BotToken:
			found, err = f.foundByBot(ctx, c, o, k)
		case *v1alpha1.RepositoryStorage:
			found, err = repository.DirectoryHolder(ctx, c, o)
		case *v1alpha1.Variable:
			if found, err = f.holderOfVariable(c, o); found == nil && err == nil {
				continue
			}
		default:
			if found, err = f.foundByFixed(c, o, k); found == nil && err == nil {
				continue
			}
		}
		f.Expect(err).NotTo(HaveOccurred())
		f.Expect(found.GetUID()).To(Equal(holder.GetUID()), "who holds %s: %s", k, f.story())
	}
}

func TestClaim_changesHandsOnlyThroughItsHolder(t *testing.T) {
	first, err := strconv.ParseUint(os.Getenv("FORGEPLANE_TEST_SEED"), 10, 64)
	if err != nil {
		first = 8 // from this seed on, objects with UIDs in their references collide
	}
	for seed := first; seed < first+4; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			f := newForge(t, seed)
			for range 150 {
				for range 1 + f.random.IntN(3) {
					f.act()
					// Controllers can reconcile in between.
					for range f.random.IntN(4) {
						f.reconcile(one(f, append(f.objects(), &v1alpha1.Group{})))
						f.holders()
					}
				}
				f.settle()
				f.look()
			}
		})
	}
}
