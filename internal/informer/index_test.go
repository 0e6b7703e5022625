package informer

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unsafe"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fieldmanager"
)

// startCache starts a cache of controller-runtime that holds the ConfigMaps, with indexes of their teams and colours.
func startCache(t *testing.T, options ctrlcache.Options, objects ...corev1.ConfigMap) (ctrlcache.Cache, *Factory, *watch.FakeWatcher) {
	t.Helper()
	g := NewWithT(t)
	events := watch.NewFake()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: objects}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return events, nil },
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"ConfigMap", "Secret"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	factory := &Factory{}
	options.Scheme, options.Mapper, options.HTTPClient = clientgoscheme.Scheme, mapper, http.DefaultClient
	options.NewInformer = func(_ cache.ListerWatcher, o runtime.Object, resync time.Duration, by cache.Indexers) cache.SharedIndexInformer {
		return factory.New(lw, o, resync, by)
	}
	c, err := ctrlcache.New(&rest.Config{Host: "http://nobody.invalid"}, options)
	g.Expect(err).NotTo(HaveOccurred())
	for _, field := range []string{"team", "colour"} {
		g.Expect(c.IndexField(t.Context(), &corev1.ConfigMap{}, field, func(o client.Object) []string {
			return []string{o.(*corev1.ConfigMap).Data[field]}
		})).To(Succeed())
	}
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { ended <- c.Start(ctx) }()
	t.Cleanup(func() { stop(); g.Expect(<-ended).To(Succeed()) })
	g.Expect(c.WaitForCacheSync(t.Context())).To(BeTrue())
	return c, factory, events
}

func configMap(namespace, name, team, colour string) corev1.ConfigMap {
	return corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: "1"},
		Data:       map[string]string{"team": team, "colour": colour},
	}
}

func TestIndex_findsObjectsInOneOrAllNamespaces(t *testing.T) {
	c, factory, events := startCache(t, ctrlcache.Options{},
		configMap("a", "one", "web/shop", "red"), configMap("a", "two", "web/shop", "blue"),
		configMap("b", "three", "web/shop", "red"), configMap("b", "four", "db", "red"))
	names := func(options ...client.ListOption) func(g Gomega) []string {
		return func(g Gomega) (names []string) {
			var l corev1.ConfigMapList
			g.Expect(c.List(t.Context(), &l, options...)).To(Succeed())
			for i := range l.Items {
				names = append(names, l.Items[i].Name)
			}
			return names
		}
	}
	web, red := client.MatchingFields{"team": "web/shop"}, client.MatchingFields{"team": "web/shop", "colour": "red"}
	for _, tt := range []struct {
		options []client.ListOption
		want    []string
	}{
		{[]client.ListOption{web}, []string{"one", "two", "three"}},
		{[]client.ListOption{web, client.InNamespace("a")}, []string{"one", "two"}},
		{[]client.ListOption{web, client.InNamespace("web")}, nil},
		{[]client.ListOption{red}, []string{"one", "three"}},
		{[]client.ListOption{red, client.InNamespace("b")}, []string{"three"}},
		{[]client.ListOption{client.InNamespace("b")}, []string{"three", "four"}},
		{[]client.ListOption{client.MatchingFields{"team": "shop"}}, nil},
	} {
		t.Run(fmt.Sprint(tt.options), func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(names(tt.options...)(g)).To(ConsistOf(tt.want))
		})
	}
	g := NewWithT(t)
	direct := func(team string) (names []string) {
		found, ok := factory.ByIndex("*v1.ConfigMap", "team", team)
		g.Expect(ok).To(BeTrue())
		for _, o := range found {
			names = append(names, o.(*corev1.ConfigMap).Name)
		}
		return names
	}
	g.Expect(direct("web/shop")).To(ConsistOf("one", "two", "three"))
	g.Expect(direct("shop")).To(BeEmpty())
	for _, other := range [][2]string{{"*v1.Secret", "team"}, {"*v1.ConfigMap", "size"}} {
		_, ok := factory.ByIndex(other[0], other[1], "web/shop")
		g.Expect(ok).To(BeFalse(), "%v is for the cache to answer", other)
	}
	found, ok := factory.ByName("*v1.ConfigMap", client.ObjectKey{Namespace: "b", Name: "four"})
	g.Expect(ok).To(BeTrue())
	g.Expect(found).To(HaveField("Name", "four"))
	found, ok = factory.ByName("*v1.ConfigMap", client.ObjectKey{Namespace: "b", Name: "five"})
	g.Expect(ok).To(BeTrue())
	g.Expect(found).To(BeNil())
	_, ok = factory.ByName("*v1.Secret", client.ObjectKey{Name: "four"})
	g.Expect(ok).To(BeFalse())
	moved := configMap("a", "one", "db", "red")
	moved.ResourceVersion = "2"
	events.Modify(&moved)
	g.Eventually(names(web)).Should(ConsistOf("two", "three"))
	g.Expect(direct("web/shop")).To(ConsistOf("two", "three"))
	g.Eventually(names(client.MatchingFields{"team": "db"}, client.InNamespace("a"))).Should(ConsistOf("one"))
	events.Delete(&moved)
	g.Eventually(names(client.MatchingFields{"team": "db"})).Should(ConsistOf("four"))
}

func TestObjects_shareEqualValues(t *testing.T) {
	g := NewWithT(t)
	var objects []corev1.ConfigMap
	for n := range 3 {
		o := configMap("a", fmt.Sprint(n), "", "")
		o.Labels = map[string]string{"app": "shop", "part": "web"}
		o.OwnerReferences = []metav1.OwnerReference{{Kind: "Project", Name: "shop", UID: "1"}}
		o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
		objects = append(objects, o)
	}
	objects[2].Labels["part"] = "db"
	objects[2].OwnerReferences[0].UID = "2"
	options := (&Factory{}).CacheOptions("platform", true)
	options.ByObject = nil
	c, _, _ := startCache(t, options, objects...)
	var l corev1.ConfigMapList
	g.Expect(c.List(t.Context(), &l, client.UnsafeDisableDeepCopy)).To(Succeed())
	held := map[string]corev1.ConfigMap{}
	for i := range l.Items {
		held[l.Items[i].Name] = l.Items[i]
		g.Expect(l.Items[i].ManagedFields).To(BeEmpty())
	}
	same := func(a, b any) bool { return fmt.Sprintf("%p", a) == fmt.Sprintf("%p", b) }
	g.Expect(same(held["0"].Labels, held["1"].Labels)).To(BeTrue())
	g.Expect(same(held["0"].OwnerReferences, held["1"].OwnerReferences)).To(BeTrue())
	g.Expect(held["2"].Labels).To(HaveKeyWithValue("part", "db"))
	g.Expect(held["2"].OwnerReferences[0].UID).To(BeEquivalentTo("2"))

	var copied corev1.ConfigMap
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "0"}, &copied)).To(Succeed())
	copied.Labels["part"] = "changed"
	g.Expect(held["1"].Labels).To(HaveKeyWithValue("part", "web"))
}

func TestSharing_isBounded(t *testing.T) {
	g := NewWithT(t)
	s := newSharing()
	for n := range maxShared + 2 {
		_, err := s.transform(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"number": fmt.Sprint(n)}}})
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(len(s.labels)).To(BeNumerically("<", 10))
	gone := cache.DeletedFinalStateUnknown{Key: "a/b"}
	g.Expect(s.transform(gone)).To(Equal(gone))
}

func TestTransform_sharesTextsAndLeavesNoRoomInLists(t *testing.T) {
	g := NewWithT(t)
	rule := func(branch string) *v1alpha1.ProtectedBranch {
		b := &v1alpha1.ProtectedBranch{Spec: v1alpha1.ProtectedBranchSpec{
			ProjectRef: &v1alpha1.Reference{Name: strings.Clone("web")}, Branch: branch,
			Push: append(make([]v1alpha1.AccessLevel, 0, 4), v1alpha1.AccessLevel{UserRef: &v1alpha1.Reference{Name: strings.Clone("mary")}}),
		}}
		b.Status.Conditions = append(make([]metav1.Condition, 0, 4), metav1.Condition{
			Type: strings.Clone("Ready"), Reason: "Ready", Message: strings.Repeat(branch, maxText), LastTransitionTime: metav1.Unix(1e9, 0),
		})
		return b
	}
	s := newSharing()
	first, second := rule("main"), rule("next")
	want := second.DeepCopy()
	g.Expect(s.transform(first)).To(BeIdenticalTo(first))
	g.Expect(s.transform(second)).To(Equal(want))
	for _, texts := range [][2]string{
		{first.Spec.ProjectRef.Name, second.Spec.ProjectRef.Name},
		{first.Spec.Push[0].UserRef.Name, second.Spec.Push[0].UserRef.Name},
		{first.Status.Conditions[0].Type, second.Status.Conditions[0].Type},
	} {
		g.Expect(unsafe.StringData(texts[0])).To(BeIdenticalTo(unsafe.StringData(texts[1])), texts[0])
	}
	g.Expect(second.Spec.Push).To(HaveCap(1))
	g.Expect(second.Status.Conditions).To(HaveCap(1))
}

func TestTransform_keepsTimeOfChangeOfTriggerTokens(t *testing.T) {
	g := NewWithT(t)
	changed := metav1.Time{Time: time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)}
	object := metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "kubectl", Time: &changed, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:description":{}}}`)},
		{Manager: "forgeplane", Time: &metav1.Time{Time: changed.Add(time.Hour)}, Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`)},
	}}
	from := pages{ahead: &ahead{}, changes: &changes{store: cache.NewStore(cache.MetaNamespaceKeyFunc)}, from: &cache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
		return &v1alpha1.TriggerTokenList{Items: []v1alpha1.TriggerToken{{ObjectMeta: object}}}, nil
	}}}
	listed, err := from.ListWithContext(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	token := &listed.(*v1alpha1.TriggerTokenList).Items[0]
	g.Expect(newSharing().transform(token)).To(BeIdenticalTo(token))
	g.Expect(fieldmanager.Changed(token)).To(BeTemporally("==", changed.Time))
	g.Expect(token.ManagedFields).To(HaveLen(1))

	other := &v1alpha1.Label{ObjectMeta: object}
	g.Expect(newSharing().transform(other)).To(HaveField("ManagedFields", BeEmpty()))
}

func TestTransform_keepsWhoDeclaresObjectsWithWrongOwner(t *testing.T) {
	g := NewWithT(t)
	object := metav1.ObjectMeta{
		Name: "a", OwnerReferences: []metav1.OwnerReference{{APIVersion: "forgeplane.dev/v1alpha1", Kind: "Project", Name: "web", UID: "1"}},
		ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "argocd-controller", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:branch":{}}}`)},
			{Manager: "forgeplane", Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`)},
		},
	}
	wrong, right := &v1alpha1.ProtectedBranch{ObjectMeta: object}, &v1alpha1.ProtectedBranch{ObjectMeta: object}
	right.OwnerReferences = nil
	// A watch takes the digest of an object before the cache transforms it.
	before, beforeRight := digest(wrong), digest(right)
	s := newSharing()
	g.Expect(s.transform(wrong)).To(HaveField("ManagedFields", ConsistOf(HaveField("Manager", "argocd-controller"))))
	g.Expect(s.transform(right)).To(HaveField("ManagedFields", BeEmpty()))
	g.Expect([]uint64{digest(wrong), digest(right)}).To(Equal([]uint64{before, beforeRight}))
	g.Expect(s.transform(&v1alpha1.Project{ObjectMeta: object})).To(HaveField("ManagedFields", BeEmpty()))
}
