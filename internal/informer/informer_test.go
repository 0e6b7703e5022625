package informer

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

func TestInformer_readsPagesAndThenWatches(t *testing.T) {
	g := NewWithT(t)
	const there = 1234
	var pagesRead, all atomic.Int64
	events := watch.NewFake()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if o.ResourceVersion == "0" || o.Limit == 0 {
				all.Add(1)
			}
			pagesRead.Add(1)
			from := 0
			if o.Continue != "" {
				from, _ = strconv.Atoi(o.Continue)
			}
			list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
			for n := from; n < there && len(list.Items) < int(o.Limit); n++ {
				list.Items = append(list.Items, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
					Name: fmt.Sprint(n), ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
				}})
			}
			if end := from + len(list.Items); end < there {
				list.Continue = strconv.Itoa(end)
			}
			return list, nil
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			g.Expect(o.SendInitialEvents).To(BeNil())
			g.Expect(o.ResourceVersion).To(Equal("7"))
			return events, nil
		},
	}
	var factory Factory
	kinds := []string{"*v1.ConfigMap"}
	informer := factory.New(lw, &corev1.ConfigMap{}, 0, cache.Indexers{})
	_, known := factory.Revision(kinds)
	g.Expect(known).To(BeFalse())
	go informer.RunWithContext(t.Context())
	g.Expect(cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced)).To(BeTrue())
	g.Expect(pagesRead.Load()).To(BeNumerically(">", 1))
	g.Expect(all.Load()).To(BeZero())
	g.Expect(informer.GetStore().ListKeys()).To(HaveLen(there))
	for _, o := range informer.GetStore().List() {
		g.Expect(o.(*corev1.ConfigMap).ManagedFields).To(BeEmpty())
	}
	first, known := factory.Revision(kinds)
	g.Expect(known).To(BeTrue())
	again, _ := factory.Revision(kinds)
	g.Expect(again).To(Equal(first))
	events.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "new", ResourceVersion: "8"}})
	g.Eventually(informer.GetStore().ListKeys).Should(HaveLen(there + 1))
	second, _ := factory.Revision(kinds)
	g.Expect(second).NotTo(Equal(first))
	events.Delete(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "new", ResourceVersion: "9"}})
	g.Eventually(informer.GetStore().ListKeys).Should(HaveLen(there))
	third, _ := factory.Revision(kinds)
	g.Expect(third).NotTo(Or(Equal(second), Equal(first)))
	_, known = factory.Revision([]string{"*v1.ConfigMap", "*v1.Secret"})
	g.Expect(known).To(BeFalse(), "of a kind that no informer holds")
}

func TestRevision_changesOnlyWithContent(t *testing.T) {
	g := NewWithT(t)
	events := watch.NewFake()
	project := func(version string, mutate ...func(*v1alpha1.Project)) *v1alpha1.Project {
		p := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1", Generation: 1, ResourceVersion: version}}
		for _, m := range mutate {
			m(p)
		}
		return p
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &v1alpha1.ProjectList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []v1alpha1.Project{*project("5")}}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return events, nil },
	}
	var factory Factory
	kinds := []string{"*v1alpha1.Project"}
	informer := factory.New(lw, &v1alpha1.Project{}, 0, cache.Indexers{})
	go informer.RunWithContext(t.Context())
	g.Expect(cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced)).To(BeTrue())
	last, known := factory.Revision(kinds)
	g.Expect(known).To(BeTrue())
	expect := func(what, version string, changed bool) {
		t.Helper()
		g.Eventually(informer.GetStore().LastStoreSyncResourceVersion).Should(Equal(version))
		now, known := factory.Revision(kinds)
		g.Expect(known).To(BeTrue())
		if changed {
			g.Expect(now).NotTo(Equal(last), what)
		} else {
			g.Expect(now).To(Equal(last), what)
		}
		last = now
	}
	pushed := func(p *v1alpha1.Project) {
		p.Status.DefaultBranch, p.Status.HeadCommit, p.Status.RefsChecksum, p.Status.SizeBytes = "main", "01", "23", 45
		p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "forgeplane", Subresource: "status"}}
	}
	events.Modify(project("8", pushed))
	expect("a push", "8", false)
	events.Action(watch.Bookmark, project("9"))
	expect("a bookmark", "9", false)
	for n, mutate := range map[string]func(*v1alpha1.Project){
		"10": func(p *v1alpha1.Project) { p.Generation++ },
		"11": func(p *v1alpha1.Project) { p.Labels = map[string]string{"a": "b"} },
		"12": func(p *v1alpha1.Project) { p.Annotations = map[string]string{"a": "b"} },
		"13": func(p *v1alpha1.Project) { p.OwnerReferences = []metav1.OwnerReference{{UID: "2"}} },
		"14": func(p *v1alpha1.Project) { p.DeletionTimestamp = &metav1.Time{} },
		"15": func(p *v1alpha1.Project) { p.Status.Claims = []string{"path"} },
		"16": func(p *v1alpha1.Project) { p.Status.FullPath = "acme/web" },
		"17": func(p *v1alpha1.Project) { p.Status.ID = 7 },
		"18": func(p *v1alpha1.Project) { p.Status.Storage = "a" },
		"19": func(p *v1alpha1.Project) { p.Status.Conditions = []metav1.Condition{{Type: "Ready"}} },
		"20": func(p *v1alpha1.Project) { p.Spec.Path = "api" },
		"21": func(p *v1alpha1.Project) { p.UID = "2" },
	} {
		events.Modify(project(n, pushed, mutate))
		expect("change "+n, n, true)
	}
	events.Modify(project("22", pushed))
	expect("what there was before", "22", true)
	events.Delete(project("23", pushed))
	expect("a deletion", "23", true)
	events.Add(project("24", pushed))
	expect("a successor that is the same", "24", true)
}

func TestCache_keepsOnlyLabelledSecretsOfTenants(t *testing.T) {
	g := NewWithT(t)
	options := new(Factory).CacheOptions("platform", true)
	var tenants, platform ctrlcache.Config
	for o, by := range options.ByObject {
		if _, secret := o.(*corev1.Secret); !secret {
			continue
		}
		tenants, platform = by.Namespaces[ctrlcache.AllNamespaces], by.Namespaces["platform"]
		g.Expect(by.Namespaces).To(HaveLen(2))
	}
	g.Expect(platform.LabelSelector).To(BeNil())
	g.Expect(tenants.LabelSelector.String()).To(Equal("forgeplane.dev/secret in (bot-token,import,remote-mirror,trigger-token,variable)"))
	kept, err := tenants.Transform(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: "s", Labels: map[string]string{"forgeplane.dev/secret": "trigger-token"},
			Annotations:   map[string]string{"forgeplane.dev/rotated": "now", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		},
		Data: map[string][]byte{"token": []byte("short"), "blob": make([]byte, 1<<20)},
	})
	g.Expect(err).NotTo(HaveOccurred())
	s := kept.(*corev1.Secret)
	g.Expect(s.ManagedFields).To(BeEmpty())
	g.Expect(s.Annotations).To(Equal(map[string]string{"forgeplane.dev/rotated": "now"}))
	g.Expect(s.Data).To(HaveKeyWithValue("token", []byte("short")))
	g.Expect(s.Data["blob"]).To(HaveLen(256), "it is still too long")
	g.Expect(cap(s.Data["blob"])).To(BeNumerically("<", 1024))

	for _, kind := range []string{"remote-mirror", "import"} {
		kept, err = tenants.Transform(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "s", ResourceVersion: "7", Labels: map[string]string{"forgeplane.dev/secret": kind}},
			Data:       map[string][]byte{"password": []byte("short")},
		})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kept.(*corev1.Secret).Data).To(BeEmpty(), "the credentials for a host are not kept in memory")
		g.Expect(kept.(*corev1.Secret).ResourceVersion).To(Equal("7"))
	}
}

func TestCache_keepsOnlyConfigMapOfFeatures(t *testing.T) {
	g := NewWithT(t)
	options := new(Factory).CacheOptions("platform", true)
	g.Expect(options.ByObject).To(HaveLen(3))
	for o, by := range options.ByObject {
		if _, is := o.(*corev1.ConfigMap); is {
			g.Expect(by.Field.String()).To(Equal("metadata.name=forgeplane-features"))
			g.Expect(by.Namespaces).To(HaveLen(1))
			g.Expect(by.Namespaces).To(HaveKey("platform"))
			return
		}
	}
	t.Error("it has all of them")
}

func TestCache_holdsNoSecretsOfTenantsInServers(t *testing.T) {
	g := NewWithT(t)
	for _, by := range new(Factory).CacheOptions("platform", false).ByObject {
		g.Expect(by.Namespaces).To(HaveLen(1))
		g.Expect(by.Namespaces).To(HaveKey("platform"))
	}
}
