package registry

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

// firstCollection is the delay after which a Collector begins, so that a process that has just started is not busy with it.
const firstCollection = 10 * time.Minute

// Collector collects garbage regularly, in the leading manager.
type Collector struct {
	registry *Registry
	options  CollectOptions
	interval time.Duration
	clock    clock.Clock
	log      logr.Logger

	bytes, failed prometheus.Counter
}

// NewCollector returns a collector that collects once in an interval.
func NewCollector(r *Registry, o CollectOptions, interval time.Duration, c clock.Clock, log logr.Logger) *Collector {
	return &Collector{
		registry: r, options: o, interval: interval, clock: c, log: log,
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "forgeplane_registry_collected_bytes_total", Help: "Bytes of images that garbage collections have removed.",
		}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "forgeplane_registry_failed_collections_total", Help: "Garbage collections of images that have failed.",
		}),
	}
}

// NeedLeaderElection is true: one collection at a time suffices.
func (*Collector) NeedLeaderElection() bool { return true }

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	c.bytes.Describe(ch)
	c.failed.Describe(ch)
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	c.bytes.Collect(ch)
	c.failed.Collect(ch)
}

// Start collects until ctx ends.
func (c *Collector) Start(ctx context.Context) error {
	timer := c.clock.NewTimer(min(firstCollection, c.interval))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C():
		}
		collected, err := c.registry.Collect(ctx, c.options)
		c.bytes.Add(float64(collected.Bytes))
		switch {
		case ctx.Err() != nil:
		case err != nil:
			c.failed.Inc()
			c.log.Error(err, "Failed to collect the garbage of the registry")
		default:
			c.log.Info("Collected the garbage of the registry", "removed", collected.String())
		}
		timer.Reset(c.interval)
	}
}

// String describes what was removed.
func (c Collected) String() string {
	return fmt.Sprintf("%d deleted repositories, %d images, %d blobs with %d bytes", c.Repositories, c.Manifests, c.Blobs, c.Bytes)
}
