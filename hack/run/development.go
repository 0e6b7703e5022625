package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/process"
)

const pollInterval = 50 * time.Millisecond

// development is a development run.
type development struct {
	settings settings
	reporter *reporter

	binaries     controlplane.Binaries
	controlPlane *controlplane.ControlPlane
	forgeplane   *process.Group
	client       client.Client
	// unready is the number of objects that did not become ready.
	unready int
}

// start starts everything, and returns when it is ready and described. It calls fail when a part of it ends by itself, then or later.
func (d *development) start(ctx context.Context, fail context.CancelCauseFunc) error {
	for _, step := range []func(context.Context, context.CancelCauseFunc) error{
		d.startControlPlane, d.startForgeplane, d.applySamples, d.addActivity, d.waitRegistered, d.describe,
	} {
		if err := step(ctx, fail); err != nil {
			return err
		}
	}
	return nil
}

// stop stops everything that was started, in reverse order.
func (d *development) stop() error {
	var errs []error
	if d.forgeplane != nil {
		d.reporter.say("stopping Forgeplane")
		errs = append(errs, d.forgeplane.Stop())
	}
	if d.controlPlane != nil {
		d.reporter.say("stopping the control plane")
		errs = append(errs, d.controlPlane.Stop())
		d.reporter.say("stopped; the data stays in %s", d.settings.shown(d.settings.data))
	}
	return errors.Join(errs...)
}

func (d *development) startControlPlane(ctx context.Context, fail context.CancelCauseFunc) error {
	d.reporter.say("starting etcd, kube-apiserver and its controllers")
	var err error
	if d.binaries, err = controlplane.FindBinaries(); err != nil {
		return err
	}
	d.controlPlane, err = controlplane.Start(ctx, controlplane.Options{
		Directory: d.settings.controlPlane(), Logs: d.settings.logs(), Port: d.settings.kubePort,
		Binaries: d.binaries, Prepare: d.applyConfig,
	})
	if err != nil {
		return err
	}
	go watch(ctx, d.controlPlane.Failed(), fail)
	return nil
}

// watch passes on the first failure, and ends with the context.
func watch(ctx context.Context, failed <-chan error, fail context.CancelCauseFunc) {
	select {
	case err := <-failed:
		fail(err)
	case <-ctx.Done():
	}
}

// applyConfig applies the objects that an installation needs before Forgeplane runs in it.
func (d *development) applyConfig(ctx context.Context, administrator *rest.Config) error {
	d.reporter.say("applying config/base")
	var err error
	if d.client, err = client.New(administrator, client.Options{}); err != nil {
		return err
	}
	manifests, err := d.render(ctx, "config/base")
	if err != nil {
		return err
	}
	objects, err := decode(manifests)
	if err != nil {
		return err
	}
	if err := d.apply(ctx, objects); err != nil {
		return err
	}
	return d.waitEstablished(ctx, objects)
}

func (d *development) startForgeplane(ctx context.Context, fail context.CancelCauseFunc) error {
	d.reporter.say("starting Forgeplane")
	parts, err := d.parts(ctx)
	if err != nil {
		return err
	}
	d.forgeplane = process.NewGroup()
	for _, o := range parts {
		program, err := o.Program()
		if err != nil {
			return err
		}
		if _, err := d.forgeplane.Start(program); err != nil {
			return err
		}
	}
	go watch(ctx, d.forgeplane.Failed(), fail)
	ctx, cancel := context.WithTimeoutCause(ctx, d.settings.readyTimeout,
		fmt.Errorf("Forgeplane was not ready within %s; its log is in %s", d.settings.readyTimeout, d.settings.shown(d.settings.logs())))
	defer cancel()
	for _, o := range parts {
		if err := o.WaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// pause waits between two polls. It returns an error if polling again is useless.
func pause(ctx context.Context) error {
	timer := time.NewTimer(pollInterval)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
