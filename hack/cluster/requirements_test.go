package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestLimitsMemory_needsTheController(t *testing.T) {
	for _, row := range []struct {
		file, content string
		want          bool
	}{
		{"memory/cgroup.procs", "1\n", true},
		{"cgroup.controllers", "cpuset cpu io memory pids\n", true},
		{"cgroup.controllers", "cpuset cpu io pids\n", false},
		{"cgroup.procs", "1\n", false},
	} {
		g, groups := NewWithT(t), t.TempDir()
		file := filepath.Join(groups, row.file)
		g.Expect(os.MkdirAll(filepath.Dir(file), 0o700)).To(Succeed())
		g.Expect(os.WriteFile(file, []byte(row.content), 0o600)).To(Succeed())
		g.Expect(limitsMemory(groups)).To(Equal(row.want), row.content)
	}
}
