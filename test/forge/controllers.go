package forge

import (
	"fmt"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/controllers/accesstoken"
	"github.com/forgeplane/forgeplane/controllers/deploykey"
	"github.com/forgeplane/forgeplane/controllers/group"
	"github.com/forgeplane/forgeplane/controllers/membership"
	"github.com/forgeplane/forgeplane/controllers/project"
	"github.com/forgeplane/forgeplane/controllers/protectedbranch"
	"github.com/forgeplane/forgeplane/controllers/repositorystorage"
	"github.com/forgeplane/forgeplane/controllers/user"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/ids"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// parts are what the controllers of all kinds are made of.
type parts struct {
	client       client.Client
	secrets      client.Reader
	events       events.EventRecorder
	catalog      *catalog.Catalog
	ids          *ids.Allocator
	repositories *repository.Repositories
	clock        clock.PassiveClock
	fileImport   bool
}

// registered is the controller of one kind.
type registered struct {
	reconciler reconcile.Reconciler
	setup      func(ctrl.Manager, controller.Options) error
}

// setUp is what every controller has.
type setUp[T frame.Object] interface {
	reconcile.ObjectReconciler[T]
	SetupWithManager(mgr ctrl.Manager, o controller.Options) error
}

func register[T frame.Object](c client.Client, one setUp[T]) registered {
	return registered{reconcile.AsReconciler(c, one), one.SetupWithManager}
}

// controllers returns the controllers by the kind of their objects.
func (p parts) controllers() map[string]registered {
	c, e, cat := p.client, p.events, p.catalog
	return map[string]registered{
		"User":              register(c, user.New(c, e, cat, p.ids)),
		"AccessToken":       register(c, accesstoken.New(c, e, cat, p.ids, p.clock, PlatformNamespace)),
		"RepositoryStorage": register(c, repositorystorage.New(c, e, cat)),
		"Group":             register(c, group.New(c, e, cat, p.ids)),
		"Project": register(c, project.New(c, e, cat, p.ids, p.repositories, project.Options{
			Secrets: p.secrets, Clock: p.clock, AllowFileImport: p.fileImport,
		})),
		"Membership":      register(c, membership.New(c, e, cat, p.clock)),
		"DeployKey":       register(c, deploykey.New(c, e, cat, p.ids)),
		"ProtectedBranch": register(c, protectedbranch.New(c, e, cat, p.ids, p.repositories)),
	}
}

// addTo adds the controllers of all kinds to a manager.
func (p parts) addTo(mgr ctrl.Manager, o controller.Options) error {
	for kind, one := range p.controllers() {
		if err := one.setup(mgr, o); err != nil {
			return fmt.Errorf("setting up the controller of %s: %w", kind, err)
		}
	}
	return nil
}
