package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
)

func write(t *testing.T, mode os.FileMode, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	g := NewWithT(t)
	g.Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(file, []byte(file), mode)).To(Succeed())
}

// module is a build of two programs.
func module(t *testing.T) controlPlane {
	t.Helper()
	b := controlPlane{module: t.TempDir(), output: t.TempDir()}
	write(t, 0o600, b.module, "go.mod")
	write(t, 0o600, b.module, "go.sum")
	write(t, 0o600, b.module, "etcd", "main.go")
	write(t, 0o600, b.module, "kubectl", "main.go")
	return b
}

func TestPrograms_areThePackagesOfTheModule(t *testing.T) {
	NewWithT(t).Expect(module(t).programs()).To(Equal([]string{"etcd", "kubectl"}))
}

func TestFresh_changesWithTheProgramAndItsSources(t *testing.T) {
	g := NewWithT(t)
	b := module(t)
	checksum, err := b.checksum()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(b.fresh("etcd", checksum)).To(BeFalse(), "never built")
	write(t, 0o700, b.output, "etcd")
	g.Expect(b.fresh("etcd", checksum)).To(BeFalse(), "built from nobody knows what")
	g.Expect(os.WriteFile(b.stamp("etcd"), []byte(checksum), 0o600)).To(Succeed())
	g.Expect(b.fresh("etcd", checksum)).To(BeTrue())
	g.Expect(b.fresh("kubectl", checksum)).To(BeFalse(), "another program")

	for _, source := range []string{"go.mod", "go.sum", "etcd/main.go"} {
		before, err := b.checksum()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(filepath.Join(b.module, source), []byte("changed"), 0o600)).To(Succeed())
		g.Expect(b.checksum()).NotTo(Equal(before), source)
	}
	g.Expect(os.Remove(filepath.Join(b.output, "etcd"))).To(Succeed())
	g.Expect(b.fresh("etcd", checksum)).To(BeFalse(), "removed")
}

func TestMissingIn_requiresEtcdAndAPIServer(t *testing.T) {
	g := NewWithT(t)
	all := []string{"etcd", "kube-apiserver", "controllers", "kubectl"}
	given := t.TempDir()
	_, err := missingIn(given, all)
	g.Expect(err).To(MatchError(And(ContainSubstring(given), ContainSubstring("etcd"))))
	write(t, 0o700, given, "etcd")
	write(t, 0o600, given, "kube-apiserver")
	_, err = missingIn(given, all)
	g.Expect(err).To(MatchError(ContainSubstring("no executable kube-apiserver")))
	g.Expect(os.Chmod(filepath.Join(given, "kube-apiserver"), 0o700)).To(Succeed())
	g.Expect(missingIn(given, all)).To(Equal([]string{"controllers", "kubectl"}))
}

func TestProgress_countsCompiledPackages(t *testing.T) {
	g := NewWithT(t)
	p := newProgress("a build")
	g.Expect(p.count("go: downloading example v1.0.0")).To(BeTrue())
	g.Expect(p.String()).To(Equal("reading, 1 modules downloaded"))
	g.Expect(p.count("example/a")).To(BeTrue())
	g.Expect(p.String()).To(Equal("1 packages compiled"))
	g.Expect(p.count("example/a.go:1:1: syntax error")).To(BeFalse(), "to be shown")

	p.expect([]string{"example/b", "example/c"})
	g.Expect(p.String()).To(Equal("1 of 3 packages compiled"), "a was compiled while the others were counted")
	g.Expect(p.count("example/b")).To(BeTrue())
	g.Expect(p.count("example/main")).To(BeTrue())
	g.Expect(p.String()).To(Equal("2 of 3 packages compiled"), "programs do not count")
	g.Expect(p.count("example/c")).To(BeTrue())
	g.Expect(p.String()).To(Equal("linking"))
}
func TestProgress_isShownDuringALongBuild(t *testing.T) {
	g := NewWithT(t)
	p := newProgress("a build")
	told := gbytes.NewBuffer()
	p.output, p.interval = told, time.Millisecond
	messages, goCommand := io.Pipe()
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		p.follow(t.Context(), messages, func(context.Context) []string { return []string{"example/b"} })
	}()
	g.Eventually(told).Should(gbytes.Say("a build: reading, 0 modules downloaded, 0s\n"))
	_, err := io.WriteString(goCommand, "example/a\n")
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(told).Should(gbytes.Say("a build: 1 of 2 packages compiled"))
	_, err = io.WriteString(goCommand, "example/b\n")
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(told).Should(gbytes.Say("a build: linking"))
	g.Expect(goCommand.Close()).To(Succeed())
	g.Eventually(followed).Should(BeClosed())
}

func TestBuild_makesProgramsOrExplainsTheFailure(t *testing.T) {
	g := NewWithT(t)
	module, output := t.TempDir(), t.TempDir()
	source := func(file, text string) {
		g.Expect(os.WriteFile(filepath.Join(module, file), []byte(text), 0o600)).To(Succeed())
	}
	source("go.mod", "module example.com/hello\n\ngo 1.24\n")
	source("main.go", "package main\n\nvar greeting string\n\nfunc main() { println(greeting) }\n")
	b := build{name: "a build", module: module, output: output, packages: []string{"."}, ldflags: "-X main.greeting=Hello"}
	g.Expect(b.run(t.Context())).To(Succeed())
	g.Expect(exec.CommandContext(t.Context(), filepath.Join(output, "hello")).CombinedOutput()).To(BeEquivalentTo("Hello\n"))
	source("main.go", "package main\n\nfunc main() { nothing() }\n")
	g.Expect(b.run(t.Context())).To(MatchError(ContainSubstring("go build: exit status 1")))
}
