package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/forgeplane/forgeplane/internal/feature"
)

// features are the features that --feature turns on and off.
type features map[string]bool

// Set implements pflag.Value.
func (f features) Set(text string) error {
	name, on, err := feature.Parse(text)
	if err == nil {
		f[name] = on
	}
	return err
}

// String implements pflag.Value.
func (f features) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(f)) {
		all = append(all, name+"="+feature.Value(f[name]))
	}
	return strings.Join(all, ",")
}

// Type implements pflag.Value.
func (features) Type() string { return "name=bool" }

// featureUsage lists the features and their defaults.
func featureUsage() string {
	var on, off []string
	for _, d := range feature.Definitions() {
		if d.On {
			on = append(on, d.Name)
		} else {
			off = append(off, d.Name)
		}
	}
	return fmt.Sprintf("turns a feature on or off unless it is set over REST, as in %s=false; repeatable; by default %s is on, and %s are off",
		on[0], strings.Join(on, ", "), strings.Join(off, ", "))
}

// flags returns the feature flags. They read the cache, so they are valid once the process is ready.
func (f features) flags(ctx context.Context, mgr ctrl.Manager, namespace string) (*feature.Flags, error) {
	if _, err := mgr.GetCache().GetInformer(ctx, &corev1.ConfigMap{}); err != nil {
		return nil, fmt.Errorf("following the ConfigMap of the features: %w", err)
	}
	return feature.New(mgr.GetClient(), namespace, f), nil
}
