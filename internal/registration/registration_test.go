package registration

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/forgeplane/forgeplane/test/controlplane/pool"
)

var (
	rest     = schema.GroupVersion{Group: "rest.forgeplane.dev", Version: "v4"}
	activity = schema.GroupVersion{Group: "activity.forgeplane.dev", Version: "v1alpha1"}
)

func TestRegistration(t *testing.T) {
	g := NewWithT(t)
	cluster, err := pool.Start(t.Context(), t.TempDir())
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = cluster.Stop() })
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(apiregistrationv1.AddToScheme(scheme)).To(Succeed())
	c, err := client.New(cluster.Administrator(), client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	for _, name := range []string{"forgeplane-system", "other-system"} {
		err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		g.Expect(client.IgnoreAlreadyExists(err)).To(Succeed())
	}

	clock := clocktesting.NewFakeClock(time.Now())
	options := func(namespace string) Options {
		return Options{
			Groups: []schema.GroupVersion{rest, activity},
			Client: c, Service: client.ObjectKey{Namespace: namespace, Name: "forgeplane-apiserver"}, Port: 443,
			ExternalName: "localhost", Clock: clock, Log: logr.Discard(),
		}
	}
	authorities := []byte(nil)
	server := func(name, namespace string) Server {
		return Server{Options: options(namespace), Name: name, Authorities: func() []byte { return authorities }}
	}
	of := func(group schema.GroupVersion) (*apiregistrationv1.APIService, error) {
		r := &apiregistrationv1.APIService{}
		return r, c.Get(t.Context(), client.ObjectKey{Name: APIService(group)}, r)
	}
	registered := func() (*apiregistrationv1.APIService, error) { return of(rest) }
	missing := func(g Gomega) {
		for _, group := range []schema.GroupVersion{rest, activity} {
			_, err := of(group)
			g.Expect(err).To(Satisfy(apierrors.IsNotFound), "%s", group)
		}
	}
	one, two := server("one", "forgeplane-system"), server("two", "forgeplane-system")

	t.Run("is created by the first server, and not changed afterwards", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(one.register(t.Context())).To(Succeed())
		first, err := registered()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(two.register(t.Context())).To(Succeed())
		g.Expect(one.register(t.Context())).To(Succeed())
		again, err := registered()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again.Spec).To(Equal(first.Spec))
		g.Expect(again.UID).To(Equal(first.UID))
	})

	t.Run("has all groups", func(t *testing.T) {
		g := NewWithT(t)
		for _, group := range []schema.GroupVersion{rest, activity} {
			r, err := of(group)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(schema.GroupVersion{Group: r.Spec.Group, Version: r.Spec.Version}).To(Equal(group))
			g.Expect(r.Spec.Service.Name).To(Equal("forgeplane-apiserver"))
		}
	})

	t.Run("is not changed or removed by another installation", func(t *testing.T) {
		g := NewWithT(t)
		other := server("one", "other-system")
		g.Expect(other.register(t.Context())).To(MatchError(ContainSubstring("another installation")))
		g.Expect(other.withdraw(t.Context())).To(Succeed())
		w := NewWatch(options("other-system"))
		w.began = clock.Now().Add(-2 * silence)
		g.Expect(w.look(t.Context())).To(Succeed())
		_, err := registered()
		g.Expect(err).NotTo(HaveOccurred())
	})

	t.Run("stays when one of two servers stops, and is removed by the last server", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(one.withdraw(t.Context())).To(Succeed())
		_, err := registered()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(two.withdraw(t.Context())).To(Succeed())
		missing(g)
	})

	t.Run("loses a group with its last server, though a server of another version lives", func(t *testing.T) {
		former := two
		former.Groups = former.Groups[:1]
		w := NewWatch(options("forgeplane-system"))
		w.began = clock.Now().Add(-2 * silence)
		for about, end := range map[string]func() error{
			"stops": func() error { return one.withdraw(t.Context()) },
			"is killed": func() error {
				for range silence/patrol + 1 {
					if err := errors.Join(former.register(t.Context()), w.look(t.Context())); err != nil {
						return err
					}
					clock.Step(patrol)
				}
				return nil
			},
		} {
			t.Run(about, func(t *testing.T) {
				g := NewWithT(t)
				g.Expect(one.register(t.Context())).To(Succeed())
				g.Expect(former.register(t.Context())).To(Succeed())
				g.Expect(end()).To(Succeed())
				_, err := of(activity)
				g.Expect(err).To(Satisfy(apierrors.IsNotFound))
				_, err = registered()
				g.Expect(err).NotTo(HaveOccurred())
			})
		}
		g := NewWithT(t)
		g.Expect(former.withdraw(t.Context())).To(Succeed())
		missing(g)
	})

	t.Run("is removed although it has changed meanwhile", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(one.register(t.Context())).To(Succeed())
		busy, changes := one, 0
		watched, err := client.NewWithWatch(cluster.Administrator(), client.Options{Scheme: scheme})
		g.Expect(err).NotTo(HaveOccurred())
		busy.Client = interceptor.NewClient(watched, interceptor.Funcs{
			Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, options ...client.DeleteOption) error {
				if r, is := obj.(*apiregistrationv1.APIService); is && changes == 0 {
					changes++
					changed := r.DeepCopy()
					metav1.SetMetaDataAnnotation(&changed.ObjectMeta, "example.com/changed", "meanwhile")
					g.Expect(c.Update(ctx, changed)).To(Succeed())
				}
				return c.Delete(ctx, obj, options...)
			},
		})
		g.Expect(busy.withdraw(t.Context())).To(Succeed())
		g.Expect(changes).To(Equal(1))
		missing(g)
	})

	t.Run("is removed by a server that stops long after the other server was killed", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(two.register(t.Context())).To(Succeed())
		clock.Step(silence + time.Second)
		g.Expect(one.register(t.Context())).To(Succeed())
		g.Expect(one.withdraw(t.Context())).To(Succeed())
		missing(g)
	})

	t.Run("does not depend on the clock of a server", func(t *testing.T) {
		g := NewWithT(t)
		late := server("late", "forgeplane-system")
		late.Clock = clocktesting.NewFakeClock(clock.Now().Add(-24 * time.Hour))
		g.Expect(late.register(t.Context())).To(Succeed())
		w := NewWatch(options("forgeplane-system"))
		w.began = clock.Now()
		for range 2 * silence / patrol {
			clock.Step(patrol)
			late.Clock.(*clocktesting.FakeClock).Step(patrol)
			g.Expect(late.register(t.Context())).To(Succeed())
			g.Expect(w.look(t.Context())).To(Succeed())
		}
		_, err := registered()
		g.Expect(err).NotTo(HaveOccurred())

		for range silence/patrol - 1 {
			clock.Step(patrol)
			g.Expect(w.look(t.Context())).To(Succeed())
		}
		_, err = registered()
		g.Expect(err).NotTo(HaveOccurred(), "it may come back yet")
		clock.Step(patrol)
		g.Expect(w.look(t.Context())).To(Succeed())
		missing(g)
		g.Expect(w.leases(t.Context())).To(BeEmpty())

		// The server is back.
		g.Expect(late.register(t.Context())).To(Succeed())
		g.Expect(w.look(t.Context())).To(Succeed())
		_, err = registered()
		g.Expect(err).NotTo(HaveOccurred())
	})

	t.Run("is removed while no server is ready, and restored by the first server that is ready", func(t *testing.T) {
		g := NewWithT(t)
		ready := true
		unready := two
		unready.Ready = func(context.Context) bool { return ready }
		w := NewWatch(options("forgeplane-system"))
		w.began = clock.Now().Add(-2 * silence)
		pass := func(d time.Duration) {
			for range d / patrol {
				clock.Step(patrol)
				if ready {
					g.Expect(unready.register(t.Context())).To(Succeed())
				} else {
					g.Expect(unready.register(t.Context())).To(MatchError(errNotReady))
				}
				g.Expect(w.look(t.Context())).To(Succeed())
			}
		}
		pass(silence)
		_, err := registered()
		g.Expect(err).NotTo(HaveOccurred())

		ready = false
		pass(silence)
		missing(g)
		g.Expect(w.leases(t.Context())).To(BeEmpty())

		ready = true
		pass(patrol)
		_, err = registered()
		g.Expect(err).NotTo(HaveOccurred())
	})

	t.Run("follows the authorities of the certificate", func(t *testing.T) {
		g := NewWithT(t)
		authorities = cluster.Administrator().CAData
		g.Expect(one.register(t.Context())).To(Succeed())
		r, err := registered()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(r.Spec.CABundle).To(Equal(authorities))
	})

	t.Run("is restored after another client has changed it", func(t *testing.T) {
		g := NewWithT(t)
		r, err := registered()
		g.Expect(err).NotTo(HaveOccurred())
		r.Spec.Service.Port = ptr.To(int32(8443))
		g.Expect(c.Update(t.Context(), r)).To(Succeed())
		g.Expect(one.register(t.Context())).To(Succeed())
		r, err = registered()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(*r.Spec.Service.Port).To(Equal(int32(443)))
	})
}
