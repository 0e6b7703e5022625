package forge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/controllers"
	"github.com/forgeplane/forgeplane/controllers/remotemirror"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/egress"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/ids"
	"github.com/forgeplane/forgeplane/internal/quota"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// Options configure an installation.
type Options struct {
	// IDs is what ids are allocated from; all there are when empty.
	IDs ids.Range
	// RootGroups say which namespaces may hold root groups; every one when empty.
	RootGroups []catalog.RootGroupRule
	// AllowFileImport lets importURL name directories of this machine.
	AllowFileImport bool
	// AllowTargets name the networks and hosts that may be reached although they are private; the loopback when nil.
	AllowTargets []string
	// Egress limits how slow the targets of imports and mirrors may be; as by default when empty.
	Egress egress.Limits
	// Mirrors limit pushes to mirrors; those by default when empty.
	Mirrors remotemirror.Limits
	// Retention is how much the deleted projects of a namespace may leave; that by default when empty.
	Retention quota.Retention
	// Limits are the limits of repositories and Git processes; zero values mean the defaults.
	Limits git.Limits
	// Audit is told what the controllers do; nil for nobody.
	Audit *audit.Log
}

// Forge is an installation of Forgeplane for one spec. Two on one cluster are like two replicas.
type Forge struct {
	// Catalog answers from a cache that shows every write of this Forge's verbs.
	Catalog *catalog.Catalog
	// IDs is the allocator of the controllers that verbs call.
	IDs *ids.Allocator
	// Repositories finds the repositories of projects.
	Repositories *repository.Repositories
	// Clock is the one of all controllers. It stands still.
	Clock *clocktesting.FakePassiveClock

	cluster     *Cluster
	options     Options
	egress      *egress.Proxy
	engine      *git.Engine
	events      *recorder
	controllers map[string]reconcile.Reconciler
	storages    string
	running     *Running
	ran         bool
}

// New returns an installation without any object. It ends with the spec, and takes every object of Forgeplane with it.
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
	if o.Retention == (quota.Retention{}) {
		o.Retention = quota.DefaultRetention()
	}
	f := &Forge{
		Catalog: cat, Repositories: repository.New(engine, cat),
		Clock:   clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second)),
		cluster: c, options: o, engine: engine, events: &recorder{}, storages: GinkgoT().TempDir(),
		controllers: map[string]reconcile.Reconciler{}, egress: newEgress(ctx, o),
	}
	writer := settled{c.manager.GetClient()}
	f.IDs = ids.New(c.manager.GetCache(), c.manager.GetAPIReader(), writer, PlatformNamespace, o.IDs)
	for _, one := range (controllers.Parts{
		Client: writer, Secrets: c.manager.GetAPIReader(), Events: f.events, Catalog: cat, IDs: f.IDs,
		Repositories: f.Repositories, Clock: f.Clock, Namespace: PlatformNamespace, AllowFileImport: o.AllowFileImport,
		Egress: f.egress, Mirrors: o.Mirrors, Retention: o.Retention, Audit: o.Audit,
	}).All() {
		f.controllers[one.Kind] = one.Reconciler
	}
	DeferCleanup(f.clean)
	DeferCleanup(c.statuses.expectLawful)
	return f
}

// newEgress starts a way out, which ends with the spec.
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
		Eventually(ended).WithTimeout(callTimeout).Should(Receive(Succeed()))
	})
	return proxy
}

// clean removes every object of Forgeplane, and what the controllers made besides.
func (f *Forge) clean() {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	admin := settled{f.cluster.admin}
	// The cache shows what verbs have done. It may not show the last of what running controllers did, for which the API
	// server takes its time.
	reader := client.Reader(f.cluster.admin)
	if f.ran {
		reader = f.cluster.live
	}
	for _, kind := range v1alpha1.Kinds() {
		list := kind.NewList()
		Expect(reader.List(ctx, list)).To(Succeed())
		Expect(meta.EachListItem(list, func(o runtime.Object) error {
			obj := o.DeepCopyObject().(client.Object)
			if len(obj.GetFinalizers()) > 0 {
				patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
				if err := admin.Patch(ctx, obj, patch); err != nil {
					return client.IgnoreNotFound(err)
				}
			}
			return client.IgnoreNotFound(admin.Delete(ctx, obj))
		})).To(Succeed())
	}
	for _, which := range []client.ListOption{
		client.InNamespace(PlatformNamespace), client.HasLabels{v1alpha1.LabelSecret},
	} {
		var secrets corev1.SecretList
		Expect(reader.List(ctx, &secrets, which)).To(Succeed())
		for i := range secrets.Items {
			Expect(client.IgnoreNotFound(admin.Delete(ctx, &secrets.Items[i]))).To(Succeed())
		}
	}
	counters := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: PlatformNamespace, Name: ids.ConfigMap}}
	Expect(client.IgnoreNotFound(f.cluster.live.Delete(ctx, counters))).To(Succeed())
}

// NewNamespace makes a namespace with the given labels, in the form key=value, and returns its name.
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

// NewStorage makes a RepositoryStorage on a directory of its own, and expects it to become ready.
func (f *Forge) NewStorage(name string) *v1alpha1.RepositoryStorage {
	GinkgoHelper()
	s := RepositoryStorage(name).At(f.NewDirectory(name)).Build()
	f.Create(s)
	f.ExpectReady(s)
	return s
}

// Live reads and writes as the administrator, past every cache.
func (f *Forge) Live() client.Client { return f.cluster.live }

// Events returns the events that the controllers have told so far, each as "Warning AlreadyExists ada: the message".
// After Run they are in Kubernetes instead.
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

// ctrlLogger logs what goes wrong to where Ginkgo shows it when the spec fails.
func ctrlLogger() logr.Logger {
	return zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true), zap.Level(zapcore.WarnLevel), zap.StacktraceLevel(zapcore.PanicLevel))
}
