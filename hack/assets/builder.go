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
	"time"
)

// builder builds the programs of a module, each a package of its own right below the module's directory.
type builder struct {
	module string
	output string
}

// programs lists the module's programs by name.
func (b builder) programs() ([]string, error) {
	mains, err := filepath.Glob(filepath.Join(b.module, "*", "main.go"))
	if err != nil {
		return nil, err
	}
	if len(mains) == 0 {
		return nil, fmt.Errorf("%s has no programs", b.module)
	}
	programs := make([]string, len(mains))
	for i, path := range mains {
		programs[i] = filepath.Base(filepath.Dir(path))
	}
	return programs, nil
}

// provide builds those of the programs that are missing or were built from other sources.
func (b builder) provide(ctx context.Context, programs []string) error {
	unlock, err := b.lock()
	if err != nil {
		return err
	}
	defer unlock()

	checksum, err := b.checksum()
	if err != nil {
		return err
	}
	var stale []string
	for _, program := range programs {
		if !b.fresh(program, checksum) {
			stale = append(stale, program)
		}
	}
	if len(stale) == 0 {
		return nil
	}
	return b.build(ctx, stale, checksum)
}

// lock keeps two builds from each other. The kernel gives the lock back when this process ends.
func (b builder) lock() (unlock func(), err error) {
	if err := os.MkdirAll(b.output, 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(b.output, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
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

// checksum is over all that the programs are built from.
func (b builder) checksum() (string, error) {
	sources, err := filepath.Glob(filepath.Join(b.module, "*", "*.go"))
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, path := range append(sources, filepath.Join(b.module, "go.mod"), filepath.Join(b.module, "go.sum")) {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", filepath.Base(path), len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// stamp is the file that holds the checksum of what a program was built from.
func (b builder) stamp(program string) string { return filepath.Join(b.output, "."+program+".sum") }

func (b builder) fresh(program, checksum string) bool {
	stamped, err := os.ReadFile(b.stamp(program))
	if err != nil || string(stamped) != checksum {
		return false
	}
	_, err = os.Stat(filepath.Join(b.output, program))
	return err == nil
}

func (b builder) build(ctx context.Context, programs []string, checksum string) error {
	fmt.Printf("control plane: building %s into %s, once; with empty caches it takes about 6 minutes on 2 cores\n", list(programs), b.output)
	begun := time.Now()
	version, err := b.version(ctx)
	if err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(b.output, ".build-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	if fresh, err = filepath.Abs(fresh); err != nil {
		return err
	}
	args := []string{"-ldflags=-s -w -X k8s.io/component-base/version.gitVersion=" + version}
	packages := make([]string, len(programs))
	for i, program := range programs {
		packages[i] = "./" + program
	}
	if err := b.compile(ctx, begun, args, packages, fresh); err != nil {
		return err
	}
	for _, program := range programs {
		// A rename leaves a program that runs alone. The stamp comes last: it vouches for the program.
		if err := os.Rename(filepath.Join(fresh, program), filepath.Join(b.output, program)); err != nil {
			return err
		}
		if err := os.WriteFile(b.stamp(program), []byte(checksum), 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("control plane: Kubernetes %s built in %s\n", version, time.Since(begun).Round(time.Second))
	return nil
}

// compile counts what there is to do, then does it.
func (b builder) compile(ctx context.Context, begun time.Time, args, packages []string, output string) error {
	const staleOnly = `-f={{if and .Stale (ne .Name "main")}}{{.ImportPath}}{{end}}`
	reading := newProgress(begun, "reading")
	listed, err := b.run(ctx, reading, append(append([]string{"list", "-deps", staleOnly}, args...), packages...)...)
	if err != nil {
		return err
	}
	building := newProgress(begun, "linking", strings.Fields(listed)...)
	_, err = b.run(ctx, building, append(append([]string{"build", "-v", "-o", output + "/"}, args...), packages...)...)
	return err
}

// version is that of Kubernetes, which the programs are to report as their own.
func (b builder) version(ctx context.Context) (string, error) {
	version, err := b.run(ctx, newProgress(time.Now(), "reading"), "list", "-m", "-f={{.Version}}", "k8s.io/kubernetes")
	return strings.TrimSpace(version), err
}

// run runs the go command in the module and returns its standard output; progress is made from its standard error.
func (b builder) run(ctx context.Context, p *progress, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = b.module
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	var output strings.Builder
	command.Stdout = &output
	messages, err := command.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := command.Start(); err != nil {
		return "", err
	}
	p.follow(messages)
	if err := command.Wait(); err != nil {
		if ctx.Err() != nil {
			return "", errors.New("interrupted; what was compiled so far is cached")
		}
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return output.String(), nil
}

func list(names []string) string { return strings.Join(names, ", ") }
