package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/forgeplane/forgeplane/apiserver"
	"github.com/forgeplane/forgeplane/apiserver/registryhttp"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/token"
)

// The values of --registry.
const (
	registryEmbedded = "embedded"
	registrySeparate = "separate"
	registryOff      = "off"
)

// images are the settings of the container registry.
type images struct {
	mode        string
	storage     string
	storageFile string
	url         string
	lifetime    time.Duration
	// tagDelete lets clients of the registry delete tags by their name.
	tagDelete bool
	// maxSize is the maximum size of the images of a project. 0 means no limit.
	maxSize resource.QuantityValue
	// interval is the time between two garbage collections. 0 turns them off. collect are their options.
	interval time.Duration
	collect  registry.CollectOptions
}

func defaultImages() images {
	return images{mode: registryEmbedded, storage: "/var/lib/forgeplane/registry", lifetime: registryhttp.DefaultLifetime, tagDelete: true, maxSize: bytesValue(registry.DefaultMaxSize),
		interval: 24 * time.Hour, collect: registry.CollectOptions{Grace: registry.DefaultGrace}}
}

func (i *images) bind(f *pflag.FlagSet, p parts) {
	if !p.registry {
		f.StringVar(&i.mode, "registry", i.mode,
			"the container registry: embedded in the server, separate if \"forgeplane registry\" serves it at --registry-url, or off")
	}
	i.bindStorage(f)
	if p.controllers {
		f.DurationVar(&i.interval, "registry-collect-interval", i.interval, "time between two garbage collections, which remove unused images; 0 for none")
		i.bindCollect(f)
	}
	if p.server || p.registry {
		f.StringVar(&i.url, "registry-url", i.url, "URL at which clients reach the container registry, without a path, as in https://registry.example; by default that of --external-url")
		f.BoolVar(&i.tagDelete, "registry-tag-delete", i.tagDelete, "let clients of the container registry delete a tag by its name, as in DELETE /v2/<name>/manifests/<tag>")
		f.Var(&i.maxSize, "registry-max-size", "size of all images of a project together, at which its container registry accepts no more; 0 for any size")
	}
	if p.server {
		f.DurationVar(&i.lifetime, "registry-token-lifetime", i.lifetime, "lifetime of the tokens of clients of the container registry")
	}
}

func (i *images) bindStorage(f *pflag.FlagSet) {
	f.StringVar(&i.storage, "registry-storage", i.storage, "directory of the images, which all processes share; created if it is missing")
	f.StringVar(&i.storageFile, "registry-storage-file", i.storageFile,
		"file with the storage of the images in place of a directory: the name of a driver and its parameters, as in the section \"storage\" of the configuration of the distribution registry")
}

func (i *images) bindCollect(f *pflag.FlagSet) {
	f.DurationVar(&i.collect.Grace, "registry-collect-grace", i.collect.Grace, "how long unused images stay; it must be longer than the longest push")
	f.BoolVar(&i.collect.KeepUntagged, "registry-keep-untagged", i.collect.KeepUntagged, "keep images without a tag, which can still be pulled by their digest")
}

// validate validates the settings of a process with the parts p. Only servers tell clients where the registry is.
func (i *images) validate(p parts) error {
	switch i.mode {
	case registryEmbedded, registrySeparate, registryOff:
	default:
		return fmt.Errorf("--registry must be embedded, separate or off, not %q", i.mode)
	}
	if i.interval < 0 || i.interval > 0 && i.interval < time.Minute || i.collect.Grace < registry.MinGrace {
		return fmt.Errorf("--registry-collect-interval must be 0, or a minute or more, and --registry-collect-grace %s or more", registry.MinGrace)
	}
	if i.lifetime < time.Minute || i.lifetime > token.MaxLifetime {
		return fmt.Errorf("--registry-token-lifetime must be between %s and %s", time.Minute, token.MaxLifetime)
	}
	if p.server && i.mode == registrySeparate && i.url == "" {
		return errors.New("--registry=separate requires --registry-url, the URL of the clients of \"forgeplane registry\"")
	}
	if i.maxSize.Sign() < 0 {
		return fmt.Errorf("--registry-max-size must be a size, or 0 for any size, not %s", &i.maxSize)
	}
	return i.validateURL()
}

func (i *images) validateURL() error {
	if i.url == "" {
		return nil
	}
	u, err := url.Parse(i.url)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.User != nil || u.Path != "" && u.Path != "/" {
		return errors.New("--registry-url must be an http or https URL without a path, credentials and query: clients look for /v2 at the root of the host")
	}
	return nil
}

// open returns the storage of the images.
func (i *images) open(ctx context.Context) (driver.StorageDriver, error) {
	if i.storageFile == "" {
		return registry.OpenDirectory(i.storage)
	}
	content, err := os.ReadFile(i.storageFile)
	if err != nil {
		return nil, fmt.Errorf("reading --registry-storage-file: %w", err)
	}
	return registry.OpenConfigured(ctx, content)
}

// registry returns the images of all projects, or nil if the registry is off.
func (o *options) registry(ctx context.Context, s shared) (*registry.Registry, error) {
	if o.images.mode == registryOff {
		return nil, nil
	}
	storage, err := o.images.open(ctx)
	if err != nil {
		return nil, err
	}
	r, err := registry.New(ctx, storage, s.Containers, registry.NewNames(s.catalog), clock.RealClock{})
	if err == nil {
		r.MaxSize = o.images.maxSize.Value()
	}
	return r, err
}

// clients returns the URL of Forgeplane for clients, and the registry options of the server.
func (o *options) clients(ctx context.Context, mgr ctrl.Manager, s shared) (external *url.URL, r apiserver.RegistryOptions, err error) {
	if external, err = o.external(); err != nil || s.registry == nil {
		return external, r, err
	}
	r = apiserver.RegistryOptions{
		Registry: s.registry, URL: external, Elsewhere: o.images.mode == registrySeparate, Lifetime: o.images.lifetime,
		KeepTags: !o.images.tagDelete, Slots: o.slots.of("registry"),
	}
	if o.images.url != "" {
		if r.URL, err = url.Parse(o.images.url); err != nil {
			return nil, r, fmt.Errorf("reading --registry-url: %w", err)
		}
	}
	r.Keys = token.NewKeys(token.Options{Client: s.direct, Namespace: o.namespace, Clock: clock.RealClock{}, Log: mgr.GetLogger().WithName("registry")})
	return external, r, r.Keys.Load(ctx)
}

// addCollector adds to mgr the garbage collection of images.
func (o *options) addCollector(mgr ctrl.Manager, s shared) error {
	if s.registry == nil || o.images.interval == 0 {
		return nil
	}
	c := registry.NewCollector(s.registry, o.images.collect, o.images.interval, clock.RealClock{}, mgr.GetLogger().WithName("registry"))
	if err := metrics.Registry.Register(c); err != nil {
		return fmt.Errorf("registering the metrics of the registry: %w", err)
	}
	if err := mgr.Add(c); err != nil {
		return fmt.Errorf("adding the garbage collection of images: %w", err)
	}
	return nil
}
