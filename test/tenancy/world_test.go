package tenancy_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/label"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/internal/role"
	"github.com/forgeplane/forgeplane/test/forge"
)

// world has two teams. One of them has everything that a team can have. The other one's namespace belongs to Mallory, who is an editor of that
// namespace and nothing else.
type world struct {
	*forge.Forge
	running *forge.Running

	// These belong to the team that must not be affected.
	team      string
	acme      *v1alpha1.Group
	website   *v1alpha1.Project
	owner     *v1alpha1.Membership
	key       *v1alpha1.DeployKey
	protected *v1alpha1.ProtectedBranch
	trigger   *v1alpha1.TriggerToken
	label     *v1alpha1.Label
	secret    *corev1.Secret
	ada       *v1alpha1.User
	token     *v1alpha1.AccessToken
	storage   *v1alpha1.RepositoryStorage

	// These belong to Mallory.
	space   string
	own     *v1alpha1.Group
	mine    *v1alpha1.Project
	mallory *v1alpha1.User
	editor  client.Client

	before map[string]string
}

func newWorld(rules ...catalog.RootGroupRule) *world {
	GinkgoHelper()
	f := forge.New(cluster, forge.Options{RootGroups: rules})
	w := &world{Forge: f, team: f.NewNamespace(), space: f.NewNamespace()}
	w.storage = f.NewStorage("default")
	w.ada, w.mallory = forge.User("ada").Build(), forge.User("mallory").Build()
	w.token = forge.AccessToken("ada").For(w.ada).Build()
	w.acme = forge.Group("acme").In(w.team).Build()
	w.website = forge.Project("website").In(w.acme).Build()
	w.owner = forge.Membership(w.ada).In(w.acme).As(v1alpha1.RoleOwner).Build()
	w.key = forge.DeployKey("ci").Of(w.website).ReadWrite().Build()
	w.protected = forge.ProtectedBranch("release/*").Of(w.website).Push(forge.Level(w.ada), forge.Level(w.key)).Build()
	w.trigger = forge.TriggerToken("deploy").Of(w.website).OwnedBy(w.ada).Build()
	w.label = forge.LabelTitled("bug").Of(w.website).Build()
	w.secret = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.team, Name: "import", Labels: map[string]string{v1alpha1.LabelSecret: v1alpha1.SecretOfImport},
			Annotations: map[string]string{v1alpha1.AnnotationHost: "http://127.0.0.1:1"},
		}, StringData: map[string]string{"username": "u", "password": "p"},
	}
	f.Create(w.ada, w.mallory, w.token, w.acme, w.website, w.owner, w.key, w.protected, w.trigger, w.label, w.secret)
	w.running = f.Run()
	f.ExpectReady(w.ada, w.mallory, w.token, w.acme, w.website, w.owner, w.key, w.protected, w.trigger, w.label)

	w.editor = cluster.ClientOf("mallory@example.com")
	f.Create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.space, Name: "editor"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "mallory@example.com"}},
	})
	w.youngerFromHere()
	w.own = forge.Group("bolt").In(w.space).Build()
	w.mine = forge.Project("app").In(w.own).Build()
	// Aggregated roles and bindings come into force with a delay.
	Eventually(func() error { return w.editor.Create(GinkgoT().Context(), w.own) }).Should(Succeed())
	w.declare(w.mine)
	f.ExpectReady(w.own, w.mine)
	w.running.ExpectIdle()
	w.before = w.snapshot()
	return w
}

// youngerFromHere makes all later objects younger than the existing ones. Among objects of the same second, the order would be random.
func (w *world) youngerFromHere() {
	GinkgoHelper()
	next := time.Now().Truncate(time.Second).Add(time.Second)
	Eventually(time.Now).Should(BeTemporally(">", next))
}

// declare creates objects as Mallory.
func (w *world) declare(objects ...client.Object) {
	GinkgoHelper()
	for _, o := range objects {
		Expect(w.editor.Create(GinkgoT().Context(), o)).To(Succeed(), "%T %s", o, o.GetName())
	}
}

// valueOf returns the value in the Secret of a token.
func (w *world) valueOf(t *v1alpha1.TriggerToken) []byte {
	GinkgoHelper()
	w.Refresh(t)
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: forge.PlatformNamespace, Name: t.Status.SecretRef.Name}}
	w.Refresh(s)
	return s.Data["token"]
}

// attempt is an object that Mallory declares in her namespace, and the reason why it is not in force.
type attempt struct {
	what   string
	object v1alpha1.Object
	reason string
	words  string
}

// try declares each attempt as Mallory, and expects that it has no effect and that everything else is unchanged.
func (w *world) try(attempts ...attempt) {
	GinkgoHelper()
	for i, a := range attempts {
		By(a.what)
		a.object.SetNamespace(w.space)
		a.object.SetName(fmt.Sprintf("attempt-%d", i))
		if identified, ok := a.object.(v1alpha1.Identified); ok && pinned(identified) {
			// Mallory cannot pin an id. It would not help her either if an administrator did so for her.
			w.expectPinRefused(identified)
			w.Create(a.object)
			continue
		}
		w.declare(a.object)
	}
	for _, a := range attempts {
		Eventually(func(g Gomega) {
			w.Refresh(a.object)
			ready := meta.FindStatusCondition(a.object.GetCommonStatus().Conditions, v1alpha1.ConditionReady)
			g.Expect(ready).NotTo(BeNil())
			g.Expect(ready.Status).To(Equal(metav1.ConditionFalse), a.what)
			g.Expect(ready.Reason).To(Equal(a.reason), a.what)
			g.Expect(ready.Message).To(ContainSubstring(a.words), a.what)
		}).Should(Succeed())
	}
	w.expectUntouched()
}

func pinned(obj v1alpha1.Identified) bool {
	spec, _ := obj.IDs()
	return *spec != 0
}

// expectPinRefused expects that Mallory cannot create obj, because of its id.
func (w *world) expectPinRefused(obj v1alpha1.Identified) {
	GinkgoHelper()
	refused := obj.DeepCopyObject().(client.Object)
	Expect(w.editor.Create(GinkgoT().Context(), refused)).To(pinRefused, "%T %s", obj, obj.GetName())
}

// expectUntouched expects that everything outside Mallory's namespace is unchanged, and that she has not gained any rights there.
func (w *world) expectUntouched() {
	GinkgoHelper()
	w.running.ExpectIdle()
	after := w.snapshot()
	for what := range w.before {
		Expect(after[what]).To(Equal(w.before[what]), what)
	}
	Expect(after).To(HaveLen(len(w.before)), "something is new")
}

// snapshot returns the objects of others, and the rights that exist in them.
func (w *world) snapshot() map[string]string {
	GinkgoHelper()
	ctx := GinkgoT().Context()
	all := map[string]string{}
	lists := []client.ObjectList{&corev1.SecretList{}}
	for _, kind := range v1alpha1.Kinds() {
		if _, watched := kind.(*v1alpha1.RepositoryStorage); !watched { // its status counts the projects of everybody
			lists = append(lists, kind.NewList())
		}
	}
	for _, list := range lists {
		Expect(w.Live().List(ctx, list)).To(Succeed())
		Expect(meta.EachListItem(list, func(o runtime.Object) error {
			// An object that Forgeplane keeps for an object of Mallory does not belong to others.
			hers := func(obj client.Object) bool {
				return obj.GetNamespace() == w.space || strings.HasPrefix(obj.GetAnnotations()[v1alpha1.AnnotationHolder], w.space+"/")
			}
			if obj := o.(client.Object); !hers(obj) {
				text, err := json.Marshal(obj)
				Expect(err).NotTo(HaveOccurred())
				all[fmt.Sprintf("%T %s", obj, client.ObjectKeyFromObject(obj))] = string(text)
			}
			return nil
		})).To(Succeed())
	}
	for _, u := range []*v1alpha1.User{w.ada, w.mallory} {
		inProject, err := w.Catalog.ProjectRole(ctx, u, w.website, time.Now())
		Expect(err).NotTo(HaveOccurred())
		inGroup, err := w.Catalog.RolesIn(ctx, u, catalog.Scope{Groups: []*v1alpha1.Group{w.acme}}, time.Now())
		Expect(err).NotTo(HaveOccurred())
		all["roles of "+u.Name] = fmt.Sprint(inProject, " ", inGroup.Highest())
	}
	Expect(all["roles of mallory"]).To(Equal(fmt.Sprint(role.None, " ", role.None)))
	scope, err := w.Catalog.ProjectScope(ctx, w.website)
	Expect(err).NotTo(HaveOccurred())
	rules, err := protection.Rules(ctx, w.Catalog, scope, []string{"main", "release/1"}, time.Now())
	Expect(err).NotTo(HaveOccurred())
	all["rules"] = fmt.Sprintf("%+v", rules)
	labels, err := label.All(ctx, w.Catalog, scope)
	Expect(err).NotTo(HaveOccurred())
	all["labels"] = ""
	for _, l := range labels {
		all["labels"] += fmt.Sprintf("%s/%s %+v\n", l.Namespace, l.Name, l.Spec)
	}
	for _, path := range []string{"acme", "acme/website"} {
		holder, err := w.Catalog.ByPath(ctx, path)
		Expect(err).NotTo(HaveOccurred())
		all["path "+path] = string(holder.GetUID())
	}
	Expect(filepath.Join(w.storage.Spec.Path, repository.Path(w.website))).To(BeADirectory())
	return all
}

// refs returns references to an object of another team, by every way to name it.
func refs(name, path string, id int64) map[string]v1alpha1.Reference {
	all := map[string]v1alpha1.Reference{"name": {Name: name}, "id": {ID: id}}
	if path != "" {
		all["path"] = v1alpha1.Reference{Path: path}
		all["path in other letters"] = v1alpha1.Reference{Path: upper(path)}
	}
	return all
}

func upper(s string) string {
	out := []byte(s)
	for i, c := range out {
		if 'a' <= c && c <= 'z' {
			out[i] = c - 'a' + 'A'
		}
	}
	return string(out)
}
