// Command cluster is the node of "make node": a cluster of one node, with a network, name server and volumes of its own, on which the Helm chart can
// be tried. It runs until it is interrupted, and leaves nothing behind. It changes neither the network nor the mounts of the machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() { os.Exit(command()) }

// command is main with an exit status.
func command() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	check := flag.Bool("check", false, "only say whether this machine can run a node")
	images := flag.String("images", "", "OCI layouts of images of Forgeplane, with spaces between them")
	inside := flag.String("inside", "", "the directory of the node, in whose namespaces this process is")
	process := flag.Int("process", 0, "the process that holds these namespaces")
	flag.Parse()

	if *inside != "" {
		n := &node{space: *inside, programs: filepath.Dir(os.Args[0]), process: *process, images: strings.Fields(*images)}
		return report(n.run(ctx))
	}
	if err := requirements(ctx); err != nil {
		fmt.Println("SKIPPED: this machine cannot run a node:", err)
		return 0
	}
	if *check {
		return 0
	}
	return report(run(ctx, *images))
}

// report prints an error and returns the exit status.
func report(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "make node:", err)
		return 1
	}
	return 0
}

// separated starts a program as the first process of new namespaces, with which all their processes end. The program gets the id of the process that
// holds the namespaces as -process.
const separated = `exec unshare --mount --net --pid --fork --kill-child --mount-proc "$0" -process=$$ "$@"`

// run runs a node in namespaces of its own until the context ends.
func run(ctx context.Context, images string) (err error) {
	space, err := os.MkdirTemp("", "node-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeControlGroups(space), os.RemoveAll(space)) }()
	program, err := os.Executable()
	if err != nil {
		return err
	}
	inside := exec.Command("sh", "-c", separated, program, "-inside="+space, "-images="+images) //nolint:noctx // it ends when its input does
	inside.Stdout, inside.Stderr = os.Stdout, os.Stderr
	// Ctrl-C must reach only this process, and the end of this process must end the node.
	inside.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := inside.StdinPipe()
	if err != nil {
		return err
	}
	if err := inside.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = input.Close() })
	defer stop()
	if err := inside.Wait(); err != nil {
		return fmt.Errorf("the node ended: %w", err)
	}
	return nil
}

// removeControlGroups removes the control groups of the containers of a node that has ended. Containerd has a directory for each container, by its id.
func removeControlGroups(space string) error {
	containers, err := filepath.Glob(filepath.Join(space, "state", "io.containerd.runtime.v2.task", "k8s.io", "*"))
	if err != nil {
		return err
	}
	for _, above := range []string{"/sys/fs/cgroup/*/k8s.io", "/sys/fs/cgroup/k8s.io"} {
		parents, err := filepath.Glob(above)
		if err != nil {
			return err
		}
		for _, parent := range parents {
			for _, container := range containers {
				_ = os.Remove(filepath.Join(parent, filepath.Base(container))) // a container need not have a group of each kind
			}
			_ = os.Remove(parent) // unless another containerd uses it
		}
	}
	return nil
}
