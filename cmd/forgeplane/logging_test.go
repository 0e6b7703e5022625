package main

import (
	"log"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestRedirectLogs_includesTheStandardLibrary(t *testing.T) {
	g := NewWithT(t)
	writer, flags, previous := log.Writer(), log.Flags(), slog.Default()
	t.Cleanup(func() {
		klog.ClearLogger()
		slog.SetDefault(previous)
		log.SetOutput(writer)
		log.SetFlags(flags)
	})
	var lines []string
	redirectLogs(funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{}))
	log.Print("of log")
	slog.Error("of slog")
	klog.Error("of klog")
	g.Expect(lines).To(HaveExactElements(ContainSubstring(`"of log","error":null`), ContainSubstring(`"of slog","error":null`), ContainSubstring("of klog")))
}

func TestHelpers_setTheLoggerOfControllerRuntime(t *testing.T) {
	g := NewWithT(t)
	helper := command()
	helper.SetArgs([]string{"backup", "--activity-database=" + filepath.Join(t.TempDir(), "missing.db"), "-"})
	g.Expect(helper.Execute()).To(MatchError(ContainSubstring("missing.db")))
	g.Expect(ctrl.Log.Enabled()).To(BeTrue(), "it shows the warnings of the API server")
}
