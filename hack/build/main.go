// Command build builds the programs that "make run" and the tests start, and shows its progress. "forgeplane" stands for the programs of
// this repository, and "controlplane" for those of a control plane, which are built from their published Go modules if they are missing or
// were built from other sources. "node" stands for the programs of a node, and the one that runs it.
//
// A directory named by KUBEBUILDER_ASSETS is used instead of the control plane. It must contain etcd and kube-apiserver, like the archives
// for Kubernetes test tools; other missing programs are built.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/forgeplane/forgeplane/hack/version"
)

func main() { os.Exit(command()) }

// command is main with an exit status.
func command() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	targets := map[string]func(context.Context) error{
		"forgeplane":   forgeplane,
		"controlplane": controlPlane{module: "hack/controlplane", output: "bin/k8s"}.provide,
		"node":         node,
	}
	var target func(context.Context) error
	if len(os.Args) == 2 {
		target = targets[os.Args[1]]
	}
	if target == nil {
		fmt.Fprintln(os.Stderr, "usage: go run ./hack/build forgeplane|controlplane|node")
		return 2
	}
	if err := target(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "building %s: %v\n", os.Args[1], err)
		return 1
	}
	return 0
}

// forgeplane builds the programs of this repository.
func forgeplane(ctx context.Context) error {
	current, err := version.Of(ctx, ".")
	if err != nil {
		return err
	}
	return build{
		name: "Forgeplane", module: ".", output: "bin",
		packages: []string{"./cmd/...", "./hack/run"}, ldflags: current.LinkerFlags(),
	}.run(ctx)
}

// node builds the programs of a node, and the one that runs it.
func node(ctx context.Context) error {
	const module, output = "hack/node", "bin/node"
	release, err := controlPlane{module: module}.version(ctx)
	if err != nil {
		return err
	}
	err = build{
		name: "node", module: module, output: output, packages: []string{"./pause", "./coredns", "tool"}, ldflags: kubernetesFlags(release),
	}.run(ctx)
	if err != nil {
		return err
	}
	return build{name: "node", module: ".", output: output, packages: []string{"./hack/cluster"}}.run(ctx)
}
