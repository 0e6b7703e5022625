package forge

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/controllers"
	"github.com/forgeplane/forgeplane/controllers/project"
	"github.com/forgeplane/forgeplane/controllers/remotemirror"
	"github.com/forgeplane/forgeplane/controllers/storagemove"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/egress"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/ids"
	"github.com/forgeplane/forgeplane/internal/quota"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/repository"
	moves "github.com/forgeplane/forgeplane/internal/storagemove"
)

// Options configure an installation.
type Options struct {
	// IDs is the range that ids are allocated from. If it is empty, all ids can be allocated.
	IDs ids.Range
	// RootGroups are the rules for root groups. Without rules, every namespace can have root groups.
	RootGroups []catalog.RootGroupRule
	// AllowFileImport allows importURL to name directories of this machine.
	AllowFileImport bool
	// AllowTargets are the private networks and hosts that can be reached. If it is nil, only the loopback can be reached.
	AllowTargets []string
	// Egress limits how slow the targets of imports and mirrors can be. If it is empty, the defaults apply.
	Egress egress.Limits
	// Mirrors limits pushes to mirrors. If it is empty, the defaults apply.
	Mirrors remotemirror.Limits
	// Moves limits moves between shards. If it is empty, the defaults apply, but no server has to learn of a move.
	Moves storagemove.Limits
	// History records moves, unless it is nil.
	History *moves.History
	// Registry returns the registry of a process, with the images of projects. If it is nil, the container registry is off.
	Registry func(*catalog.Catalog, clock.PassiveClock) *registry.Registry
	// Retention limits what the deleted projects of a namespace can leave. If it is empty, the defaults apply.
	Retention quota.Retention
	// Limits are the limits of repositories and Git processes; zero values mean the defaults.
	Limits git.Limits
	// Activity stores the activity in projects; it may be nil.
	Activity project.Activity
	// Audit records the writes of the controllers, unless it is nil.
	Audit *audit.Log
	// Metrics is the registry of the controllers, unless it is nil.
	Metrics prometheus.Registerer
}

// cleanupInterval is short, so that specs do not wait for looks at runs of cleanups.
const cleanupInterval = 50 * time.Millisecond

// Forge is an installation of Forgeplane for one spec. Two installations on one cluster behave like two replicas.
type Forge struct {
	// Catalog answers from a cache that shows every write of this Forge's verbs.
	Catalog *catalog.Catalog
	// IDs is the allocator of the controllers that verbs call.
	IDs *ids.Allocator
	// Repositories finds the repositories of projects.
	Repositories *repository.Repositories
	// Clock is the clock of all controllers. It stands still.
	Clock *clocktesting.FakePassiveClock

	cluster     *Cluster
	options     Options
	egress      *egress.Proxy
	engine      *git.Engine
	events      *recorder
	controllers map[string]reconcile.Reconciler
	storages    string
	running     *Running
}

// New returns an installation without any object. It ends with the spec, and its end deletes every object of Forgeplane and every Secret.
func New(c *Cluster, o Options) *Forge {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	engine, err := git.NewEngine(ctx, git.Options{Limits: o.Limits})
	Expect(err).NotTo(HaveOccurred())
	cat := catalog.New(c.manager.GetCache(), o.RootGroups...)
	cat.LookUpIn(c.informers)
	if o.Mirrors == (remotemirror.Limits{}) {
		o.Mirrors = remotemirror.DefaultLimits()
	}
	if o.Moves == (storagemove.Limits{}) {
		o.Moves = storagemove.DefaultLimits()
		o.Moves.Settle = 0
	}
	if o.Registry == nil {
		o.Registry = func(*catalog.Catalog, clock.PassiveClock) *registry.Registry { return nil }
	}
	if o.Retention == (quota.Retention{}) {
		o.Retention = quota.DefaultRetention()
	}
	f := &Forge{
		Catalog: cat, Clock: clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second)),
		cluster: c, options: o, engine: engine, events: &recorder{}, storages: GinkgoT().TempDir(),
		controllers: map[string]reconcile.Reconciler{}, egress: newEgress(ctx, o),
	}
	parts := f.parts(c.manager, settled{c.manager.GetClient()}, f.events, cat)
	f.IDs, f.Repositories = parts.IDs, parts.Repositories
	for _, one := range parts.All() {
		f.controllers[one.Kind] = one.Reconciler
	}
	DeferCleanup(f.clean)
	DeferCleanup(c.statuses.expectLawful)
	return f
}

// parts returns the parts of the controllers of a process, which writes with a client and looks objects up in a catalog.
func (f *Forge) parts(mgr ctrl.Manager, writer client.Client, sink events.EventRecorder, cat *catalog.Catalog) controllers.Parts {
	o := f.options
	return controllers.Parts{
		Client: writer, Secrets: mgr.GetAPIReader(), Events: sink, Catalog: cat,
		IDs:          ids.New(mgr.GetCache(), mgr.GetAPIReader(), writer, PlatformNamespace, o.IDs),
		Repositories: repository.New(f.engine, cat), Clock: f.Clock, Namespace: PlatformNamespace, AllowFileImport: o.AllowFileImport,
		MeasureVolume: measure, Egress: f.egress, Mirrors: o.Mirrors, Moves: o.Moves, History: o.History, Registry: o.Registry(cat, f.Clock),
		CleanupInterval: cleanupInterval, Retention: o.Retention, Activity: o.Activity, Audit: o.Audit, Metrics: o.Metrics,
	}
}

// newEgress starts a proxy for outgoing requests, which stops with the spec.
func newEgress(ctx context.Context, o Options) *egress.Proxy {
	GinkgoHelper()
	if o.AllowTargets == nil {
		o.AllowTargets = []string{"127.0.0.0/8", "::1"}
	}
	policy, err := egress.Parse(o.AllowTargets)
	Expect(err).NotTo(HaveOccurred())
	proxy, err := egress.NewProxy(ctx, policy, cmp.Or(o.Egress, egress.DefaultLimits))
	Expect(err).NotTo(HaveOccurred())
	serving, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- proxy.Start(serving) }()
	DeferCleanup(func() {
		stop()
		Eventually(ended).Should(Receive(Succeed()))
	})
	return proxy
}

// clean removes every object of Forgeplane, every Secret, and the counters and records of ids, and waits until the cache shows none of them. It
// removes them from etcd: kube-apiserver would take a sixth of the time of a suite for the requests that remove finalizers and objects.
func (f *Forge) clean() {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	for _, prefix := range []string{
		v1alpha1.GroupVersion.Group + "/", "secrets/", "rolebindings/" + PlatformNamespace + "/" + ids.DeclareRole + ".",
		"configmaps/" + PlatformNamespace + "/" + ids.ConfigMap,
	} {
		stored, err := f.cluster.plane.Stored(ctx, prefix)
		Expect(err).NotTo(HaveOccurred())
		Expect(f.cluster.plane.Remove(ctx, prefix, maps.Keys(stored))).To(Succeed())
	}
	lists := []client.ObjectList{&corev1.SecretList{}}
	for _, kind := range v1alpha1.Kinds() {
		lists = append(lists, kind.NewList())
	}
	for _, list := range lists {
		Eventually(func() (int, error) {
			err := f.cluster.manager.GetCache().List(ctx, list)
			return meta.LenList(list), err
		}).WithPolling(polling).Should(BeZero(), "the cache shows %T", list)
	}
	var bindings rbacv1.RoleBindingList
	Eventually(func() ([]rbacv1.RoleBinding, error) {
		err := f.cluster.manager.GetCache().List(ctx, &bindings, client.InNamespace(PlatformNamespace))
		return bindings.Items, err
	}).WithPolling(polling).ShouldNot(ContainElement(Satisfy(func(b rbacv1.RoleBinding) bool { return ids.RecordedNamespace(&b) != "" })))
}

// NewNamespace creates a namespace with the given labels, in the form key=value, and returns its name.
func (f *Forge) NewNamespace(labels ...string) string {
	GinkgoHelper()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-", Labels: map[string]string{}}}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		n.Labels[key] = value
	}
	f.Create(n)
	return n.Name
}

// NewStorage creates a RepositoryStorage on its own directory, and expects it to become ready.
func (f *Forge) NewStorage(name string) *v1alpha1.RepositoryStorage {
	GinkgoHelper()
	s := RepositoryStorage(name).At(f.NewDirectory(name)).Build()
	f.Create(s)
	f.ExpectReady(s)
	return s
}

// Live returns a client that reads and writes as the administrator, past every cache.
func (f *Forge) Live() client.Client { return f.cluster.live }

// Events returns the events of the controllers so far, in the form "Warning AlreadyExists ada: the message". After Run, the events are in
// Kubernetes instead.
func (f *Forge) Events() []string { return f.events.all() }

func (f *Forge) kind(obj client.Object) string {
	GinkgoHelper()
	gvk, err := apiutil.GVKForObject(obj, f.cluster.scheme)
	Expect(err).NotTo(HaveOccurred())
	return gvk.Kind
}

// recorder keeps events instead of sending them.
type recorder struct {
	lock   sync.Mutex
	events []string
}

// Eventf keeps one event.
func (r *recorder) Eventf(regarding, _ runtime.Object, eventType, reason, _, note string, args ...any) {
	r.lock.Lock()
	defer r.lock.Unlock()
	name := regarding.(client.Object).GetName()
	r.events = append(r.events, fmt.Sprintf("%s %s %s: %s", eventType, reason, name, fmt.Sprintf(note, args...)))
}

func (r *recorder) all() []string {
	r.lock.Lock()
	defer r.lock.Unlock()
	return slices.Clone(r.events)
}

// ctrlLogger writes the log to Ginkgo, which shows it when the spec fails.
func ctrlLogger() logr.Logger {
	return zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true), zap.Level(zapcore.WarnLevel), zap.StacktraceLevel(zapcore.PanicLevel))
}

// measure returns the same size for every volume. The free space of the machine changes at any time, and a status would follow it.
func measure(string) (capacity, available int64, err error) { return 100 << 30, 42<<30 + 1, nil }
