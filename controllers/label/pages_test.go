package label_test

import (
	"context"
	"net/http"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/informer"
	"github.com/forgeplane/forgeplane/test/forge"
)

// requests counts the requests for each page of labels.
type requests struct {
	http.RoundTripper
	mu    sync.Mutex
	pages map[string]int
}

func (r *requests) RoundTrip(request *http.Request) (*http.Response, error) {
	if q := request.URL.Query(); strings.HasSuffix(request.URL.Path, "/labels") && q.Get("watch") == "" {
		r.mu.Lock()
		r.pages[q.Get("continue")]++
		r.mu.Unlock()
	}
	return r.RoundTripper.RoundTrip(request)
}

func (r *requests) of(token string) func() int {
	return func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.pages[token]
	}
}

var _ = Describe("An informer", func() {
	It("asks kube-apiserver for each page of custom resources before it needs the page", func(ctx SpecContext) {
		for _, name := range []string{"a", "b", "c", "d"} {
			f.Create(forge.LabelTitled(name).Of(acme).Build())
		}
		config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig())
		Expect(err).NotTo(HaveOccurred())
		counted := &requests{pages: map[string]int{}}
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			counted.RoundTripper = next
			return counted
		})
		config.Wrap(informer.ReadAhead)
		client, err := dynamic.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		labels := client.Resource(v1alpha1.GroupVersion.WithResource("labels")).Namespace(namespace)
		var tokens []string
		all := new(informer.Factory).New(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				defer GinkgoRecover()
				o.Limit = 1
				if tokens = append(tokens, o.Continue); o.Continue != "" {
					Eventually(counted.of(o.Continue)).Should(Equal(1))
				}
				return labels.List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return labels.Watch(ctx, o)
			},
		}, &v1alpha1.Label{}, 0, cache.Indexers{})
		go all.RunWithContext(ctx)
		Eventually(all.HasSynced).Should(BeTrue())
		Expect(tokens).To(HaveLen(4))
		for _, token := range tokens {
			Expect(counted.of(token)()).To(Equal(1))
		}
	})
})
