package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// needed lists the programs that must be built here.
func (c controlPlane) needed() ([]string, error) {
	programs, err := c.programs()
	if err != nil {
		return nil, err
	}
	given := os.Getenv("KUBEBUILDER_ASSETS")
	if given == "" || same(given, c.output) {
		return programs, nil
	}
	missing, err := missingIn(given, programs)
	if err != nil {
		return nil, err
	}
	fmt.Printf("control plane: KUBEBUILDER_ASSETS is set, so %s is used", given)
	if len(missing) > 0 {
		fmt.Printf(", except %s, which it lacks", list(missing))
	}
	fmt.Println()
	return missing, nil
}

// missingIn returns which of the programs are missing in a directory. A directory without etcd or kube-apiserver is an error.
func missingIn(directory string, programs []string) ([]string, error) {
	var missing []string
	for _, program := range programs {
		info, err := os.Stat(filepath.Join(directory, program))
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			continue
		}
		if program == "etcd" || program == "kube-apiserver" {
			return nil, fmt.Errorf("KUBEBUILDER_ASSETS is set to %s, which has no executable %s;"+
				" correct it, or unset it to have the control plane built", directory, program)
		}
		missing = append(missing, program)
	}
	return missing, nil
}

// same reports whether two paths lead to the same directory.
func same(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
