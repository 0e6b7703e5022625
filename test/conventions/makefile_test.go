package conventions_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestMakefile_keepsFlagsOfTheCaller(t *testing.T) {
	g := NewWithT(t)
	for given, want := range map[string]string{
		"":                          "-gcflags=all=-dwarf=false -buildvcs=false -trimpath",
		"-trimpath -v":              "-v -gcflags=all=-dwarf=false -buildvcs=false -trimpath",
		"-gcflags=all=-N":           "-gcflags=all=-N -buildvcs=false -trimpath",
		"'-gcflags=all=-N -l' -v":   "'-gcflags=all=-N -l' -v -buildvcs=false -trimpath",
		"-buildvcs=true --gcflags=": "--gcflags= -buildvcs=false -trimpath",
	} {
		g.Expect(madeFlags(t, given)).To(Equal(want), given)
		g.Expect(madeFlags(t, want)).To(Equal(want), "make within make")
	}
}

// madeFlags returns the GOFLAGS of the commands in the Makefile if the caller has the given ones.
func madeFlags(t *testing.T, given string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "make", "--no-print-directory", "--eval=flags: ; @echo \"$$GOFLAGS\"", "flags")
	command.Dir = "../.."
	command.Env = append(os.Environ(), "GOFLAGS="+given, "MAKEFLAGS=")
	output, err := command.Output()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return strings.TrimSuffix(string(output), "\n")
}

func TestMakefile_pushesTheImageOnlyIfAsked(t *testing.T) {
	for given, pushed := range map[string]bool{"PUSH=": false, "PUSH=0": false, "PUSH=1": true} {
		command := exec.CommandContext(t.Context(), "make", "--dry-run", "image", given)
		command.Dir = "../.."
		command.Env = append(os.Environ(), "MAKEFLAGS=")
		output, err := command.Output()
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(strings.Contains(string(output), " -push")).To(Equal(pushed), given)
	}
}
