package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// controlPlane is the module of the programs. Each program is a package directly below the module's directory.
type controlPlane struct {
	module string
	output string
}

// programs lists the module's programs by name.
func (c controlPlane) programs() ([]string, error) {
	mains, err := filepath.Glob(filepath.Join(c.module, "*", "main.go"))
	if err != nil {
		return nil, err
	}
	if len(mains) == 0 {
		return nil, fmt.Errorf("%s has no programs", c.module)
	}
	programs := make([]string, len(mains))
	for i, path := range mains {
		programs[i] = filepath.Base(filepath.Dir(path))
	}
	return programs, nil
}

// provide builds the programs that KUBEBUILDER_ASSETS does not provide, and that are missing or were built from other sources.
func (c controlPlane) provide(ctx context.Context) error {
	programs, err := c.needed()
	if err != nil || len(programs) == 0 {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()

	checksum, err := c.checksum()
	if err != nil {
		return err
	}
	var stale []string
	for _, program := range programs {
		if !c.fresh(program, checksum) {
			stale = append(stale, program)
		}
	}
	if len(stale) == 0 {
		return nil
	}
	return c.build(ctx, stale, checksum)
}

// lock prevents two builds at the same time. The kernel releases the lock when this process ends.
func (c controlPlane) lock() (unlock func(), err error) {
	if err := os.MkdirAll(c.output, 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(c.output, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		fmt.Println("control plane: waiting for another build of it to end")
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("locking %s: %w", file.Name(), err)
	}
	return func() { _ = file.Close() }, nil
}

// checksum returns a checksum of all sources of the programs.
func (c controlPlane) checksum() (string, error) {
	sources, err := filepath.Glob(filepath.Join(c.module, "*", "*.go"))
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, path := range append(sources, filepath.Join(c.module, "go.mod"), filepath.Join(c.module, "go.sum")) {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", filepath.Base(path), len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// stamp returns the file with the checksum of the sources that a program was built from.
func (c controlPlane) stamp(program string) string {
	return filepath.Join(c.output, "."+program+".sum")
}

func (c controlPlane) fresh(program, checksum string) bool {
	stamped, err := os.ReadFile(c.stamp(program))
	if err != nil || string(stamped) != checksum {
		return false
	}
	_, err = os.Stat(filepath.Join(c.output, program))
	return err == nil
}

func (c controlPlane) build(ctx context.Context, programs []string, checksum string) error {
	fmt.Printf("control plane: building %s into %s, once\n", list(programs), c.output)
	version, err := c.version(ctx)
	if err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(c.output, ".build-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	packages := make([]string, len(programs))
	for i, program := range programs {
		packages[i] = "./" + program
	}
	err = build{
		name: "control plane", module: c.module, output: fresh, packages: packages,
		ldflags: kubernetesFlags(version),
	}.run(ctx)
	if err != nil {
		return err
	}
	for _, program := range programs {
		// A rename does not affect a program that is running. The stamp is written last, because it confirms that the program is complete.
		if err := os.Rename(filepath.Join(fresh, program), filepath.Join(c.output, program)); err != nil {
			return err
		}
		if err := os.WriteFile(c.stamp(program), []byte(checksum), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// kubernetesFlags are the flags of the linker for programs that report a version of Kubernetes.
func kubernetesFlags(version string) string {
	return "-s -w -X k8s.io/component-base/version.gitVersion=" + version
}

// version returns the version of Kubernetes that the programs must report as their own.
func (c controlPlane) version(ctx context.Context) (string, error) {
	command := exec.CommandContext(ctx, "go", "list", "-m", "-f={{.Version}}", "k8s.io/kubernetes")
	command.Dir = c.module
	command.Env = append(os.Environ(), "GOWORK=off")
	command.Stderr = os.Stderr
	version, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("reading the version of Kubernetes: %w", err)
	}
	return strings.TrimSpace(string(version)), nil
}

func list(names []string) string { return strings.Join(names, ", ") }
