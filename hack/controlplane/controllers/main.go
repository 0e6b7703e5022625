// Command controllers runs what three of the controllers of kube-controller-manager do: collect garbage, empty the namespaces that are deleted, and
// fill the roles that aggregate others. The published program contains all controllers, and compiles 300 packages that are not needed here.
package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace/deletion"
)

const (
	// The defaults of kube-controller-manager, 20 and 30, are made for a shared cluster. With them, the deletion of a namespace takes seconds.
	requestsPerSecond = 200
	burst             = 400
	// resync is the time after which informers repeat all objects.
	resync = 12 * time.Hour
	// discoveryPeriod is the time after which the garbage collector looks for new kinds.
	discoveryPeriod = 30 * time.Second

	garbageWorkers   = 20
	namespaceWorkers = 10
	roleWorkers      = 5
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the file that names the API server and the credentials")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig); err != nil {
		klog.ErrorS(err, "Failed to start the controllers")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
}

// run returns when the context ends.
func run(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = requestsPerSecond, burst
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	m := manager{
		// Each controller has the permissions of its service account. A client certificate would take precedence over its token.
		clients:   clientbuilder.NewDynamicClientBuilder(rest.AnonymousClientConfig(config), client.CoreV1(), metav1.NamespaceSystem),
		informers: informers.NewSharedInformerFactory(client, resync),
		metadata:  metadatainformer.NewSharedInformerFactory(metadataClient, resync),
		started:   make(chan struct{}),
	}
	if err := errors.Join(m.addGarbageCollector(ctx, metadataClient), m.addNamespaces(ctx), m.addRoles()); err != nil {
		return err
	}
	m.run(ctx)
	return nil
}

// manager contains the controllers, and the objects that they share.
type manager struct {
	clients     clientbuilder.ControllerClientBuilder
	informers   informers.SharedInformerFactory
	metadata    metadatainformer.SharedInformerFactory
	started     chan struct{} // closed when the informers have been started
	controllers []func(ctx context.Context)
}

// run runs the controllers until the context ends, and returns when they have ended.
func (m *manager) run(ctx context.Context) {
	var running sync.WaitGroup
	for _, controller := range m.controllers {
		running.Go(func() { controller(ctx) })
	}
	m.informers.Start(ctx.Done())
	m.metadata.Start(ctx.Done())
	close(m.started)
	running.Wait()
}

func (m *manager) addGarbageCollector(ctx context.Context, observer metadata.Interface) error {
	config, client, err := m.as("generic-garbage-collector", 2, 1)
	if err != nil {
		return err
	}
	deleter, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	discovery, err := m.clients.DiscoveryClient("generic-garbage-collector")
	if err != nil {
		return err
	}
	// The mapper has its own client, because the collector resets it.
	mapped, err := m.clients.DiscoveryClient("generic-garbage-collector")
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(mapped))
	graph := garbagecollector.NewDependencyGraphBuilder(ctx, observer, mapper, garbagecollector.DefaultIgnoredResources(),
		informerfactory.NewInformerFactory(m.informers, m.metadata), m.started)
	collector, err := garbagecollector.NewComposedGarbageCollector(ctx, client, deleter, mapper, graph)
	if err != nil {
		return err
	}
	m.controllers = append(m.controllers,
		func(ctx context.Context) { collector.Run(ctx, garbageWorkers, discoveryPeriod) },
		func(ctx context.Context) { collector.Sync(ctx, discovery, discoveryPeriod) })
	return nil
}

func (m *manager) addNamespaces(ctx context.Context) error {
	// Emptying a namespace takes requests for every kind.
	config, client, err := m.as("namespace-controller", 20, 100)
	if err != nil {
		return err
	}
	deleter, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	resources := deletion.NewNamespacedResourcesDeleter(ctx, client.CoreV1().Namespaces(), deleter, client.CoreV1(),
		client.Discovery().ServerPreferredNamespacedResources, corev1.FinalizerKubernetes)
	n, err := newNamespaces(resources, m.informers.Core().V1().Namespaces().Informer())
	if err != nil {
		return err
	}
	m.controllers = append(m.controllers, n.run)
	return nil
}

func (m *manager) addRoles() error {
	_, client, err := m.as("clusterrole-aggregation-controller", 1, 1)
	if err != nil {
		return err
	}
	roles := clusterroleaggregation.NewClusterRoleAggregation(m.informers.Rbac().V1().ClusterRoles(), client.RbacV1())
	m.controllers = append(m.controllers, func(ctx context.Context) { roles.Run(ctx, roleWorkers) })
	return nil
}

// as returns a client, and its configuration, of a controller's service account, with a multiple of the usual limits.
func (m *manager) as(account string, rate float32, bursts int) (*rest.Config, kubernetes.Interface, error) {
	config, err := m.clients.Config(account)
	if err != nil {
		return nil, nil, err
	}
	config.QPS *= rate
	config.Burst *= bursts
	client, err := kubernetes.NewForConfig(config)
	return config, client, err
}
