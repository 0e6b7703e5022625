package main

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// registered are the APIServices of the groups that Forgeplane serves through kube-apiserver.
var registered = []string{"v4.rest.forgeplane.dev", "v1alpha1.activity.forgeplane.dev"}

// waitRegistered waits until kube-apiserver serves the groups of Forgeplane. Before that, kubectl complains about each of them.
func (d *development) waitRegistered(ctx context.Context, _ context.CancelCauseFunc) error {
	if strings.Contains(strings.Join(d.settings.flags, "=")+"=", "--tls-address=0=") {
		return nil
	}
	var services []*unstructured.Unstructured
	for _, name := range registered {
		service := &unstructured.Unstructured{}
		service.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
		service.SetName(name)
		services = append(services, service)
	}
	waiting, err := d.waitFor(ctx, services, "Available", false)
	return d.goOnWithout(ctx, waiting, err)
}
