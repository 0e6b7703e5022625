package pool

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/manifest"
)

// options returns the options of a control plane in a directory.
func options(directory string) controlplane.Options {
	return controlplane.Options{Directory: directory, Ephemeral: true, Prepare: install}
}

// directories are the directories of config that have the objects of a new control plane, the definitions of the kinds first.
var directories = []string{"crd", "rbac", "admission"}

// readInputs looks at the programs and directories from which the pool makes a control plane. Go runs a test again if one of these has changed, but it
// knows only what the process of the test reads.
func readInputs() error {
	if _, err := controlplane.FindBinaries(); err != nil {
		return err
	}
	root, err := controlplane.Checkout()
	for _, name := range directories {
		if err == nil {
			_, err = os.ReadDir(filepath.Join(root, "config", name))
		}
	}
	return err
}

// install installs the kinds and the permissions of the controllers in a new control plane.
func install(ctx context.Context, administrator *rest.Config) error {
	root, err := controlplane.Checkout()
	if err != nil {
		return err
	}
	_, err = envtest.InstallCRDs(administrator, envtest.CRDInstallOptions{
		Paths: []string{filepath.Join(root, "config", directories[0])}, ErrorIfPathMissing: true, PollInterval: 10 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	admin, err := client.New(administrator, client.Options{})
	if err != nil {
		return err
	}
	for _, name := range directories[1:] {
		if err := createAll(ctx, admin, filepath.Join(root, "config", name)); err != nil {
			return err
		}
	}
	return nil
}

// createAll creates the objects of a directory in the order of its kustomization.
func createAll(ctx context.Context, c client.Client, directory string) error {
	text, err := os.ReadFile(filepath.Join(directory, "kustomization.yaml"))
	if err != nil {
		return err
	}
	var kustomization struct {
		Resources []string `json:"resources"`
	}
	if err := yaml.Unmarshal(text, &kustomization); err != nil {
		return fmt.Errorf("reading the kustomization of %s: %w", directory, err)
	}
	for _, name := range kustomization.Resources {
		objects, err := readFile(filepath.Join(directory, name))
		if err != nil {
			return err
		}
		for _, object := range objects {
			if err := c.Create(ctx, object); err != nil {
				return fmt.Errorf("creating the objects of %s: %w", filepath.Join(directory, name), err)
			}
		}
	}
	return nil
}

func readFile(path string) ([]*unstructured.Unstructured, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	objects, err := manifest.Read(file)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return objects, nil
}
