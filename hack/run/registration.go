package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/forgeplane/forgeplane/internal/registration"
)

// waitRegistered waits until kube-apiserver serves the groups of Forgeplane. Before that, kubectl complains about each of them.
func (d *development) waitRegistered(ctx context.Context, _ context.CancelCauseFunc) error {
	if serves, err := servesTLS(d.settings.flags); err != nil || !serves {
		return err
	}
	var services []*unstructured.Unstructured
	for _, group := range registration.Groups() {
		service := &unstructured.Unstructured{}
		service.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
		service.SetName(registration.APIService(group))
		services = append(services, service)
	}
	waiting, err := d.waitFor(ctx, services, "Available", false)
	return d.goOnWithout(ctx, waiting, err)
}

// servesTLS reports whether Forgeplane with some flags serves its groups to kube-apiserver.
func servesTLS(args []string) (bool, error) {
	flags := pflag.NewFlagSet("forgeplane", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	address := flags.String("tls-address", "", "")
	if err := flags.Parse(args); err != nil {
		return false, fmt.Errorf("reading the flags of forgeplane: %w", err)
	}
	return *address != "0", nil
}
