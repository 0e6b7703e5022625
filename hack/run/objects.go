package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/test/manifest"
)

const forgeplaneGroup = "forgeplane.dev"

// render builds a kustomization of the checkout.
func (d *development) render(ctx context.Context, directory string) ([]byte, error) {
	command := exec.CommandContext(ctx, d.binaries.Kubectl, "kustomize", filepath.Join(d.settings.checkout, directory))
	var messages bytes.Buffer
	command.Stderr = &messages
	manifests, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("building %s: %w: %s", directory, err, strings.TrimSpace(messages.String()))
	}
	return manifests, nil
}

// decode reads manifests and sorts namespaces first, because other objects need them.
func decode(manifests []byte) ([]*unstructured.Unstructured, error) {
	objects, err := manifest.Read(bytes.NewReader(manifests))
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return order(a) - order(b) })
	return objects, nil
}

func order(object *unstructured.Unstructured) int {
	if object.GetKind() == "Namespace" {
		return 0
	}
	return 1
}

// apply applies objects in the way of "kubectl apply --server-side" and with the same field manager, so that users can continue with kubectl.
func (d *development) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		err := d.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()),
			client.FieldOwner("kubectl"), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("applying %s: %w", title(object), err)
		}
	}
	return nil
}

// waitEstablished waits until kube-apiserver serves the kinds among the objects.
func (d *development) waitEstablished(ctx context.Context, objects []*unstructured.Unstructured) error {
	kinds := slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool {
		return o.GetKind() != "CustomResourceDefinition"
	})
	waiting, err := d.waitFor(ctx, kinds, "Established", false)
	if err != nil {
		return fmt.Errorf("%w:\n%s", err, strings.Join(waiting, "\n"))
	}
	return nil
}

// waitFor polls objects until they have a condition, and returns the reasons of the objects that do not have it. If they are optional, it does not
// wait for those that do not exist.
func (d *development) waitFor(ctx context.Context, objects []*unstructured.Unstructured, condition string, optional bool) ([]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d.settings.readyTimeout, fmt.Errorf("not %s within %s", condition, d.settings.readyTimeout))
	defer cancel()
	for {
		var waiting []string
		for _, object := range objects {
			current := &unstructured.Unstructured{}
			current.SetGroupVersionKind(object.GroupVersionKind())
			err := d.client.Get(ctx, client.ObjectKeyFromObject(object), current)
			if apierrors.IsNotFound(err) && optional {
				continue
			}
			if client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
				return nil, fmt.Errorf("reading %s: %w", title(object), err)
			}
			if has, why := hasCondition(current, condition); !has {
				waiting = append(waiting, title(object)+": "+why)
			}
		}
		if len(waiting) == 0 {
			return nil, nil
		}
		if err := pause(ctx); err != nil {
			return waiting, err
		}
	}
}

// hasCondition reports whether a condition is true and describes the current generation of the object, and why not.
func hasCondition(object *unstructured.Unstructured, condition string) (has bool, why string) {
	observed, found, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if found && observed < object.GetGeneration() {
		return false, "no controller has seen it as it is now"
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, entry := range conditions {
		fields, ok := entry.(map[string]any)
		if !ok || fields["type"] != condition {
			continue
		}
		return fields["status"] == "True", fmt.Sprintf("%s=%v %v: %v", condition, fields["status"], fields["reason"], fields["message"])
	}
	return false, "it has no condition " + condition
}

// title returns the kind, namespace and name of an object.
func title(object *unstructured.Unstructured) string {
	name := object.GetName()
	if namespace := object.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return object.GetKind() + " " + name
}
