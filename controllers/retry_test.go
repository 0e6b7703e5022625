package controllers_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/controllers"
	"github.com/forgeplane/forgeplane/controllers/remotemirror"
	"github.com/forgeplane/forgeplane/controllers/storagemove"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/ids"
	"github.com/forgeplane/forgeplane/internal/repository"
)

const (
	// writeTime is the duration of a write. Without it, no time would pass while a controller writes again and again.
	writeTime = 50 * time.Millisecond
	// fewWrites is the maximum number of writes within 30 s. The delay between retries begins with 5 ms and doubles, which leads to 13, and the first
	// events of the objects that an object refers to can add some. Without a delay there are 600.
	fewWrites = 20
)

// Each retry fails for another reason, so each writes another message. The time is fake: it passes while all goroutines wait.
func TestControllers_slowDownWhileStepsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := newFailing(t)
		stop := s.start(t)
		defer stop()
		<-time.After(30 * time.Second)
		for _, kind := range v1alpha1.Kinds() {
			name := reflect.TypeOf(kind).Elem().Name()
			g.Expect(s.client.Get(t.Context(), client.ObjectKey{Namespace: "acme", Name: "one"}, kind)).To(Succeed())
			ready := meta.FindStatusCondition(kind.GetCommonStatus().Conditions, v1alpha1.ConditionReady)
			g.Expect(ready).To(HaveValue(HaveField("Message", ContainSubstring("reading number "))), name)
			g.Expect(s.written()[name]).To(And(BeNumerically(">", 1), BeNumerically("<=", fewWrites)), "writes of the status of a %s", name)
		}
	})
}

// failing is an API server in memory, in which all steps of controllers fail that read what is declared.
type failing struct {
	client client.WithWatch
	mapper *meta.DefaultRESTMapper
	scheme *runtime.Scheme

	mu     sync.Mutex
	writes map[string]int
}

func newFailing(t *testing.T) *failing {
	t.Helper()
	g := NewWithT(t)
	s := &failing{scheme: runtime.NewScheme(), mapper: meta.NewDefaultRESTMapper(nil), writes: map[string]int{}}
	g.Expect(corev1.AddToScheme(s.scheme)).To(Succeed())
	g.Expect(v1alpha1.AddToScheme(s.scheme)).To(Succeed())
	builder := fake.NewClientBuilder().WithScheme(s.scheme).WithRESTMapper(s.mapper).WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: s.patch})
	known := []client.Object{&corev1.Namespace{}, &corev1.Secret{}, &corev1.ConfigMap{}}
	for _, kind := range v1alpha1.Kinds() {
		kind.SetName("one")
		kind.SetNamespace("acme")
		kind.SetUID(types.UID(reflect.TypeOf(kind).Elem().Name()))
		kind.SetGeneration(1)
		if identified, ok := kind.(v1alpha1.Identified); ok {
			id, _ := identified.IDs()
			*id = 1
		}
		if v, ok := kind.(*v1alpha1.Variable); ok {
			v.Spec.ProjectRef = &v1alpha1.Reference{Name: "one"} // without it, the namespace would be refused before anything is read
		}
		known = append(known, kind)
		builder.WithObjects(kind).WithStatusSubresource(kind)
	}
	for _, kind := range known {
		gvk, err := apiutil.GVKForObject(kind, s.scheme)
		g.Expect(err).NotTo(HaveOccurred())
		s.mapper.Add(gvk, meta.RESTScopeNamespace)
	}
	s.client = builder.Build()
	return s
}

func (s *failing) patch(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	s.mu.Lock()
	s.writes[reflect.TypeOf(o).Elem().Name()]++
	s.mu.Unlock()
	<-time.After(writeTime)
	return c.SubResource(sub).Patch(ctx, o, p, opts...)
}

func (s *failing) written() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.writes)
}

// start starts the controllers of all kinds.
func (s *failing) start(t *testing.T) (stop func()) {
	t.Helper()
	g := NewWithT(t)
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://nobody.invalid"}, ctrl.Options{
		Scheme: s.scheme, Metrics: server.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return s.mapper, nil },
		NewClient:      func(*rest.Config, client.Options) (client.Client, error) { return s.client, nil },
		NewCache: func(config *rest.Config, o cache.Options) (cache.Cache, error) {
			o.NewInformer = s.newInformer
			return cache.New(config, o)
		},
	})
	g.Expect(err).NotTo(HaveOccurred())
	unreadable := &unreadable{}
	cat := catalog.New(unreadable)
	g.Expect(controllers.Parts{
		Client: s.client, Secrets: s.client, Events: noEvents{}, Catalog: cat, IDs: ids.New(unreadable, unreadable, s.client, platform, ids.Range{}),
		Repositories: repository.New(nil, cat), Clock: clock.RealClock{}, Namespace: platform, Mirrors: remotemirror.DefaultLimits(), Moves: storagemove.DefaultLimits(),
	}.AddTo(mgr, controller.Options{SkipNameValidation: ptr.To(true)})).To(Succeed())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- mgr.Start(ctx) }()
	return func() {
		cancel()
		g.Expect(<-ended).To(Succeed())
	}
}

func (s *failing) newInformer(_ toolscache.ListerWatcher, o runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
	list := func() client.ObjectList {
		gvk, _ := apiutil.GVKForObject(o, s.scheme)
		gvk.Kind += "List"
		empty, _ := s.scheme.New(gvk)
		return empty.(client.ObjectList)
	}
	return toolscache.NewSharedIndexInformer(unstreamed{&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			l := list()
			return l, s.client.List(ctx, l)
		},
		WatchFuncWithContext: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
			return s.client.Watch(ctx, list())
		},
	}}, o, resync, by)
}

// unstreamed does not list by watching, which the API server in memory cannot do.
type unstreamed struct{ *toolscache.ListWatch }

func (unstreamed) IsWatchListSemanticsUnSupported() bool { return true }

// unreadable fails to read, each time with another error.
type unreadable struct{ readings atomic.Int64 }

func (r *unreadable) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return fmt.Errorf("reading number %d failed", r.readings.Add(1))
}

func (r *unreadable) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return fmt.Errorf("reading number %d failed", r.readings.Add(1))
}
