package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func write(t *testing.T, mode os.FileMode, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	g := NewWithT(t)
	g.Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(file, []byte(file), mode)).To(Succeed())
}

// module is one of two programs.
func module(t *testing.T) builder {
	t.Helper()
	b := builder{module: t.TempDir(), output: t.TempDir()}
	write(t, 0o600, b.module, "go.mod")
	write(t, 0o600, b.module, "go.sum")
	write(t, 0o600, b.module, "etcd", "main.go")
	write(t, 0o600, b.module, "kubectl", "main.go")
	return b
}

func TestProgramsAreThePackagesOfTheModule(t *testing.T) {
	NewWithT(t).Expect(module(t).programs()).To(Equal([]string{"etcd", "kubectl"}))
}

func TestAProgramIsFreshUntilItOrItsSourcesChange(t *testing.T) {
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

func TestAGivenDirectoryIsToHoldEtcdAndAPIServer(t *testing.T) {
	g := NewWithT(t)
	all := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kubectl"}
	given := t.TempDir()
	_, err := missingIn(given, all)
	g.Expect(err).To(MatchError(And(ContainSubstring(given), ContainSubstring("etcd"))))
	write(t, 0o700, given, "etcd")
	write(t, 0o600, given, "kube-apiserver")
	_, err = missingIn(given, all)
	g.Expect(err).To(MatchError(ContainSubstring("no executable kube-apiserver")))
	g.Expect(os.Chmod(filepath.Join(given, "kube-apiserver"), 0o700)).To(Succeed())
	g.Expect(missingIn(given, all)).To(Equal([]string{"kube-controller-manager", "kubectl"}))
}

func TestProgressCountsWhatTheGoCommandReports(t *testing.T) {
	g := NewWithT(t)
	p := newProgress(time.Now(), "linking", "example/a", "example/b")
	g.Expect(p.String()).To(Equal("0 of 2 packages compiled"))
	p.follow(strings.NewReader("go: downloading example v1.0.0\nexample/a\nexample/main\n"))
	g.Expect(p.String()).To(Equal("1 of 2 packages compiled"))
	p.follow(strings.NewReader("example/b\n"))
	g.Expect(p.String()).To(Equal("linking, 1 modules downloaded"))
	g.Expect(p.count("example/a.go:1:1: syntax error")).To(BeFalse(), "to be shown")
}
