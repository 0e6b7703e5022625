package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
)

func TestInherit_addsToWhatIsInherited(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	e := gittest.EngineWith(t, `case "$1" in rev-parse) cat <&3 >"`+dir+`/seen"; cat <&4 >>"`+dir+`/seen"; cat <&5 >>"`+dir+`/seen" ;; esac`)
	var files []*os.File
	for n := range 3 {
		path := filepath.Join(dir, fmt.Sprint(n))
		g.Expect(os.WriteFile(path, fmt.Append(nil, n), 0o600)).To(Succeed())
		f, err := os.Open(path)
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { f.Close() })
		files = append(files, f)
	}
	outer := process.Inherit(t.Context(), files[0])
	inner := process.Inherit(outer, files[1])
	c := process.In(dir, "rev-parse", "--version")
	c.Held = files[2:]
	_ = e.Processes().Run(inner, c)
	g.Expect(os.ReadFile(dir + "/seen")).To(BeEquivalentTo("012"))
}
