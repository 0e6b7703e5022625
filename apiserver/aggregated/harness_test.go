package aggregated_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/apiserver/aggregated"
	"github.com/forgeplane/forgeplane/apiserver/aggregated/route"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/certificate"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/registration"
	"github.com/forgeplane/forgeplane/test/process"
	"github.com/forgeplane/forgeplane/test/suite"
)

const platform = "forgeplane-system"

var kubernetesURL = &url.URL{Scheme: "https", Host: "kubernetes.example"}

// serverVariable makes this program run a server instead of the tests; its value is a replica in JSON.
const serverVariable = "FORGEPLANE_TEST_SERVER"

func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(serverVariable); ok {
		if err := runServer(text); err != nil {
			fmt.Fprintln(os.Stderr, "the server ended:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestAggregated(t *testing.T) {
	suite.Run(t, "The aggregated API")
}

// replica describes the server to run.
type replica struct {
	Name, Kubeconfig, Address string
	// AuditPolicy, AuditLog and Writes are files.
	AuditPolicy, AuditLog, Writes string
	// Unready is a file that exists while the server must not be ready.
	Unready string
	// ServicePort is the port that kube-apiserver connects to.
	ServicePort int32
}

func runServer(text string) error {
	var r replica
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", r.Kubeconfig)
	if err != nil {
		return err
	}
	c, err := newClient(config)
	if err != nil {
		return err
	}
	administrators, err := aggregated.NewAdministrators(config)
	if err != nil {
		return err
	}
	writes, err := audit.Open(audit.Options{Path: cmp.Or(r.Writes, audit.Off)})
	if err != nil {
		return err
	}
	defer func() { _ = writes.Close() }()
	log := funcr.New(func(prefix, args string) { fmt.Fprintln(os.Stderr, prefix, args) }, funcr.Options{})
	return aggregated.New(aggregated.Options{
		AuditPolicy: r.AuditPolicy, AuditLog: r.AuditLog, Writes: writes,
		Address: r.Address, Kubeconfig: r.Kubeconfig, Config: config, URL: kubernetesURL,
		Tree: echo(administrators), Routes: routes(), Known: known,
		Certificates: certificate.Managed(certificate.Options{
			Client: c, Secret: client.ObjectKey{Namespace: platform, Name: "forgeplane-apiserver-tls"},
			Names: []string{"forgeplane-apiserver." + platform + ".svc"}, Clock: clock.RealClock{}, Log: log,
		}),
		Registration: registration.Server{Options: registrationOptions(c, r.ServicePort, log), Name: r.Name},
		Ready: func(*http.Request) error {
			if _, err := os.Stat(r.Unready); err == nil {
				return errors.New("as the test wants it")
			}
			return nil
		}, Log: log,
	}).Start(ctx)
}

func registrationOptions(c client.Client, port int32, log logr.Logger) registration.Options {
	return registration.Options{
		Client: c, Service: client.ObjectKey{Namespace: platform, Name: "forgeplane-apiserver"}, Port: port,
		ExternalName: "localhost", Clock: clock.RealClock{}, Log: log,
	}
}

func newClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiregistrationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	return client.New(config, client.Options{Scheme: scheme})
}

func routes() []route.Pattern {
	return []route.Pattern{
		{Method: "GET", Path: "/version"},
		{Method: "GET", Path: "/projects"},
		{Method: "GET", Path: "/projects/{id}"},
		{Method: "GET", Path: "/projects/{id}/labels"},
		{Method: "POST", Path: "/projects/{id}/labels"},
		{Method: "GET", Path: "/projects/{id}/protected_branches/{name}"},
		{Method: "DELETE", Path: "/projects/{id}/protected_branches/{name}"},
		{Method: "GET", Path: "/groups/{id}/projects"},
		{Method: "GET", Path: "/namespaces/{id}/exists"},
		{Method: "POST", Path: "/jobs/request", Polls: true},
	}
}

func known(_ context.Context, path string) route.Kind {
	return map[string]route.Kind{
		"acme": route.Group, "acme/site": route.Project, "acme/labels": route.Project,
	}[path]
}

// answer is the response of echo.
type answer struct {
	Method, Path, Query, Identity string
	Administrator                 bool
	// Counted is true if the caller is counted by the address in the query.
	Counted bool
	Header  http.Header
	Body    string
}

// echo stands for the REST API: it returns and logs the requests that reach it.
func echo(administrators *aggregated.Administrators) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		identity, _ := auth.IdentityFrom(r.Context())
		administrator, err := administrators.Include(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if r.URL.Path == "/jobs/request" {
			meet(r)
		}
		body, _ := io.ReadAll(r.Body)
		address, _ := netip.ParseAddr(r.URL.Query().Get("address"))
		fmt.Fprintln(os.Stderr, "tree:", identity, r.Method, r.URL.EscapedPath())
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Total", "45")
		_ = json.NewEncoder(w).Encode(answer{
			Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Identity: identity,
			Administrator: administrator, Header: r.Header, Body: string(body),
			Counted: fair.From(r.Context()) == fair.Address(address),
		})
	})
}

// meetings holds the requests that wait for each other, by query.
var meetings = struct {
	sync.Mutex
	waiting map[string]int
	all     map[string]chan struct{}
}{waiting: map[string]int{}, all: map[string]chan struct{}{}}

// meet waits until as many requests with the same query have arrived as it says.
func meet(r *http.Request) {
	query := r.URL.RawQuery
	number, _ := strconv.Atoi(r.URL.Query().Get("number"))
	meetings.Lock()
	if meetings.all[query] == nil {
		meetings.all[query] = make(chan struct{})
	}
	here := meetings.all[query]
	if meetings.waiting[query]++; meetings.waiting[query] == number {
		close(here)
	}
	meetings.Unlock()
	select {
	case <-here:
	case <-r.Context().Done():
	}
}

// startReplica runs a server in its own process, which is killed at the end of the spec at the latest.
func startReplica(r replica) *process.Process {
	GinkgoHelper()
	executable, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	text, err := json.Marshal(r)
	Expect(err).NotTo(HaveOccurred())
	log := filepath.Join(GinkgoT().TempDir(), r.Name+".log")
	p, err := process.Start(process.Program{
		Name: r.Name, Path: executable, Log: log,
		Env: append(os.Environ(), serverVariable+"="+string(text)),
	})
	Expect(err).NotTo(HaveOccurred())
	logs[r.Name] = log
	DeferCleanup(func() {
		_ = p.Kill()
		unregister()
		if CurrentSpecReport().Failed() {
			text, _ := os.ReadFile(log)
			fmt.Fprintf(GinkgoWriter, "the log of %s:\n%s\n", r.Name, text)
		}
	})
	return p
}

// unregister removes the registration that a killed server leaves behind, for the next spec.
func unregister() {
	GinkgoHelper()
	ctx := context.Background()
	r := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: registration.APIService(aggregated.GroupVersion)}}
	Expect(client.IgnoreNotFound(admin.Delete(ctx, r))).To(Succeed())
	Expect(admin.DeleteAllOf(ctx, &coordinationv1.Lease{}, client.InNamespace(platform))).To(Succeed())
}

// logs are the files with the output of the replicas, by name.
var logs = map[string]string{}

func logOf(name string) string {
	GinkgoHelper()
	text, err := os.ReadFile(logs[name])
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}
