package controlplane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// assetsVariable is the variable by which Kubernetes test tools name a directory of control plane programs.
const assetsVariable = "KUBEBUILDER_ASSETS"

// Binaries are the paths of the programs of a control plane.
type Binaries struct {
	Etcd        string
	APIServer   string
	Controllers string
	Kubectl     string
}

// FindBinaries finds the programs that "make controlplane" provides. It looks for each of them in the directory that KUBEBUILDER_ASSETS
// names, and then in bin/k8s of the checkout that contains the working directory.
func FindBinaries() (Binaries, error) {
	var directories []string
	if assets := os.Getenv(assetsVariable); assets != "" {
		// The programs run in another working directory.
		absolute, err := filepath.Abs(assets)
		if err != nil {
			return Binaries{}, err
		}
		directories = append(directories, absolute)
	}
	if root, err := Checkout(); err == nil {
		directories = append(directories, filepath.Join(root, "bin", "k8s"))
	}
	var b Binaries
	var missing []string
	for _, program := range []struct {
		name string
		path *string
	}{
		{"etcd", &b.Etcd}, {"kube-apiserver", &b.APIServer},
		{"controllers", &b.Controllers}, {"kubectl", &b.Kubectl},
	} {
		if *program.path = find(program.name, directories); *program.path == "" {
			missing = append(missing, program.name)
		}
	}
	if len(missing) > 0 {
		return Binaries{}, fmt.Errorf("no %s in %s: run \"make controlplane\"",
			strings.Join(missing, ", "), strings.Join(directories, " or "))
	}
	return b, nil
}

func find(name string, directories []string) string {
	for _, directory := range directories {
		path := filepath.Join(directory, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// Checkout returns the checkout of Forgeplane that contains the working directory.
func Checkout() (string, error) {
	directory, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		_, err := os.Stat(filepath.Join(directory, "hack", "controlplane", "go.mod"))
		if err == nil {
			return directory, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		parent := filepath.Dir(directory)
		if parent == directory {
			return "", errors.New("the working directory is in no checkout")
		}
		directory = parent
	}
}
