package main

import (
	"errors"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/component-base/metrics/legacyregistry"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/forgeplane/forgeplane/internal/audit"
)

// auditLog configures the log of writes.
type auditLog struct {
	path                string
	maxSize, maxBackups int
}

func (a *auditLog) bind(f *pflag.FlagSet) {
	f.StringVar(&a.path, "audit-log", a.path, "file of the audit log, with a line of JSON for each write at every door; - for the standard output, none for no log")
	f.IntVar(&a.maxSize, "audit-log-max-size", a.maxSize, "size in MiB at which the file of --audit-log is rotated")
	f.IntVar(&a.maxBackups, "audit-log-max-backups", a.maxBackups, "number of rotated files to keep; 0 for all")
}

func (a *auditLog) validate() error {
	if a.path == "" {
		return errors.New("--audit-log must name a file, or be - for the standard output, or none")
	}
	if a.maxSize < 1 || a.maxBackups < 0 {
		return errors.New("--audit-log-max-size must be 1 or more, and --audit-log-max-backups 0 or more")
	}
	return nil
}

func (a *auditLog) open(log logr.Logger) (*audit.Log, error) {
	return audit.Open(audit.Options{
		Path: a.path, MaxSize: a.maxSize, MaxBackups: a.maxBackups,
		// The door through kube-apiserver serves the metrics of the generic API server.
		Metrics: []prometheus.Registerer{metrics.Registry, legacyregistry.Registerer()}, Log: log.WithName("audit"),
	})
}
