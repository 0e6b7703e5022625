package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/apiserver"
	"github.com/forgeplane/forgeplane/apiserver/activity"
	"github.com/forgeplane/forgeplane/apiserver/aggregated"
	"github.com/forgeplane/forgeplane/apiserver/aggregated/virtual"
	"github.com/forgeplane/forgeplane/apiserver/connection"
	"github.com/forgeplane/forgeplane/internal/certificate"
	"github.com/forgeplane/forgeplane/internal/registration"
)

// certificateSecret holds the certificate of the servers and its authority, in the namespace of the platform.
const certificateSecret = "forgeplane-apiserver-tls"

// service is the Service at which kube-apiserver finds the servers of the REST API.
type service struct {
	name         string
	port         int32
	externalName string
}

func (s *service) bind(f *pflag.FlagSet) {
	f.StringVar(&s.name, "service", s.name, "Service in the namespace of the platform through which kube-apiserver reaches --tls-address")
	f.Int32Var(&s.port, "service-port", s.port, "port of the Service")
	f.StringVar(&s.externalName, "service-external-name", s.externalName, "host name of the servers if they run outside of the cluster; Forgeplane creates the Service with it")
}

// door serves the REST API through kube-apiserver.
type door struct {
	address                     string
	kubernetesURL               string
	certificate, key, authority string
	auditPolicy, auditLog       string
}

func (d *door) bind(f *pflag.FlagSet) {
	f.StringVar(&d.address, "tls-address", d.address, "address that serves the REST API to kube-apiserver; 0 for none")
	f.StringVar(&d.kubernetesURL, "kubernetes-url", d.kubernetesURL, "URL at which clients reach kube-apiserver, for links in responses; by default the URL that this process uses")
	f.StringVar(&d.certificate, "tls-cert-file", d.certificate, "certificate for --tls-address; by default Forgeplane issues it")
	f.StringVar(&d.key, "tls-private-key-file", d.key, "key of --tls-cert-file")
	f.StringVar(&d.authority, "tls-ca-file", d.authority, "certificate authorities with which kube-apiserver verifies --tls-cert-file")
	f.StringVar(&d.auditPolicy, "audit-policy-file", d.auditPolicy, "audit policy, in the format of kube-apiserver, for a log of all requests at --tls-address in addition to --audit-log")
	f.StringVar(&d.auditLog, "audit-log-path", d.auditLog, "file of the log of --audit-policy-file; - for the standard output")
}

func (d *door) open() bool { return d.address != "0" }

func (d *door) validate() error {
	if given := d.certificate != ""; given != (d.key != "") || given != (d.authority != "") {
		return errors.New("--tls-cert-file, --tls-private-key-file and --tls-ca-file belong together")
	}
	if (d.auditPolicy == "") != (d.auditLog == "") {
		return errors.New("--audit-policy-file and --audit-log-path belong together")
	}
	if u, err := url.Parse(d.kubernetesURL); err != nil || d.kubernetesURL != "" && u.Host == "" {
		return errors.New("--kubernetes-url must be a URL")
	}
	return nil
}

// virtualGroups returns the groups that the door serves beside the REST API.
func virtualGroups(o activity.Options) []virtual.Group { return []virtual.Group{activity.Group(o)} }

// registration returns the configuration that all processes share.
func (o *options) registration(mgr ctrl.Manager, direct client.Client) registration.Options {
	return registration.Options{
		Groups: registration.Groups(),
		Client: direct, Service: client.ObjectKey{Namespace: o.namespace, Name: o.service.name},
		Port: o.service.port, ExternalName: o.service.externalName,
		Clock: clock.RealClock{}, Log: mgr.GetLogger().WithName("registration"),
	}
}

// addDoor adds to mgr the server that kube-apiserver forwards requests to, with groups of virtual resources.
func addDoor(mgr ctrl.Manager, o *options, s shared, server *apiserver.Server, groups []virtual.Group) error {
	kubernetesURL := o.door.kubernetesURL
	if kubernetesURL == "" {
		kubernetesURL = mgr.GetConfig().Host
	}
	external, err := url.Parse(kubernetesURL)
	if err != nil {
		return fmt.Errorf("reading --kubernetes-url: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("naming this server: %w", err)
	}
	kubeconfig, err := kubeconfigFile(o.kubeconfig)
	if err != nil {
		return err
	}
	rest := server.REST()
	return mgr.Add(aggregated.New(aggregated.Options{
		Address: o.door.address, Connections: connection.Limits{PerAddress: o.rates.connections}, Kubeconfig: kubeconfig, Config: mgr.GetConfig(),
		AuditPolicy: o.door.auditPolicy, AuditLog: o.door.auditLog, Writes: s.audit,
		URL: external, Tree: server.Aggregated(), Routes: aggregated.RoutesOf(rest.Endpoints()), Known: aggregated.KnownIn(s.catalog),
		Groups:       groups,
		Certificates: o.certificates(mgr, s.direct),
		Registration: registration.Server{Options: o.registration(mgr, s.direct), Name: host},
		// The health checks of the process log failures.
		Ready: all(cacheComplete(mgr), server.Ready, activityReachable(s.Database, logr.Discard())),
		Log:   mgr.GetLogger().WithName("aggregated"),
	}))
}

// certificates returns the source of the certificate of the door.
func (o *options) certificates(mgr ctrl.Manager, direct client.Client) *certificate.Source {
	log := mgr.GetLogger().WithName("certificate")
	if o.door.certificate != "" {
		return certificate.Files(o.door.certificate, o.door.key, o.door.authority, clock.RealClock{}, log)
	}
	return certificate.Managed(certificate.Options{
		Client: direct, Secret: client.ObjectKey{Namespace: o.namespace, Name: certificateSecret},
		Names: []string{o.service.name + "." + o.namespace + ".svc"}, Clock: clock.RealClock{}, Log: log,
	})
}

// kubeconfigFile returns the file that clusterConfig reads, or an empty string for the service account of a pod.
func kubeconfigFile(flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	files := slices.DeleteFunc(filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar)), func(f string) bool { return f == "" })
	switch {
	case len(files) > 1:
		// Delegated authentication reads one file, whereas other clients would merge all of them.
		return "", errors.New("KUBECONFIG names several files: name one by --kubeconfig")
	case len(files) == 1:
		return files[0], nil
	case os.Getenv("KUBERNETES_SERVICE_HOST") == "":
		return clientcmd.RecommendedHomeFile, nil
	default:
		return "", nil
	}
}
