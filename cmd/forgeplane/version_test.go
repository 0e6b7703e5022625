package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestVersionOf_namesTheCommitIfItIsKnown(t *testing.T) {
	g := NewWithT(t)
	g.Expect(versionOf("0.1.0\n", "1f2e3d4c5b6a")).To(Equal("0.1.0+1f2e3d4c5b6a"))
	g.Expect(versionOf("0.1.0\n", "")).To(Equal("0.1.0"))
	g.Expect(command().Version).To(MatchRegexp(`^\d+\.\d+\.\d+`), "--version")
}
