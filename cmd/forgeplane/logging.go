package main

import (
	"log/slog"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
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
	ctrl.SetLogger(log)
	redirectLogs(log)
}

// redirectLogs sends to log what libraries log without controller-runtime.
func redirectLogs(log logr.Logger) {
	// client-go and the generic API server log through klog.
	klog.SetLogger(log)
	// The servers of health checks and metrics log mistakes with the standard library.
	slog.SetLogLoggerLevel(slog.LevelError)
	slog.SetDefault(slog.New(logr.ToSlogHandler(log)))
}
