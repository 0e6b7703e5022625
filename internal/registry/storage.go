package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/distribution/distribution/v3/registry/storage/driver/factory"
	"github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/s3-aws" // the driver s3
	"github.com/go-logr/logr"
	"github.com/sirupsen/logrus" // the library logs with it
	"go.yaml.in/yaml/v3"
)

const (
	// local is the name of the driver of storages in a directory.
	local = "filesystem"
	// threads is the maximum number of open files in the directory of images.
	threads = 100
)

// OpenDirectory returns the storage in a directory, which is created when the first image is pushed.
func OpenDirectory(path string) (driver.StorageDriver, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("opening the storage of the registry: %q must be an absolute path", path)
	}
	return filesystem.New(filesystem.DriverParameters{RootDirectory: path, MaxThreads: threads}), nil
}

// OpenConfigured returns the storage that a configuration describes, which has the form of the section "storage" of the configuration of the
// distribution registry: the name of a driver, and its parameters. The drivers are filesystem and s3; the build tags gcs and azure add drivers
// of those names.
func OpenConfigured(ctx context.Context, configuration []byte) (driver.StorageDriver, error) {
	var sections map[string]map[string]any
	if err := yaml.Unmarshal(configuration, &sections); err != nil {
		return nil, errors.New("reading the configuration of the registry's storage: it must be YAML with the name of a driver and its parameters")
	}
	if len(sections) != 1 {
		return nil, fmt.Errorf("reading the configuration of the registry's storage: it names %d drivers, but it must name one", len(sections))
	}
	for name, parameters := range sections {
		opened, err := factory.Create(ctx, name, parameters)
		if err != nil {
			return nil, fmt.Errorf("opening the storage of the registry with the driver %s: %w", name, err)
		}
		return opened, nil
	}
	return nil, nil
}

// logOnce connects the log of the library, which is global, to the first logger that asks for it.
var logOnce sync.Once //nolint:gochecknoglobals // the library has one log for the process

// ConnectLog sends the errors that the library logs to a logger.
func ConnectLog(log logr.Logger) {
	logOnce.Do(func() {
		logrus.SetOutput(io.Discard)
		logrus.SetLevel(logrus.ErrorLevel)
		logrus.AddHook(forward{log})
	})
}

// forward is a hook of logrus.
type forward struct{ log logr.Logger }

// Levels implements logrus.Hook.
func (forward) Levels() []logrus.Level { return []logrus.Level{logrus.ErrorLevel} }

// Fire implements logrus.Hook.
func (f forward) Fire(e *logrus.Entry) error {
	// Answers with an error are logged too. Most of them only say that something does not exist.
	if _, answered := e.Data["err.code"]; !answered {
		f.log.Error(nil, e.Message)
	}
	return nil
}
