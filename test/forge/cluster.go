// Package forge is the basis of the suites of Forgeplane's controllers: a real API server with the kinds installed, the
// controllers wired as in production, builders for objects of every kind, and verbs that change objects or expect something of them.
//
// A suite starts one Cluster and creates a Forge for each spec:
//
//	var cluster *forge.Cluster
//	var f *forge.Forge
//
//	var _ = BeforeSuite(func() { cluster = forge.StartCluster() })
//	var _ = BeforeEach(func() { f = forge.New(cluster, forge.Options{}) })
//
//	It("shows its full path", func() {
//		acme := forge.Group("acme").In(f.Namespace()).Build()
//		f.Create(acme)
//		f.ExpectReady(acme)
//		Expect(acme.Status.FullPath).To(Equal("acme"))
//	})
//
// A Forge does not reconcile by itself: a verb such as ExpectReady calls the controller of the object's kind once. A
// second call follows that must not write anything, so every such verb also checks that an unchanged object is not written again.
// After Run, the controllers work as in production, and the same verbs wait for the results.
//
// In both cases, every status that a controller writes must follow the rules of kstatus, every request must succeed with only the
// permissions of config/rbac, and no reconcile may panic. Otherwise, the spec or the suite fails.
package forge

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/index"
	"github.com/forgeplane/forgeplane/internal/informer"
	"github.com/forgeplane/forgeplane/test/argocd"
	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/controlplane/pool"
	"github.com/forgeplane/forgeplane/test/suite"
)

// PlatformNamespace is the namespace of the platform, which has the Secrets of access tokens and the counters of ids.
const PlatformNamespace = "forgeplane-system"

// serviceAccount is the identity of the controllers.
const serviceAccount = "system:serviceaccount:" + PlatformNamespace + ":forgeplane-manager"

const (
	startTimeout = 2 * time.Minute
	// callTimeout limits the time of a single verb.
	callTimeout = 30 * time.Second
)

// Cluster is a control plane that the specs of one suite share, with a cache of all objects of Forgeplane.
//
// It runs the garbage collector and the namespace controller of Kubernetes, because the specs also check which objects are
// deleted with their owner or with their namespace.
type Cluster struct {
	plane  *controlplane.ControlPlane
	scheme *runtime.Scheme
	// manager serves the reconciles that verbs call: it runs a cache but no controllers. informers are the informers of the cache.
	manager   ctrl.Manager
	informers *informer.Factory
	writes    *Writes
	// admin returns from a write when the cache shows it, and live reads past the cache.
	admin, live client.Client
	statuses    *statusWatch
}

// StartCluster leases or starts a control plane. A suite calls it in BeforeSuite, and it stops with the suite.
func StartCluster() *Cluster {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	ctrl.SetLogger(ctrlLogger())

	root, err := controlplane.Checkout()
	Expect(err).NotTo(HaveOccurred())
	health, err := argocd.Read(root)
	Expect(err).NotTo(HaveOccurred())
	c := &Cluster{scheme: runtime.NewScheme(), writes: &Writes{}, statuses: &statusWatch{health: health}}
	Expect(clientgoscheme.AddToScheme(c.scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(c.scheme)).To(Succeed())
	c.plane, err = pool.Start(ctx, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	ended := make(chan struct{})
	go suite.AbortOn(c.plane.Failed(), ended)
	DeferCleanup(func() error {
		close(ended)
		return c.plane.Stop()
	})
	DeferCleanup(expectNoPanics)

	c.live, err = client.New(c.plane.Administrator(), client.Options{Scheme: c.scheme})
	Expect(err).NotTo(HaveOccurred())
	c.manager, c.informers = c.newManager(ctx, c.writes, newDeliveries())
	c.admin, err = client.New(c.plane.Administrator(), client.Options{Scheme: c.scheme, Cache: &client.CacheOptions{
		Reader: c.manager.GetCache(), EnableReadYourWritesConsistency: ptr.To(true),
	}})
	Expect(err).NotTo(HaveOccurred())
	cached := []client.Object{&corev1.Namespace{}, &corev1.Secret{}}
	for _, kind := range v1alpha1.Kinds() {
		cached = append(cached, kind)
	}
	for _, kind := range cached {
		of, err := c.manager.GetCache().GetInformer(ctx, kind)
		Expect(err).NotTo(HaveOccurred())
		_, err = of.AddEventHandler(c.statuses)
		Expect(err).NotTo(HaveOccurred())
	}
	c.start(c.manager)
	Expect(c.manager.GetCache().WaitForCacheSync(ctx)).To(BeTrue())
	return c
}

// ClientOf returns a client that acts as a user, with only the rights that RBAC grants. It reads past every cache.
func (c *Cluster) ClientOf(user string, groups ...string) client.Client {
	GinkgoHelper()
	identity, err := c.plane.Identity(user, groups...)
	Expect(err).NotTo(HaveOccurred())
	as, err := client.New(identity, client.Options{Scheme: c.scheme})
	Expect(err).NotTo(HaveOccurred())
	return as
}

// Impersonate requests, as a user, the identity of a request that impersonates another user. It returns the error of the answer.
func (c *Cluster) Impersonate(ctx context.Context, user, as string) error {
	GinkgoHelper()
	identity, err := c.plane.Identity(user)
	Expect(err).NotTo(HaveOccurred())
	identity.Impersonate.UserName = as
	made, err := kubernetes.NewForConfig(identity)
	Expect(err).NotTo(HaveOccurred())
	_, err = made.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	return err
}

// writer returns the administrator's client for obj. Its writes return when the cache, if there is one, shows them.
func (c *Cluster) writer(obj client.Object) client.Client {
	if cached(obj) {
		return settled{c.admin}
	}
	return c.live
}

// show returns obj as the cache shows it.
func (c *Cluster) show(ctx context.Context, obj client.Object) (client.Object, error) {
	shown := obj.DeepCopyObject().(client.Object)
	return shown, c.manager.GetCache().Get(ctx, client.ObjectKeyFromObject(obj), shown)
}

// Kubeconfig is the path of the administrator's kubeconfig file.
func (c *Cluster) Kubeconfig() string { return c.plane.Kubeconfig() }

// stored returns the resource versions of all objects of Forgeplane, by their kind, as they are at this moment.
func (c *Cluster) stored(ctx context.Context) (map[string]map[client.ObjectKey]string, error) {
	all, err := c.plane.Stored(ctx, v1alpha1.GroupVersion.Group+"/")
	if err != nil {
		return nil, err
	}
	byKind := map[string]map[client.ObjectKey]string{}
	for path, version := range all {
		resource, object, _ := strings.Cut(path, "/")
		kind, err := c.live.RESTMapper().KindFor(v1alpha1.GroupVersion.WithResource(resource))
		if err != nil {
			return nil, err
		}
		if byKind[kind.Kind] == nil {
			byKind[kind.Kind] = map[client.ObjectKey]string{}
		}
		byKind[kind.Kind][keyOf(object)] = version
	}
	return byKind, nil
}

// keyOf returns the key of an object whose path is "namespace/name", or "name" without a namespace.
func keyOf(path string) client.ObjectKey {
	namespace, name, found := strings.Cut(path, "/")
	if !found {
		namespace, name = "", path
	}
	return client.ObjectKey{Namespace: namespace, Name: name}
}

// newManager returns a manager that acts like the controllers in production, counts its writes and records deliveries.
func (c *Cluster) newManager(ctx context.Context, w *Writes, d *deliveries) (ctrl.Manager, *informer.Factory) {
	GinkgoHelper()
	identity, err := c.plane.Identity(serviceAccount, "system:serviceaccounts", "system:serviceaccounts:"+PlatformNamespace)
	Expect(err).NotTo(HaveOccurred())
	identity.Wrap(w.wrap)
	identity.Wrap(informer.ReadAhead)
	// The program has this name in production, and therefore this field manager.
	identity.UserAgent = "forgeplane"
	informers := &informer.Factory{}
	mgr, err := ctrl.NewManager(identity, ctrl.Options{
		Scheme:  c.scheme,
		Metrics: server.Options{BindAddress: "0"},
		// The kinds stay the same, so one mapper asks for them.
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return c.live.RESTMapper(), nil },
		NewCache:       d.newCache,
		Cache:          informers.CacheOptions(PlatformNamespace, true),
		Client:         client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}},
		// A process starts several managers, one after another.
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(index.Add(ctx, mgr.GetFieldIndexer())).To(Succeed())
	Expect(index.AddForManagers(ctx, mgr.GetFieldIndexer())).To(Succeed())
	return mgr, informers
}

// start runs mgr until the returned function is called, or until the end of the spec or suite.
func (c *Cluster) start(mgr ctrl.Manager) (stop func()) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		GinkgoHelper()
		cancel()
		Eventually(ended).Should(Receive(Succeed()))
	})
	DeferCleanup(stop)
	return stop
}

// expectNoPanics fails if a controller of this process has recovered from a panic.
func expectNoPanics() {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_panics_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			Expect(m.GetCounter().GetValue()).To(BeZero(), "panics of the controller %v", labels(m))
		}
	}
}

func labels(m *dto.Metric) (all []string) {
	for _, l := range m.GetLabel() {
		all = append(all, l.GetValue())
	}
	return all
}
