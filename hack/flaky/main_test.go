package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestRun_printsTestsThatFailedAndThenPassed(t *testing.T) {
	g := NewWithT(t)
	events := filepath.Join(t.TempDir(), "events")
	g.Expect(os.WriteFile(events, []byte(`{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA/one","Output":"a_test.go:1: the reason\n"}
{"Action":"fail","Package":"p","Test":"TestA/one"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestSuite","Output":"dots\n"}
{"Action":"output","Package":"p","Test":"TestSuite","Output":"[FAILED] a spec\n"}
{"Action":"fail","Package":"p","Test":"TestSuite"}
{"Action":"fail","Package":"p","Test":"TestBroken"}
{"Action":"pass","Package":"p","Test":"TestSound"}
{"Action":"skip","Package":"p","Test":"TestSkipped"}
{"Action":"fail","Package":"p"}
{"Action":"pass","Package":"p","Test":"TestA/one"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestSuite","Output":"of the second time\n"}
{"Action":"pass","Package":"p","Test":"TestSuite"}
{"Action":"fail","Package":"p","Test":"TestBroken"}
`), 0o600)).To(Succeed())
	var out strings.Builder
	g.Expect(run(&out, events)).To(Succeed())
	g.Expect(out.String()).To(Equal(`FLAKY p.TestA/one: failed once, and passed when it ran again
    a_test.go:1: the reason
FLAKY p.TestSuite: failed once, and passed when it ran again
    [FAILED] a spec
`))
}

func TestRun_failsIfTestsDidNotRun(t *testing.T) {
	for events, want := range map[string]string{
		"no JSON": "reading the events",
		`{"Action":"fail","Package":"p"} {"Action":"pass","Package":"p"}`:                                "p failed, but none of its tests did",
		`{"Action":"run","Package":"p","Test":"TestA"} {"Action":"output","Package":"p","Test":"TestA"}`: "p.TestA did not end",
	} {
		path := filepath.Join(t.TempDir(), "events")
		NewWithT(t).Expect(os.WriteFile(path, []byte(events), 0o600)).To(Succeed())
		NewWithT(t).Expect(run(io.Discard, path)).To(MatchError(ContainSubstring(want)))
	}
}
