package main

import (
	"errors"
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
	g.Expect(run(&out, events, errors.New)).To(Succeed())
	g.Expect(out.String()).To(Equal(`FLAKY p.TestA/one: failed once, and passed when it ran again
    a_test.go:1: the reason
FLAKY p.TestSuite: failed once, and passed when it ran again
    [FAILED] a spec
`))
}

func TestRun_testsPackagesThatEndedEarlyAgain(t *testing.T) {
	for _, events := range []string{
		`{"Action":"fail","Package":"p"} {"Action":"pass","Package":"p"}`,
		`{"Action":"run","Package":"p","Test":"TestA"} {"Action":"fail","Package":"p"} {"Action":"pass","Package":"p"}`,
		`{"Action":"run","Package":"p","Test":"TestA"} {"Action":"fail","Package":"p","Test":"TestB"} {"Action":"fail","Package":"p"}` +
			`{"Action":"pass","Package":"p","Test":"TestA"} {"Action":"pass","Package":"p","Test":"TestB"} {"Action":"pass","Package":"p"}`,
	} {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "events")
		g.Expect(os.WriteFile(path, []byte(events), 0o600)).To(Succeed())
		var out strings.Builder
		g.Expect(run(&out, path, func(string) error { return nil })).To(Succeed())
		g.Expect(out.String()).To(ContainSubstring("FLAKY p: its tests ended early"))
		out.Reset()
		g.Expect(run(&out, path, func(string) error { return errors.New("exit status 1") })).To(MatchError(ContainSubstring("the tests of p ended early")))
		g.Expect(out.String()).NotTo(ContainSubstring("FLAKY p: "))
	}
}

func TestRun_failsWithoutJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events")
	NewWithT(t).Expect(os.WriteFile(path, []byte("no JSON"), 0o600)).To(Succeed())
	NewWithT(t).Expect(run(io.Discard, path, nil)).To(MatchError(ContainSubstring(path)))
}
