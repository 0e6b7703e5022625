package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/forgeplane/forgeplane/test/controlplane"
)

// options returns the options of a control plane in a directory.
func options(directory string) controlplane.Options {
	return controlplane.Options{Directory: directory, Ephemeral: true, Prepare: install}
}

// readInputs looks at the programs and directories from which the pool makes a control plane. Go runs a test again if one of these has changed, but it
// knows only what the process of the test reads.
func readInputs() error {
	if _, err := controlplane.FindBinaries(); err != nil {
		return err
	}
	root, err := controlplane.Checkout()
	for _, name := range []string{"crd", "rbac", "admission"} {
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
		Paths: []string{filepath.Join(root, "config", "crd")}, ErrorIfPathMissing: true, PollInterval: 10 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	admin, err := client.New(administrator, client.Options{})
	if err != nil {
		return err
	}
	for _, name := range []string{
		"rbac/namespace", "rbac/service_account", "rbac/role", "rbac/role_binding", "rbac/tenant_roles", "rbac/activity_roles", "rbac/restore_role",
		"rbac/rest_roles", "admission/finalizers", "admission/pin", "admission/rolebindings", "admission/secrets", "admission/status",
	} {
		if err := createAll(ctx, admin, filepath.Join(root, "config", filepath.FromSlash(name)+".yaml")); err != nil {
			return err
		}
	}
	return nil
}

func createAll(ctx context.Context, c client.Client, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		var obj unstructured.Unstructured
		if err := decoder.Decode(&obj); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		if len(obj.Object) == 0 {
			continue
		}
		if err := c.Create(ctx, &obj); err != nil {
			return fmt.Errorf("creating what is in %s: %w", path, err)
		}
	}
}
