package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
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

func TestCalm_dropsOnlyTheErrorsOfAnOrdinaryStartAndStop(t *testing.T) {
	g := NewWithT(t)
	var lines []string
	noisy := funcr.New(func(name, line string) { lines = append(lines, name+" "+line) }, funcr.Options{})
	quiet := noisy.WithSink(calm{noisy.GetSink()}).WithName("leases").WithValues("a", "b")
	const stopped, created = "error received after stop sequence was engaged", "Error initially creating lease lock"
	quiet.Error(errors.New("leader election lost"), stopped)
	quiet.Error(apierrors.NewAlreadyExists(schema.GroupResource{}, "forgeplane-manager"), created)
	g.Expect(lines).To(BeEmpty())
	quiet.Error(errors.New("the disk is full"), stopped)
	quiet.Error(nil, stopped)
	quiet.Error(apierrors.NewForbidden(schema.GroupResource{}, "forgeplane-manager", errors.New("no right")), created)
	g.Expect(lines).To(HaveLen(3))
	g.Expect(lines).To(HaveEach(And(HavePrefix("leases "), ContainSubstring(`"a"="b"`))))
}

func TestIgnoreGoneClients_keepsOtherErrors(t *testing.T) {
	g := NewWithT(t)
	handlers := slices.Clone(utilruntime.ErrorHandlers)
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
	var reports []string
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(_ context.Context, _ error, message string, _ ...any) { reports = append(reports, message) }}
	ignoreGoneClients()
	gone, leave := context.WithCancel(t.Context())
	leave()
	slow, end := context.WithTimeout(t.Context(), 0)
	defer end()
	utilruntime.HandleErrorWithContext(gone, nil, "Timeout or abort while handling")
	utilruntime.HandleErrorWithContext(gone, nil, "Post-timeout activity", "path", "/apis", "result", nil)
	utilruntime.HandleError(errors.New("apiserver was unable to write a application/json response: http2: stream closed"))
	utilruntime.HandleError(fmt.Errorf("apiserver was unable to write a fallback application/json response: %w", http.ErrHandlerTimeout))
	g.Expect(reports).To(BeEmpty())
	utilruntime.HandleErrorWithContext(slow, nil, "Timeout or abort while handling")
	utilruntime.HandleErrorWithContext(gone, nil, "Post-timeout activity", "path", "/apis", "result", "a panic")
	utilruntime.HandleErrorWithContext(slow, nil, "Post-timeout activity", "path", "/apis", "result", nil)
	utilruntime.HandleErrorWithContext(gone, nil, "Post-timeout activity", "path", "/apis")
	utilruntime.HandleErrorWithContext(gone, errors.New("the disk is full"), "Failed to encode watch event")
	utilruntime.HandleError(errors.New("the disk is full"))
	g.Expect(reports).To(HaveLen(6))
}
