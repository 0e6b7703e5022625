// Command kube-controller-manager is the published Kubernetes controller manager; Forgeplane
// runs its garbage collector and namespace controllers only.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() { os.Exit(cli.Run(app.NewControllerManagerCommand())) }
