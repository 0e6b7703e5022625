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
)

func TestAnInformerReadsWhatThereIsInPagesAndThenWatches(t *testing.T) {
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

func TestOfTheSecretsOfTenantsOnlyWhatATokenCanBeIsKept(t *testing.T) {
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
	g.Expect(tenants.LabelSelector.String()).To(Equal("forgeplane.dev/secret in (import,remote-mirror,trigger-token)"))
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

func TestOfConfigMapsTheCacheHasThatOfTheFeaturesAlone(t *testing.T) {
	g := NewWithT(t)
	options := new(Factory).CacheOptions("platform", true)
	g.Expect(options.ByObject).To(HaveLen(2))
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

func TestOfServersTheCacheHasNoSecretOfTenants(t *testing.T) {
	g := NewWithT(t)
	for _, by := range new(Factory).CacheOptions("platform", false).ByObject {
		g.Expect(by.Namespaces).To(HaveLen(1))
		g.Expect(by.Namespaces).To(HaveKey("platform"))
	}
}
