// Package registration registers the aggregated API groups with kube-apiserver while a server serves them. An APIService without a server
// blocks the deletion of namespaces in the whole cluster.
package registration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// component is the label of the leases.
	component = "app.kubernetes.io/component"

	server = "forgeplane-apiserver"

	// serves is the annotation of a lease with the APIServices of its server, separated by commas: during an upgrade or a rollback, the servers
	// of two versions can serve different groups.
	serves = "forgeplane.dev/serves"

	// fieldOwner is the field manager of what is applied.
	fieldOwner = client.FieldOwner("forgeplane-registration")

	// renewal is the interval at which a server renews its lease and checks the registration.
	renewal = 5 * time.Second
	// silence is the time without a renewal after which a server counts as gone. The last renewal, and its absence, can each be noticed
	// late, so the registration of a killed server disappears within a minute.
	silence = 45 * time.Second
	// stopTimeout limits the removal of the registration.
	stopTimeout = 10 * time.Second
)

// Options of a registration.
type Options struct {
	// Groups are the API groups that the servers serve, each in one version.
	Groups []schema.GroupVersion
	// Client reads past any cache. Its scheme must have apiregistration.k8s.io/v1.
	Client client.Client
	// Service is the Service of the servers, in the platform's namespace.
	Service client.ObjectKey
	// Port of the Service.
	Port int32
	// ExternalName, unless empty, creates the Service with type ExternalName, for a server outside of the cluster.
	ExternalName string
	Clock        clock.WithTicker
	Log          logr.Logger
}

// Server is one server's part in the registration.
type Server struct {
	Options
	// Name identifies the server among all that run at the same time. A server that was killed and restarted with the same name takes over
	// its lease.
	Name string
	// Authorities returns the authorities that verify the current certificate of the server, as PEM.
	Authorities func() []byte
	// Ready reports whether the server can serve. While it cannot, it does not renew its lease, so that it gets no requests. nil means that
	// it always can.
	Ready func(ctx context.Context) bool
}

// errNotReady says that the server gives no sign for now.
var errNotReady = errors.New("the server is not ready")

// A request to apply names the object that it creates, so "create" can be restricted to a name; a request to create does not.
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=forgeplane-system,resources=leases,verbs=get;list;create;update;delete,roleName=forgeplane-apiserver
// +kubebuilder:rbac:groups="",namespace=forgeplane-system,resources=services,resourceNames=forgeplane-apiserver,verbs=get;create;patch,roleName=forgeplane-apiserver
// +kubebuilder:rbac:groups=apiregistration.k8s.io,resources=apiservices,resourceNames=v4.rest.forgeplane.dev;v1alpha1.activity.forgeplane.dev,verbs=get;create;patch;delete,roleName=forgeplane-apiserver

// Run registers the server, which must already answer requests, and keeps it registered while it is ready, until ctx ends. It then removes
// the registrations. The server must answer until Run returns.
func (s Server) Run(ctx context.Context) {
	ticker := s.Clock.NewTicker(renewal)
	defer ticker.Stop()
	for {
		if err := s.register(ctx); err != nil && ctx.Err() == nil {
			s.Log.Error(err, "Failed to register the aggregated API")
		}
		select {
		case <-ctx.Done():
			if err := s.withdraw(context.WithoutCancel(ctx)); err != nil {
				s.Log.Error(err, "Failed to remove the registration of the aggregated API; a manager removes it within a minute")
			}
			return
		case <-ticker.C():
		}
	}
}

// register creates all objects. The lease comes first, so that no other process removes the others.
func (s Server) register(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if s.Ready != nil && !s.Ready(ctx) {
		return errNotReady
	}
	if err := s.renew(ctx); err != nil {
		return fmt.Errorf("renewing the lease: %w", err)
	}
	if s.ExternalName != "" {
		if err := s.ensureService(ctx); err != nil {
			return fmt.Errorf("creating the Service %s: %w", s.Service, err)
		}
	}
	for _, g := range s.Groups {
		if err := s.ensureAPIService(ctx, g); err != nil {
			return fmt.Errorf("creating the APIService %s: %w", APIService(g), err)
		}
	}
	return nil
}

// APIService returns the name of the registration of a group.
func APIService(g schema.GroupVersion) string { return g.Version + "." + g.Group }

func (s Server) lease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.Service.Namespace, Name: server + "-" + s.Name, Labels: map[string]string{component: server},
	}}
}

func (s Server) renew(ctx context.Context) error {
	lease := s.lease()
	err := s.Client.Get(ctx, client.ObjectKeyFromObject(lease), lease)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	names := make([]string, len(s.Groups))
	for i, g := range s.Groups {
		names[i] = APIService(g)
	}
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, serves, strings.Join(names, ","))
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To(s.Name), LeaseDurationSeconds: ptr.To(int32(silence.Seconds())),
		RenewTime: ptr.To(metav1.NewMicroTime(s.Clock.Now())),
	}
	if err != nil {
		return s.Client.Create(ctx, lease)
	}
	return s.Client.Update(ctx, lease)
}

func (s Server) ensureService(ctx context.Context) error {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.Service.Namespace, Name: s.Service.Name}}
	want := corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: s.ExternalName}
	err := s.Client.Get(ctx, client.ObjectKeyFromObject(service), service)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && service.Spec.Type == want.Type && service.Spec.ExternalName == want.ExternalName {
		return nil
	}
	service.Spec = want
	return s.apply(ctx, service, corev1.SchemeGroupVersion.WithKind("Service"))
}

func (s Server) ensureAPIService(ctx context.Context, g schema.GroupVersion) error {
	want := apiregistrationv1.APIServiceSpec{
		Group: g.Group, Version: g.Version, CABundle: s.Authorities(),
		Service: &apiregistrationv1.ServiceReference{Namespace: s.Service.Namespace, Name: s.Service.Name, Port: ptr.To(s.Port)},
		// After the groups of custom resources, so that kubectl's short names keep their meaning.
		GroupPriorityMinimum: 100, VersionPriority: 100,
	}
	registered := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: APIService(g)}}
	err := s.Client.Get(ctx, client.ObjectKeyFromObject(registered), registered)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil {
		if !s.ours(registered) {
			return errors.New("another installation registered it")
		}
		if bytes.Equal(registered.Spec.CABundle, want.CABundle) && reflect.DeepEqual(registered.Spec.Service, want.Service) {
			return nil
		}
	}
	registered.Spec = want
	return s.apply(ctx, registered, apiregistrationv1.SchemeGroupVersion.WithKind("APIService"))
}

// apply creates obj or updates it to its spec. It returns a conflict if obj was read and has changed since, or if it was missing and
// another server has created it in the meantime.
func (s Server) apply(ctx context.Context, obj client.Object, kind schema.GroupVersionKind) error {
	whole, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return err
	}
	wanted := &unstructured.Unstructured{Object: map[string]any{"spec": whole["spec"]}}
	wanted.SetGroupVersionKind(kind)
	wanted.SetNamespace(obj.GetNamespace())
	wanted.SetName(obj.GetName())
	options := []client.ApplyOption{fieldOwner}
	if version := obj.GetResourceVersion(); version != "" {
		wanted.SetResourceVersion(version)
		// Each client that edits the fields becomes another manager of them.
		options = append(options, client.ForceOwnership)
	}
	return s.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted), options...)
}

// ours reports whether a registration belongs to this installation.
func (o Options) ours(r *apiregistrationv1.APIService) bool {
	to := r.Spec.Service
	return to != nil && to.Namespace == o.Service.Namespace && to.Name == o.Service.Name
}

// withdraw removes the registrations of the groups that no other server serves.
func (s Server) withdraw(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := s.Client.Delete(ctx, s.lease()); client.IgnoreNotFound(err) != nil {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		others, err := s.leases(ctx)
		if err != nil {
			return err
		}
		alive := slices.DeleteFunc(others, func(l coordinationv1.Lease) bool {
			return l.Spec.RenewTime == nil || s.Clock.Since(l.Spec.RenewTime.Time) >= silence
		})
		return s.unregister(ctx, alive...)
	})
}

func (o Options) leases(ctx context.Context) ([]coordinationv1.Lease, error) {
	var list coordinationv1.LeaseList
	err := o.Client.List(ctx, &list, client.InNamespace(o.Service.Namespace), client.MatchingLabels{component: server})
	return list.Items, err
}

// Unregister removes the registrations of this installation, whose servers must have stopped.
func (o Options) Unregister(ctx context.Context) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error { return o.unregister(ctx) })
}

// unregister deletes the registrations of the groups that no living server serves. A lease without the annotation stands for all groups.
func (o Options) unregister(ctx context.Context, alive ...coordinationv1.Lease) error {
	for _, g := range o.Groups {
		served := slices.ContainsFunc(alive, func(l coordinationv1.Lease) bool {
			names, known := l.Annotations[serves]
			return !known || slices.Contains(strings.Split(names, ","), APIService(g))
		})
		if served {
			continue
		}
		if err := o.unregisterGroup(ctx, g); err != nil {
			return fmt.Errorf("deleting the APIService %s: %w", APIService(g), err)
		}
	}
	return nil
}

// unregisterGroup deletes a registration as it is now. The error is a conflict if it changes meanwhile, as when kube-apiserver writes its status.
func (o Options) unregisterGroup(ctx context.Context, g schema.GroupVersion) error {
	registered := &apiregistrationv1.APIService{}
	if err := o.Client.Get(ctx, client.ObjectKey{Name: APIService(g)}, registered); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !o.ours(registered) {
		return nil
	}
	err := o.Client.Delete(ctx, registered, client.Preconditions{UID: ptr.To(registered.UID), ResourceVersion: ptr.To(registered.ResourceVersion)})
	return client.IgnoreNotFound(err)
}
