package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/cli-utils/pkg/object"
	"github.com/fluxcd/pkg/ssa"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// inventory is the ConfigMap with the objects that were applied last. Flux has them in the status of the Kustomization.
const inventory = "flux-inventory"

// entry names an object of the inventory. Version is the version in which it was applied, and no part of its identity.
type entry struct {
	Version string
	object.ObjMetadata
}

// flux applies and prunes the objects, and waits for them, as a Kustomization with the options prune and wait does. It leaves the field managers of
// other tools as they are.
func flux(ctx context.Context, config *rest.Config, namespace string, objects []*unstructured.Unstructured, out io.Writer) error {
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	poller := polling.NewStatusPoller(c, c.RESTMapper(), polling.Options{})
	manager := ssa.NewResourceManager(c, poller, ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"})
	manager.SetOwnerLabels(objects, "forge", namespace)
	changes, err := manager.ApplyAllStaged(ctx, objects, ssa.DefaultApplyOptions())
	if err != nil {
		return err
	}
	stale, err := replaced(ctx, c, namespace, objects)
	if err != nil {
		return err
	}
	options := ssa.DefaultDeleteOptions()
	options.Inclusions = manager.GetOwnerLabels("forge", namespace)
	deleted, err := manager.DeleteAll(ctx, stale, options)
	if err != nil {
		return err
	}
	changes.Append(deleted.Entries)
	for _, e := range changes.Entries {
		fmt.Fprintln(out, e.Action, e.ObjMetadata.GroupKind.Kind, e.ObjMetadata.Name)
	}
	wait := ssa.WaitOptions{Interval: 100 * time.Millisecond, Timeout: timeout}
	if deadline, ok := ctx.Deadline(); ok {
		wait.Timeout = time.Until(deadline)
	}
	if err := manager.WaitForTermination(stale, wait); err != nil {
		return err
	}
	return manager.WaitForSetWithContext(ctx, object.UnstructuredSetToObjMetadataSet(objects), wait)
}

// replaced stores the inventory, and returns the objects of the former one that are not in it.
func replaced(ctx context.Context, c client.Client, namespace string, objects []*unstructured.Unstructured) (stale []*unstructured.Unstructured, err error) {
	kept, names := map[object.ObjMetadata]bool{}, []entry(nil)
	for _, o := range objects {
		name := entry{o.GroupVersionKind().Version, object.UnstructuredToObjMetadata(o)}
		kept[name.ObjMetadata], names = true, append(names, name)
	}
	text, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: inventory}}
	err = c.Get(ctx, client.ObjectKeyFromObject(m), m)
	if apierrors.IsNotFound(err) {
		m.Data = map[string]string{inventory: string(text)}
		return nil, c.Create(ctx, m)
	} else if err != nil {
		return nil, err
	}
	var former []entry
	if err := json.Unmarshal([]byte(m.Data[inventory]), &former); err != nil {
		return nil, err
	}
	for _, name := range former {
		if !kept[name.ObjMetadata] {
			o := &unstructured.Unstructured{}
			o.SetGroupVersionKind(name.GroupKind.WithVersion(name.Version))
			o.SetNamespace(name.Namespace)
			o.SetName(name.Name)
			stale = append(stale, o)
		}
	}
	m.Data[inventory] = string(text)
	return stale, c.Update(ctx, m)
}
