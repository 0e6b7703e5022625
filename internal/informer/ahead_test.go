package informer

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/patience"
)

// paged is a server with a list of labels in pages of one label. It records the requests.
type paged struct {
	asked chan string // the continue tokens of the requests, in order
	pages int
	gone  string // a token that has expired
}

func (p *paged) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := r.URL.Query().Get("continue")
	p.asked <- token
	w.Header().Set("Content-Type", "application/json")
	answer := map[string]any{"apiVersion": "v1", "kind": "Status", "metadata": map[string]any{}, "status": "Failure", "reason": "Expired", "code": http.StatusGone}
	if token != "" && token == p.gone {
		w.WriteHeader(http.StatusGone)
	} else {
		n, _ := strconv.Atoi(token)
		metadata := map[string]any{"resourceVersion": "7"}
		if n+1 < p.pages {
			metadata["continue"] = strconv.Itoa(n + 1)
		}
		answer = map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": "LabelList", "metadata": metadata,
			"items": []any{map[string]any{"metadata": map[string]any{"name": "label-" + strconv.Itoa(n)}}},
		}
	}
	_ = json.NewEncoder(w).Encode(answer) // with the keys in order, as kube-apiserver writes custom resources
}

// lister lists labels page by page, as an informer does.
func (p *paged) lister(t *testing.T) pages {
	t.Helper()
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	version := v1alpha1.GroupVersion
	config := &rest.Config{Host: server.URL, APIPath: "/apis", QPS: -1, ContentConfig: rest.ContentConfig{
		GroupVersion: &version, NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
	}}
	config.Wrap(ReadAhead)
	client, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	parameters := runtime.NewParameterCodec(scheme)
	noted := &changes{store: cache.NewStore(cache.MetaNamespaceKeyFunc)}
	return pages{ahead: &ahead{}, changes: noted, from: &cache.ListWatch{ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		list := &v1alpha1.LabelList{}
		return list, client.Get().Resource("labels").VersionedParams(&o, parameters).Do(ctx).Into(list)
	}}}
}

func TestReadAhead_requestsNextPage(t *testing.T) {
	g := NewWithT(t)
	server := &paged{asked: make(chan string, 10), pages: 4}
	lister := server.lister(t)
	for n, token := range []string{"", "1", "2", "3"} {
		got, err := lister.ListWithContext(t.Context(), metav1.ListOptions{Limit: 1, Continue: token})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.(*v1alpha1.LabelList).Items).To(ConsistOf(HaveField("Name", "label-"+strconv.Itoa(n))))
		if n == 0 {
			g.Expect(server.asked).To(Receive(BeEmpty()))
		}
		if n < 3 {
			g.Eventually(server.asked).WithTimeout(patience.Wait).Should(Receive(Equal(strconv.Itoa(n + 1))))
		}
	}
	g.Expect(server.asked).To(BeEmpty(), "each page is asked for once")
}

func TestReadAhead_discardsOtherPages(t *testing.T) {
	g := NewWithT(t)
	server := &paged{asked: make(chan string, 10), pages: 9}
	lister := server.lister(t)
	for _, token := range []string{"", "5", ""} {
		got, err := lister.ListWithContext(t.Context(), metav1.ListOptions{Limit: 1, Continue: token})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.(*v1alpha1.LabelList).Items).To(ConsistOf(HaveField("Name", "label-"+strconv.Itoa(atoi(token)))))
	}
}

func TestReadAhead_returnsErrors(t *testing.T) {
	g := NewWithT(t)
	server := &paged{asked: make(chan string, 10), pages: 4, gone: "1"}
	lister := server.lister(t)
	_, err := lister.ListWithContext(t.Context(), metav1.ListOptions{Limit: 1})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = lister.ListWithContext(t.Context(), metav1.ListOptions{Limit: 1, Continue: "1"})
	g.Expect(err).To(Satisfy(apierrors.IsResourceExpired))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = lister.ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	g.Expect(err).To(MatchError(context.Canceled))
}

func atoi(token string) int {
	n, _ := strconv.Atoi(token)
	return n
}
