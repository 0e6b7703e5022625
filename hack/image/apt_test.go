package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestDownload_saysThatAnArchitectureIsMissing(t *testing.T) {
	g := NewWithT(t)
	programs := t.TempDir()
	for name, script := range map[string]string{
		"apt-get":  "case \"$*\" in *update) ;; *) echo 'E: Unable to locate package git' >&2; exit 100 ;; esac",
		"dpkg-deb": "exit 1",
	} {
		g.Expect(os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700)).To(Succeed())
	}
	t.Setenv("PATH", programs)
	_, err := download(t.Context(), "riscv64", t.TempDir())
	g.Expect(err).To(MatchError(And(HavePrefix("apt has no packages of riscv64: add a source"), ContainSubstring("Unable to locate package git"))))
}

func TestCheckGit_refusesOldVersions(t *testing.T) {
	for version, accepted := range map[string]bool{
		"1:2.39.5-0+deb12u2": true, "1:2.39.1-0.1": true, "1:2.43.0-1ubuntu7.3": true, "1:2.100.0": true,
		"1:2.39.0-1": false, "1:2.34.1-1ubuntu1.15": false, "1:1.99.9": false, "2.39.0-1": false, "unknown": false,
	} {
		err := checkGit([]distPackage{{Name: "dash", Version: "0.5"}, {Name: "git", Version: version}})
		if accepted {
			NewWithT(t).Expect(err).NotTo(HaveOccurred(), version)
		} else {
			NewWithT(t).Expect(err).To(MatchError(HavePrefix("the git of apt is "+version+", but Forgeplane needs 2.39.1 or later")), version)
		}
	}
}
