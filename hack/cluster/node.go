package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/process"
)

// readyTimeout limits how long the runtime, and then the node, take to become ready.
const readyTimeout = 2 * time.Minute

// node is a cluster of one node, in the namespaces of this process. This process is the first one there, so all others end with it.
type node struct {
	space    string // directory
	programs string // directory
	process  int    // which holds the namespaces
	images   []string

	group   *process.Group
	cluster *controlplane.ControlPlane
	kubectl string
}

func (n *node) path(elements ...string) string {
	return filepath.Join(append([]string{n.space}, elements...)...)
}

// run runs the node until standard input ends, or until one of its programs does.
func (n *node) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	n.group = process.NewGroup()
	for _, step := range []func(context.Context) error{n.writeSettings, n.startRuntime, n.loadImages, n.startControlPlane, n.startPrograms, n.addObjects} {
		if err := step(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
	fmt.Fprintf(os.Stdout, ready, n.process, n.cluster.Kubeconfig(), filepath.Dir(n.kubectl), n.space)
	select {
	case err := <-n.group.Failed():
		return err
	case err := <-n.cluster.Failed():
		return err
	case <-ctx.Done():
		return nil
	}
}

const ready = `
The node is ready. Ctrl-C removes it with everything in it. Pods and Services are in its own network; try next, in another shell:

  nsenter --target=%d --net
  export KUBECONFIG=%s PATH=%s:"$PATH"
  kubectl get pods --all-namespaces

The logs are in %s/logs.
`

// writeSettings makes the place of the node, and writes the settings of its programs.
func (n *node) writeSettings(ctx context.Context) error {
	if err := execute(ctx, "sh", "-c", prepare, "prepare", n.space, address); err != nil {
		return err
	}
	for file, text := range map[string]string{
		"containerd.toml":       fmt.Sprintf(runtimeSettings, n.space, n.programs),
		"network/node.conflist": network,
		"kubelet.yaml":          fmt.Sprintf(kubeletSettings, n.space),
		"Corefile":              fmt.Sprintf(names, n.path("control-plane", "administrator.kubeconfig")),
	} {
		if err := os.MkdirAll(filepath.Dir(n.path(file)), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(n.path(file), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// startRuntime starts containerd.
func (n *node) startRuntime(ctx context.Context) error {
	containerd, err := exec.LookPath("containerd")
	if err != nil {
		return err
	}
	if err := n.start(containerd, "--config="+n.path("containerd.toml")); err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, readyTimeout)
	defer stop()
	for {
		err := execute(ctx, "ctr", "--address="+n.path("containerd.sock"), "version")
		if err == nil {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case failure := <-n.group.Failed():
			return failure
		case <-ctx.Done():
			return err
		}
	}
}

// start starts a program.
func (n *node) start(path string, arguments ...string) error {
	name := filepath.Base(path)
	_, err := n.group.Start(process.Program{Name: name, Path: path, Args: arguments, Dir: n.space, Log: n.path("logs", name+".log")})
	return err
}

func (n *node) startControlPlane(ctx context.Context) error {
	binaries, err := controlplane.FindBinaries()
	if err != nil {
		return err
	}
	n.kubectl = binaries.Kubectl
	n.cluster, err = controlplane.Start(ctx, controlplane.Options{
		Directory: n.path("control-plane"), Logs: n.path("logs"), Binaries: binaries, Port: kubePort, Ephemeral: true, Flags: apiServerFlags,
	})
	return err
}

// startPrograms starts the programs that are clients of kube-apiserver, each with an identity of its own.
func (n *node) startPrograms(context.Context) error {
	in := func(file string) string { return n.path("control-plane", file) }
	for _, p := range []struct {
		name, user string
		groups     []string
		arguments  []string
	}{
		// The control plane itself has the three controllers that are left out.
		{"kube-controller-manager", "system:kube-controller-manager", nil, []string{
			"--controllers=*,-garbage-collector-controller,-namespace-controller,-clusterrole-aggregation-controller", "--leader-elect=false", "--secure-port=0",
			"--use-service-account-credentials", "--service-account-private-key-file=" + in("service-account.key"), "--root-ca-file=" + in("client-ca.crt"),
		}},
		{"kube-scheduler", "system:kube-scheduler", nil, []string{"--leader-elect=false", "--secure-port=0"}},
		{"kubelet", "system:node:node", []string{"system:nodes", "system:masters"}, []string{
			"--config=" + n.path("kubelet.yaml"), "--root-dir=" + n.path("pods"), "--cert-dir=" + n.path("certificates"), "--hostname-override=node", "--node-ip=" + address,
		}},
		// The machine sets the limits of connection tracking.
		{"kube-proxy", "system:kube-proxy", nil, []string{
			"--proxy-mode=nftables", "--cluster-cidr=" + pods, "--hostname-override=node", "--conntrack-max-per-core=0", "--conntrack-min=0",
			"--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0",
		}},
	} {
		identity, err := n.cluster.Identity(p.user, p.groups...)
		if err != nil {
			return err
		}
		kubeconfig := n.path(p.name + ".kubeconfig")
		if err := controlplane.WriteKubeconfig(kubeconfig, identity); err != nil {
			return err
		}
		if err := n.start(filepath.Join(n.programs, p.name), append(p.arguments, "--kubeconfig="+kubeconfig)...); err != nil {
			return err
		}
	}
	return n.start(filepath.Join(n.programs, "coredns"), "-conf="+n.path("Corefile"))
}

// addObjects adds the volumes, and waits until pods can start.
func (n *node) addObjects(ctx context.Context) error {
	type volume struct{ Name, Path string }
	var all []volume
	for i := range volumes {
		v := volume{Name: fmt.Sprintf("node-%d", i+1)}
		v.Path = n.path("volumes", v.Name)
		if err := os.MkdirAll(v.Path, 0o700); err != nil {
			return err
		}
		all = append(all, v)
	}
	parsed, err := template.New("objects").Parse(objects)
	if err != nil {
		return err
	}
	var manifests bytes.Buffer
	if err := parsed.Execute(&manifests, all); err != nil {
		return err
	}
	if err := os.WriteFile(n.path("objects.yaml"), manifests.Bytes(), 0o600); err != nil {
		return err
	}
	timeout := "--timeout=" + readyTimeout.String()
	for _, arguments := range [][]string{
		{"apply", "--filename=" + n.path("objects.yaml")},
		{"wait", "--for=create", timeout, "node/node"},
		{"wait", "--for=condition=Ready", timeout, "node/node"},
		{"wait", "--for=create", timeout, "serviceaccount/default"},
	} {
		if err := execute(ctx, n.kubectl, append(arguments, "--kubeconfig="+n.cluster.Kubeconfig(), "--cache-dir="+n.path("cache"))...); err != nil {
			return err
		}
	}
	return nil
}

// execute runs a command, whose output is in the error.
func execute(ctx context.Context, program string, arguments ...string) error {
	output, err := exec.CommandContext(ctx, program, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(arguments, " "), err, bytes.TrimSpace(output))
	}
	return nil
}
