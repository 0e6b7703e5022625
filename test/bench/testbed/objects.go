package testbed

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// createTimeout limits the time until a created object is ready.
const createTimeout = 2 * time.Minute

// Object is an object of Forgeplane.
type Object interface {
	client.Object
	GetCommonStatus() *v1alpha1.CommonStatus
}

// Ready reports whether an object is ready in its current generation.
func Ready(obj Object) bool {
	status := obj.GetCommonStatus()
	return status.ObservedGeneration == obj.GetGeneration() && meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady)
}

// Create creates objects in their order, waits until all are ready, and updates them. It is for a few objects, because it polls each of them.
func (t *Testbed) Create(ctx context.Context, objects ...Object) error {
	for _, obj := range objects {
		if err := t.client.Create(ctx, obj); err != nil {
			return fmt.Errorf("creating %T %s: %w", obj, obj.GetName(), err)
		}
	}
	for _, obj := range objects {
		err := poll(ctx, createTimeout, fmt.Sprintf("%T %s to be ready", obj, obj.GetName()), func(ctx context.Context) (bool, error) {
			if err := t.client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
				return false, err
			}
			return Ready(obj), nil
		})
		if err != nil {
			condition := meta.FindStatusCondition(obj.GetCommonStatus().Conditions, v1alpha1.ConditionReady)
			return fmt.Errorf("%w: its condition is %+v", err, condition)
		}
	}
	return nil
}
