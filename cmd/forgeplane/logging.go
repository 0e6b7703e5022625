package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// startLogging directs all logs of a process that serves to its standard error.
func startLogging(o *options) {
	level := zapcore.WarnLevel
	if o.verbose {
		level = zapcore.InfoLevel
	}
	// Most errors have external causes, for which a stack trace does not help.
	log := zap.New(zap.UseDevMode(o.development), zap.Level(level), zap.StacktraceLevel(zapcore.DPanicLevel))
	log = log.WithSink(calm{log.GetSink()})
	ctrl.SetLogger(log)
	redirectLogs(log)
	ignoreGoneClients()
}

// redirectLogs sends to log what libraries log without controller-runtime.
func redirectLogs(log logr.Logger) {
	// client-go and the generic API server log through klog.
	klog.SetLogger(log)
	// The servers of health checks and metrics log mistakes with the standard library.
	slog.SetLogLoggerLevel(slog.LevelError)
	slog.SetDefault(slog.New(logr.ToSlogHandler(log)))
}

// calm is a sink without the errors of leader election that belong to every start and stop.
type calm struct{ logr.LogSink }

// Error implements logr.LogSink.
func (c calm) Error(err error, message string, values ...any) {
	switch {
	case message == "error received after stop sequence was engaged" && err != nil && err.Error() == "leader election lost":
		// The manager gives up the lease when it stops. If it loses the lease before, its Start returns the error.
	case message == "Error initially creating lease lock" && apierrors.IsAlreadyExists(err):
		// Another manager has created it at the same moment.
	default:
		c.LogSink.Error(err, message, values...)
	}
}

// WithName implements logr.LogSink.
func (c calm) WithName(name string) logr.LogSink { return calm{c.LogSink.WithName(name)} }

// WithValues implements logr.LogSink.
func (c calm) WithValues(values ...any) logr.LogSink { return calm{c.LogSink.WithValues(values...)} }

// ignoreGoneClients keeps the generic API server from logging that a client has ended its request. kube-apiserver ends four of the five requests
// with which it finds out whether an APIService is available.
func ignoreGoneClients() {
	report := utilruntime.ErrorHandlers[0]
	utilruntime.ErrorHandlers[0] = func(ctx context.Context, err error, message string, values ...any) {
		if errors.Is(ctx.Err(), context.Canceled) && isAborted(message, values) || err != nil && isGone(err.Error()) {
			return
		}
		report(ctx, err, message, values...)
	}
}

// isAborted reports whether a report says only that a request was aborted, or that its handler has ended afterwards. If the handler has panicked, the
// report has the panic as its result.
func isAborted(message string, values []any) bool {
	switch message {
	case "Timeout or abort while handling":
		return true
	case "Post-timeout activity":
		at := slices.Index(values, any("result"))
		return at >= 0 && at+1 < len(values) && values[at+1] == nil
	default:
		return false
	}
}

// isGone reports whether an error says that the client has ended its request. The errors are wrapped as text.
func isGone(text string) bool {
	return strings.Contains(text, "http2: stream closed") || strings.Contains(text, http.ErrHandlerTimeout.Error())
}
