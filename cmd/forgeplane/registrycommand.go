package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/forgeplane/forgeplane/apiserver"
	"github.com/forgeplane/forgeplane/apiserver/connection"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/internal/activity"
	"github.com/forgeplane/forgeplane/internal/index"
	"github.com/forgeplane/forgeplane/internal/informer"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/watermark"
)

// registryCommand returns the command of a process that is a container registry alone.
func registryCommand() *cobra.Command {
	p := parts{registry: true}
	o := defaults(p)
	cmd := &cobra.Command{
		Use: "registry", Short: "Run the container registry only, in any number of replicas", Args: cobra.NoArgs,
		Long: `Serve the images of projects at /v2, in any number of replicas that share the storage of the images and the activity
database. Clients get their tokens from the server at --external-url, which runs with --registry=separate.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validateRegistry(); err != nil {
				return err
			}
			return runRegistry(cmd.Context(), o)
		},
	}
	o.bind(cmd.Flags(), p)
	cmd.AddCommand(collectCommand())
	return cmd
}

// validateRegistry is validate for a container registry alone.
func (o *options) validateRegistry() error {
	if o.externalURL == "" {
		return errors.New("--external-url must be the URL of the server that issues the tokens of clients")
	}
	if o.images.url == "" {
		return errors.New("--registry-url must be the URL at which clients reach this registry")
	}
	if _, err := o.external(); err != nil {
		return err
	}
	if _, err := o.activityName(); err != nil {
		return err
	}
	if _, err := o.rates.limits(o.development); err != nil {
		return err
	}
	if err := errors.Join(o.slots.validate(), o.audit.validate(), o.images.validate(o.parts)); err != nil {
		return err
	}
	_, err := o.rootGroupRules()
	return err
}

// runRegistry runs a container registry until ctx ends.
func runRegistry(ctx context.Context, o *options) (err error) {
	startLogging(o)
	informers := &informer.Factory{}
	mgr, err := newManager(o.parts, o, informers)
	if err != nil {
		return err
	}
	if err := index.Add(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	s, err := share(mgr, o, informers)
	if err != nil {
		return err
	}
	if s.Stores, err = o.openActivity(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Database.Close()) }()
	if s.registry, err = o.registry(ctx, s); err != nil {
		return err
	}
	if s.audit, err = o.audit.open(mgr.GetLogger()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.audit.Close()) }()
	if err := addRegistryServer(ctx, mgr, o, s); err != nil {
		return err
	}
	if err := addChecks(mgr, s); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// addRegistryServer adds to mgr the server of the container registry.
func addRegistryServer(ctx context.Context, mgr ctrl.Manager, o *options, s shared) error {
	external, images, err := o.clients(ctx, mgr, s)
	if err != nil {
		return err
	}
	limits, err := o.rates.limits(o.development)
	if err != nil {
		return err
	}
	server, err := apiserver.NewRegistryServer(ctx, apiserver.Options{
		Kit: family.Kit{Catalog: s.catalog, Activity: s.Stores, Audit: s.audit, Clock: clock.RealClock{}}, Address: o.httpAddress, ExternalURL: external, Registry: images,
		RateLimits: limits, Connections: connection.Limits{PerAddress: o.rates.connections, Trusted: limits.TrustedProxies},
		Others:  watermark.New(s.Written, s.informers, mgr.GetLogger().WithName("watermark")),
		Metrics: []prometheus.Registerer{metrics.Registry}, Log: mgr.GetLogger().WithName("server"),
	})
	if err != nil {
		return err
	}
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("adding the container registry: %w", err)
	}
	if err := mgr.AddReadyzCheck("server", server.Ready); err != nil {
		return fmt.Errorf("adding a readiness check: %w", err)
	}
	return nil
}

// progressInterval is the time between two lines about the progress of a command.
const progressInterval = 5 * time.Second

// collectCommand returns the command that collects garbage once.
func collectCommand() *cobra.Command {
	o := defaults(parts{registry: true})
	cmd := &cobra.Command{
		Use: "gc", Short: "Remove unused images, layers and unfinished uploads once", Args: cobra.NoArgs,
		Long: `Remove images without a tag, layers of no image, unfinished uploads, and what deleted repositories have left. Clients can push
and pull meanwhile. The command needs the storage of the images and the activity database, and no cluster. The leading
manager does the same regularly, as --registry-collect-interval of "forgeplane manager" says.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.images.validate(o.parts); err != nil {
				return err
			}
			return collect(cmd, o)
		},
	}
	o.activityDatabase.bind(cmd.Flags())
	o.images.bindStorage(cmd.Flags())
	o.images.bindCollect(cmd.Flags())
	return cmd
}

// collect collects the garbage of the registry, and prints the progress.
func collect(cmd *cobra.Command, o *options) (err error) {
	ctx := cmd.Context()
	startLogging(o)
	// With SQLite, the command can run at the same time as the serving process if both are on one machine.
	name, err := o.activityDatabase.name(true)
	if err != nil {
		return err
	}
	a, err := activity.Open(ctx, name, clock.RealClock{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Database.Close()) }()
	storage, err := o.images.open(ctx)
	if err != nil {
		return err
	}
	images, err := registry.New(ctx, storage, a.Containers, nil, clock.RealClock{})
	if err != nil {
		return err
	}
	options, told := o.images.collect, time.Now()
	options.Progress = func(text string) {
		if now := time.Now(); now.Sub(told) >= progressInterval {
			told = now
			cmd.PrintErrln(text)
		}
	}
	collected, err := images.Collect(ctx, options)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), "Removed", collected)
	return err
}
