// Package declaredid records which objects are declared with their ids, as in manifests that were exported from a cluster, so that tenants can
// apply these manifests again after the objects were deleted.
package declaredid

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/fieldmanager"
	"github.com/forgeplane/forgeplane/internal/ids"
)

// maxRecorded is the maximum number of ids in the record of a namespace, because tenants cause them.
const maxRecorded = 1000

// conflictDelay is the delay before retrying a write that collided with another one.
const conflictDelay = time.Second

// Controller reconciles the records of namespaces.
type Controller struct {
	client client.Client
	ids    *ids.Allocator
	later  time.Duration
}

// New returns the controller. It records ids after the delay later, so that it writes many at once.
func New(c client.Client, a *ids.Allocator, later time.Duration) *Controller {
	return &Controller{client: c, ids: a, later: later}
}

// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,namespace=forgeplane-system,resources=rolebindings,verbs=list;watch;create;update;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,namespace=forgeplane-system,resources=roles,resourceNames=forgeplane-declared-ids,verbs=bind
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch

// SetupWithManager starts the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	b := ctrl.NewControllerManagedBy(mgr).Named("declaredid").WithOptions(o).
		Watches(&rbacv1.RoleBinding{}, recorded).Watches(&corev1.Namespace{}, gone)
	for _, kind := range kinds() {
		b.Watches(kind, c.declared())
	}
	if err := b.Complete(c); err != nil {
		return fmt.Errorf("setting up the controller: %w", err)
	}
	return nil
}

// kinds returns empty objects of the kinds whose ids are recorded. Only administrators create objects without a namespace, and the id of a
// StorageMove stays taken when the object is gone.
func kinds() []v1alpha1.Identified {
	return []v1alpha1.Identified{
		&v1alpha1.Badge{}, &v1alpha1.BotToken{}, &v1alpha1.DeployKey{}, &v1alpha1.Group{}, &v1alpha1.Label{}, &v1alpha1.Project{},
		&v1alpha1.ProtectedBranch{}, &v1alpha1.RemoteMirror{}, &v1alpha1.TriggerToken{},
	}
}

// Reconcile writes the record of a namespace, if it is not right.
func (c *Controller) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	var was rbacv1.RoleBinding
	if err := c.client.Get(ctx, c.ids.BindingKey(r.Name), &was); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading the declared ids of namespace %s: %w", r.Name, err)
	}
	subjects, err := c.subjects(ctx, r.Name, was.Subjects)
	if err != nil {
		return reconcile.Result{}, err
	}
	if slices.Equal(subjects, was.Subjects) {
		return reconcile.Result{}, nil
	}
	err = c.write(ctx, r.Name, &was, subjects)
	if collides(err, was.Name != "") {
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("recording the declared ids of namespace %s: %w", r.Name, err)
	}
	return reconcile.Result{}, nil
}

// collides reports whether a write of a record failed because the cache is behind. known says that the cache has the record.
func collides(err error, known bool) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || known && apierrors.IsNotFound(err)
}

func (c *Controller) write(ctx context.Context, namespace string, was *rbacv1.RoleBinding, subjects []rbacv1.Subject) error {
	key, binding := c.ids.BindingKey(namespace), was.DeepCopy()
	binding.Namespace, binding.Name, binding.Subjects = key.Namespace, key.Name, subjects
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: ids.DeclareRole}
	ctx = audit.For(ctx, binding)
	switch {
	case was.Name == "":
		return c.client.Create(ctx, binding)
	case len(subjects) == 0:
		return c.client.Delete(ctx, binding, client.Preconditions{UID: &was.UID, ResourceVersion: &was.ResourceVersion})
	default:
		return c.client.Update(ctx, binding)
	}
}

// subjects returns the subjects of the record of a namespace: its objects that are declared with the ids that they have, and those that were
// recorded before and are gone, as long as no other object has the id.
func (c *Controller) subjects(ctx context.Context, name string, recorded []rbacv1.Subject) ([]rbacv1.Subject, error) {
	var namespace corev1.Namespace
	if err := c.client.Get(ctx, client.ObjectKey{Name: name}, &namespace); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading the namespace %s: %w", name, err)
	}
	former, declared := ids.Record(recorded, namespace.UID), map[ids.Declarer]int64{}
	for _, kind := range kinds() {
		if err := c.find(ctx, name, kind, declared, former); err != nil {
			return nil, err
		}
	}
	var subjects []rbacv1.Subject
	for _, record := range []map[ids.Declarer]int64{declared, former} { // in the order in which they count
		for _, d := range slices.SortedFunc(maps.Keys(record), ids.Declarer.Compare) {
			if s, ok := ids.Subject(namespace.UID, d, record[d]); ok && len(subjects) < maxRecorded {
				subjects = append(subjects, s)
			}
		}
	}
	slices.SortFunc(subjects, func(a, b rbacv1.Subject) int { return strings.Compare(a.Name, b.Name) })
	return subjects, nil
}

// find adds to declared the objects of a kind that are declared with their ids, and drops from former everything of this kind that no longer
// counts.
func (c *Controller) find(ctx context.Context, namespace string, kind v1alpha1.Identified, declared, former map[ids.Declarer]int64) error {
	list := kind.NewList()
	if err := c.client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the objects of namespace %s: %w", namespace, err)
	}
	err := meta.EachListItem(list, func(o runtime.Object) error {
		obj := o.(v1alpha1.Identified)
		d, err := c.ids.DeclarerOf(obj)
		if err != nil {
			return err
		}
		if spec, status := obj.IDs(); *status != 0 && *spec == *status && fieldmanager.DeclaresID(obj) {
			declared[d] = *status
			delete(former, d)
		} else if former[d] != obj.RESTID() {
			delete(former, d)
		}
		return nil
	})
	of, kindErr := c.ids.DeclarerOf(kind)
	if err := errors.Join(err, kindErr); err != nil {
		return err
	}
	for d, id := range former {
		if d.Kind != of.Kind {
			continue
		}
		having, err := c.ids.Having(ctx, kind, id)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(having, func(o v1alpha1.Identified) bool { return o.GetNamespace() != namespace || o.GetName() != d.Name }) {
			delete(former, d)
		}
	}
	return nil
}
