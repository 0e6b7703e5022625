package controllers_test

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/controllers"
	"github.com/forgeplane/forgeplane/controllers/remotemirror"
	"github.com/forgeplane/forgeplane/controllers/storagemove"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/repository"
)

func TestMetrics_includeTheSlotsOfBackgroundWork(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	// The manager is not started, so it does not contact this address.
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	registry, cat := prometheus.NewRegistry(), catalog.New(mgr.GetCache())
	p := controllers.Parts{
		Client: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("forgeplane"), Catalog: cat,
		Repositories: repository.New(nil, cat), Clock: clock.RealClock{}, Mirrors: remotemirror.DefaultLimits(),
		Moves: storagemove.DefaultLimits(), Metrics: registry,
	}
	if err := p.AddTo(mgr, controller.Options{SkipNameValidation: ptr.To(true)}); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var slots []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "forgeplane_slots" {
				slots = append(slots, m.GetLabel()[0].GetValue())
			}
		}
	}
	if !slices.Equal(slots, []string{"forks", "imports", "mirrors", "registry-cleanups", "storage-move-removals", "storage-moves"}) {
		t.Errorf("got %v", slots)
	}
}
