package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/controllers/registrycleanup"
	"github.com/forgeplane/forgeplane/controllers/remotemirror"
	"github.com/forgeplane/forgeplane/controllers/storagemove"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/egress"
	"github.com/forgeplane/forgeplane/internal/ids"
	"github.com/forgeplane/forgeplane/internal/quota"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// options are the flags of a process.
type options struct {
	kubeconfig     string
	namespace      string
	healthAddress  string
	metricsAddress string
	pprofAddress   string
	verbose        bool

	// parts are the parts of the forge in the process.
	parts            parts
	activityDatabase activityDatabase
	// blobs is the location of the blob store.
	blobs string
	// images is the container registry.
	images images
	audit  auditLog

	// of the controllers
	leaderElect bool
	concurrency int
	ids         ids.Range
	rootGroups  []string
	mirrors     remotemirror.Limits
	moves       storagemove.Limits
	cleanups    int
	retention   retention

	// of the REST API through kube-apiserver
	service service

	// of the server
	slots        slots
	quotas       quota.Limits
	rates        rates
	httpAddress  string
	externalURL  string
	door         door
	home         string
	restWrites   v1alpha1.RESTWrites
	runtimeDir   string
	hookBinary   string
	gitBinary    string
	gitLimits    limits
	maintenance  repository.Limits
	allowTargets []string
	targetPorts  []int
	features     features

	development bool
}

// defaults returns the default options of a process with the parts p. Replicas elect a leader, and a single process does not.
func defaults(p parts) *options {
	return &options{
		namespace: "forgeplane-system", healthAddress: ":8081", metricsAddress: "0", pprofAddress: "0",
		leaderElect: p.controllers && !p.server, concurrency: 10, ids: ids.Range{First: 1, Last: ids.MaxID},
		mirrors: remotemirror.DefaultLimits(), moves: storagemove.DefaultLimits(), cleanups: registrycleanup.DefaultConcurrency,
		retention:   defaultRetention(),
		httpAddress: ":8080", runtimeDir: filepath.Join(os.TempDir(), "forgeplane"), hookBinary: besideExecutable("forgeplane-hook"),
		gitBinary: "git", gitLimits: defaultLimits(), home: "forgeplane-home", restWrites: v1alpha1.RESTWritesAllow, rates: defaultRates(), slots: defaultSlots(), quotas: quota.DefaultLimits(), features: features{},
		service: service{name: "forgeplane-apiserver", port: 443}, door: door{address: ":8443"},
		maintenance:      repository.DefaultLimits,
		audit:            auditLog{path: audit.Stdout, maxSize: 100, maxBackups: 10},
		activityDatabase: activityDatabase{path: "/var/lib/forgeplane/activity.db"}, parts: p,
		blobs: "/var/lib/forgeplane/blobs", images: defaultImages(),
	}
}

// single reports whether the process has all parts of the forge.
func (o *options) single() bool {
	return o.parts.controllers && o.parts.server && o.images.mode != registrySeparate
}

func (o *options) bind(f *pflag.FlagSet, p parts) {
	bindKubeconfig(f, &o.kubeconfig)
	f.StringVar(&o.namespace, "namespace", o.namespace, "namespace of the platform: Secrets of access tokens, id counters, leader election")
	f.StringVar(&o.healthAddress, "health-address", o.healthAddress, "address that serves /healthz and /readyz; 0 for none")
	f.StringVar(&o.metricsAddress, "metrics-address", o.metricsAddress, "address that serves /metrics; 0 for none")
	f.StringVar(&o.pprofAddress, "pprof-address", o.pprofAddress, "address that serves profiles at /debug/pprof, to everyone who can reach it; 0 for none")
	f.BoolVarP(&o.verbose, "verbose", "v", o.verbose, "log actions and decisions, and not only errors")
	f.StringArrayVar(&o.rootGroups, "root-groups", o.rootGroups,
		"namespace=pattern: allows root groups in the namespace with a path that matches the pattern, such as team-a=team-a or platform=*; repeatable; without it, every namespace can hold every root group")
	f.BoolVar(&o.development, "development", o.development, "allow file URLs in importURL, limit only rates for which a flag is set, and log in a format for people")
	o.activityDatabase.bind(f)
	o.images.bind(f, p)
	o.audit.bind(f)
	if p.server || p.registry {
		o.bindClients(f)
	}
	if p.controllers || p.server {
		o.bindForge(f)
	}
	if p.controllers {
		o.bindControllers(f)
	}
	if p.server {
		o.bindServer(f)
	}
}

func bindKubeconfig(f *pflag.FlagSet, file *string) {
	f.StringVar(file, "kubeconfig", *file, "kubeconfig file of the cluster; by default the one in KUBECONFIG, then the service account of the pod")
}

// bindForge binds the flags of all processes except those that are a container registry alone.
func (o *options) bindForge(f *pflag.FlagSet) {
	f.StringVar(&o.gitBinary, "git-binary", o.gitBinary, "git to run, 2.39.1 or later")
	o.gitLimits.bind(f)
	f.StringVar(&o.home, "home-namespace", o.home, "namespace of personal projects, and of groups that are created over REST without a parent")
	f.StringSliceVar(&o.allowTargets, "allow-private-targets", nil,
		"networks and hosts that mirrors and imports can reach although they are not public, at any port, as in 10.0.0.0/8,git.internal")
	f.IntSliceVar(&o.targetPorts, "allow-target-ports", egress.DefaultPorts, "ports that mirrors and imports can reach in public networks")
	f.StringVar(&o.blobs, "blobs", o.blobs,
		"place of avatars and artifacts: a directory that all processes share, created if it is missing, or the URL of an object store, as in s3://bucket?region=eu-central-1, for which Forgeplane must be built with the tag s3")
	o.service.bind(f)
}

func (o *options) bindControllers(f *pflag.FlagSet) {
	f.BoolVar(&o.leaderElect, "leader-elect", o.leaderElect, "elect a leader, so that one of several replicas works at a time")
	f.IntVar(&o.concurrency, "concurrency", o.concurrency, "number of objects of a kind that are reconciled at once")
	f.IntVar(&o.mirrors.Concurrency, "mirror-concurrency", o.mirrors.Concurrency, "number of mirrors that are pushed at once")
	f.IntVar(&o.mirrors.PerHost, "mirror-concurrency-per-host", o.mirrors.PerHost, "number of mirrors that are pushed to one host at once")
	f.IntVar(&o.moves.Concurrency, "storage-move-concurrency", o.moves.Concurrency, "number of projects that are moved to another shard at once")
	f.IntVar(&o.moves.PerShard, "storage-move-concurrency-per-shard", o.moves.PerShard, "number of projects that are moved off one shard at once")
	f.DurationVar(&o.moves.Drain, "storage-move-drain", o.moves.Drain, "how long a move waits for the running writes to end before it fails")
	f.DurationVar(&o.moves.Removal, "storage-move-removal", o.moves.Removal,
		"how long a move waits for the reads of the former copy to end before its state is \"cleanup failed\"")
	f.IntVar(&o.cleanups, "registry-cleanup-concurrency", o.cleanups, "number of cleanups of container repositories that run at once")
	f.DurationVar(&o.mirrors.Timeout, "mirror-timeout", o.mirrors.Timeout, "time limit of the push of a mirror")
	o.retention.bind(f)
	f.Int64Var(&o.ids.First, "first-id", o.ids.First, "first REST id to allocate")
	f.Int64Var(&o.ids.Last, "last-id", o.ids.Last, "last REST id to allocate")
}

func (o *options) bindServer(f *pflag.FlagSet) {
	o.door.bind(f)
	o.rates.bind(f)
	o.slots.bindSizes(f)
	bindQuotas(f, &o.quotas)
	f.StringVar((*string)(&o.restWrites), "rest-writes", string(o.restWrites),
		"restWrites of root groups that do not declare it: Allow, RefuseDeclared or Refuse")
	f.Var(o.features, "feature", featureUsage())
	f.StringVar(&o.runtimeDir, "runtime-dir", o.runtimeDir, "directory for the socket of the hook, which only this process uses")
	f.IntVar(&o.maintenance.Concurrency, "maintenance-concurrency", o.maintenance.Concurrency, "number of repositories that are packed at once, after pushes; 0 for none")
	f.DurationVar(&o.maintenance.Timeout, "maintenance-timeout", o.maintenance.Timeout, "time limit of packing a repository")
	f.StringVar(&o.hookBinary, "hook-binary", o.hookBinary, "the forgeplane-hook executable")
}

// bindClients binds the flags of processes with clients.
func (o *options) bindClients(f *pflag.FlagSet) {
	f.StringVar(&o.httpAddress, "http-address", o.httpAddress, "address that serves clients, without TLS: Git and REST, and the container registry")
	f.StringVar(&o.externalURL, "external-url", o.externalURL, "URL at which clients reach the forge, as in https://forge.example; by default http and the address")
	o.rates.bindConnections(f)
	o.slots.bind(f)
}

// validateBackground validates the limits of background work.
func (o *options) validateBackground() error {
	if o.mirrors.Concurrency < 1 || o.mirrors.PerHost < 1 || o.mirrors.Timeout <= 0 {
		return errors.New("--mirror-concurrency, --mirror-concurrency-per-host and --mirror-timeout must be more than 0")
	}
	if l := o.moves; l.Concurrency < 1 || l.PerShard < 1 || l.Drain <= 0 || l.Removal <= 0 {
		return errors.New("--storage-move-concurrency, --storage-move-concurrency-per-shard, --storage-move-drain and --storage-move-removal must be more than 0")
	}
	if o.cleanups < 1 {
		return errors.New("--registry-cleanup-concurrency must be more than 0")
	}
	if o.maintenance.Concurrency < 0 || o.maintenance.Timeout <= 0 {
		return errors.New("--maintenance-concurrency must be 0 or more, and --maintenance-timeout more than 0")
	}
	return nil
}

func (o *options) validate() error {
	if o.ids.First < 1 || o.ids.Last > ids.MaxID || o.ids.First > o.ids.Last {
		return fmt.Errorf("--first-id and --last-id must be between 1 and %d, in order", int64(ids.MaxID))
	}
	if o.concurrency < 1 {
		return errors.New("--concurrency must be 1 or more")
	}
	if err := o.validateBackground(); err != nil {
		return err
	}
	if err := o.gitLimits.validate(); err != nil {
		return err
	}
	if _, err := o.targets(); err != nil {
		return err
	}
	if _, err := o.external(); err != nil {
		return err
	}
	if err := o.door.validate(); err != nil {
		return err
	}
	if _, err := o.rates.limits(o.development); err != nil {
		return err
	}
	if err := errors.Join(o.slots.validate(), validateQuotas(o.quotas), o.retention.validate(), validateRESTWrites(o.restWrites)); err != nil {
		return err
	}
	if _, err := o.activityName(); err != nil {
		return err
	}
	if err := errors.Join(o.audit.validate(), o.images.validate(o.parts)); err != nil {
		return err
	}
	_, err := o.rootGroupRules()
	return err
}

func validateRESTWrites(w v1alpha1.RESTWrites) error {
	switch w {
	case v1alpha1.RESTWritesAllow, v1alpha1.RESTWritesRefuseDeclared, v1alpha1.RESTWritesRefuse:
		return nil
	default:
		return fmt.Errorf("--rest-writes must be Allow, RefuseDeclared or Refuse, not %q", w)
	}
}

// external returns the URL at which clients reach the forge.
func (o *options) external() (*url.URL, error) {
	text := o.externalURL
	if text == "" {
		host, port, err := net.SplitHostPort(o.httpAddress)
		if err != nil {
			return nil, fmt.Errorf("--http-address must be host:port: %w", err)
		}
		if host == "" {
			host = "localhost"
		}
		text = "http://" + net.JoinHostPort(host, port)
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.User != nil {
		return nil, errors.New("--external-url must be an http or https URL without credentials and query")
	}
	return u, nil
}

// targets returns the policy for connections to hosts that users name.
func (o *options) targets() (*egress.Policy, error) {
	policy, err := egress.Parse(o.allowTargets)
	if err != nil {
		return nil, fmt.Errorf("--allow-private-targets: %w", err)
	}
	if policy, err = policy.AtPorts(o.targetPorts); err != nil {
		return nil, fmt.Errorf("--allow-target-ports: %w", err)
	}
	return policy, nil
}

func (o *options) rootGroupRules() ([]catalog.RootGroupRule, error) {
	rules := make([]catalog.RootGroupRule, 0, len(o.rootGroups))
	for _, text := range o.rootGroups {
		namespace, pattern, ok := strings.Cut(text, "=")
		if _, err := path.Match(pattern, ""); !ok || namespace == "" || pattern == "" || err != nil {
			return nil, fmt.Errorf("--root-groups %q is not in the form namespace=pattern", text)
		}
		rules = append(rules, catalog.RootGroupRule{Namespace: namespace, Path: pattern})
	}
	return rules, nil
}

func besideExecutable(name string) string {
	executable, err := os.Executable()
	if err != nil {
		return name
	}
	return filepath.Join(filepath.Dir(executable), name)
}
