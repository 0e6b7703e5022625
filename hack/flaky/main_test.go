package main

import (
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
	g.Expect(os.WriteFile(events, []byte("no JSON"), 0o600)).To(Succeed())
	g.Expect(run(&out, events)).To(MatchError(ContainSubstring(events)))
}
