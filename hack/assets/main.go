// Command assets provides the programs of the control plane that "make run" and the tests start: it builds them from
// their published Go modules, and does nothing when they are there and built from the same sources.
//
// A directory named by KUBEBUILDER_ASSETS is used instead. It is to hold etcd and kube-apiserver, as the archives made
// for Kubernetes test tools do; what else is missing in it is built.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() { os.Exit(command()) }

// command is main with an exit status.
func command() int {
	var b builder
	flag.StringVar(&b.module, "module", "hack/controlplane", "`directory` of the Go module that holds the programs")
	flag.StringVar(&b.output, "output", "bin/k8s", "`directory` to build into")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := provide(ctx, b); err != nil {
		fmt.Fprintln(os.Stderr, "control plane:", err)
		return 1
	}
	return 0
}

func provide(ctx context.Context, b builder) error {
	programs, err := b.programs()
	if err != nil {
		return err
	}
	if given := os.Getenv("KUBEBUILDER_ASSETS"); given != "" && !same(given, b.output) {
		missing, err := missingIn(given, programs)
		if err != nil {
			return err
		}
		fmt.Printf("control plane: KUBEBUILDER_ASSETS is set, so %s is used", given)
		if len(missing) == 0 {
			fmt.Println()
			return nil
		}
		fmt.Printf(", but for %s, which it lacks\n", list(missing))
		programs = missing
	}
	return b.provide(ctx, programs)
}

// missingIn returns which of the programs a directory lacks. Without etcd or kube-apiserver it is taken for a mistake.
func missingIn(directory string, programs []string) ([]string, error) {
	var missing []string
	for _, program := range programs {
		info, err := os.Stat(filepath.Join(directory, program))
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			continue
		}
		if program == "etcd" || program == "kube-apiserver" {
			return nil, fmt.Errorf("KUBEBUILDER_ASSETS is set to %s, where there is no executable %s;"+
				" correct it, or unset it to have the control plane built", directory, program)
		}
		missing = append(missing, program)
	}
	return missing, nil
}

// same says whether two paths lead to the same directory.
func same(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
