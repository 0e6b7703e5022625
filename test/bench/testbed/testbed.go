// Package testbed provides the system under measurement: Forgeplane on its own control plane, with only an administrator, their access
// token and one storage.
package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/bench/usage"
	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/forgeplane"
)

const (
	// Administrator is the username of the administrator.
	Administrator = "root"

	tokenSecret = "root-token"

	// pollInterval is the time between two checks of something that cannot be watched.
	pollInterval = 25 * time.Millisecond
	// prepareTimeout limits the time until config/base is in force.
	prepareTimeout = 2 * time.Minute
)

// Options configure a testbed.
type Options struct {
	// Checkout is the directory of the checkout, with bin and config. Directory contains everything that is created. Both are absolute.
	Checkout, Directory string
	// Failed is called when a program has ended by itself.
	Failed context.CancelCauseFunc
}

// Testbed is a running testbed. It must be used by one goroutine at a time.
type Testbed struct {
	options Options
	scheme  *runtime.Scheme
	plane   *controlplane.ControlPlane
	client  client.WithWatch
	token   string
	kubectl string
	// running is nil while Forgeplane is stopped.
	running *running
}

// Start starts the control plane and Forgeplane. The context limits only the start. If the start fails, nothing is left running.
func Start(ctx context.Context, o Options) (*Testbed, error) {
	t := &Testbed{options: o, scheme: runtime.NewScheme()}
	if err := t.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a testbed: %w", err), t.Stop())
	}
	return t, nil
}

func (t *Testbed) start(ctx context.Context) error {
	if err := errors.Join(clientgoscheme.AddToScheme(t.scheme), v1alpha1.AddToScheme(t.scheme)); err != nil {
		return err
	}
	for _, directory := range []string{"storage", "data"} {
		if err := os.MkdirAll(t.path(directory), 0o700); err != nil {
			return err
		}
	}
	binaries, err := controlplane.FindBinaries()
	if err != nil {
		return err
	}
	t.kubectl = binaries.Kubectl
	t.plane, err = controlplane.Start(ctx, controlplane.Options{
		Directory: t.path("control-plane"), Logs: t.path("logs"), Binaries: binaries,
		Prepare: func(ctx context.Context, administrator *rest.Config) error {
			return t.install(ctx, administrator)
		},
	})
	if err != nil {
		return err
	}
	if t.client, err = t.NewClient("administrator"); err != nil {
		return err
	}
	if err := t.StartForgeplane(ctx); err != nil {
		return err
	}
	return t.populate(ctx)
}

// install applies what an installation needs before Forgeplane runs in it.
func (t *Testbed) install(ctx context.Context, administrator *rest.Config) error {
	if err := controlplane.WriteKubeconfig(t.administratorKubeconfig(), administrator); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, prepareTimeout, fmt.Errorf("config/base was not applied within %s", prepareTimeout))
	defer cancel()
	for _, args := range [][]string{
		{"apply", "--server-side", "--kustomize", filepath.Join(t.options.Checkout, "config", "base")},
		{"wait", "--for=condition=Established", "--timeout=1m", "customresourcedefinitions", "--all"},
	} {
		if err := t.Kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

func (t *Testbed) administratorKubeconfig() string { return t.path("administrator.kubeconfig") }

// Kubectl runs kubectl as the administrator of the cluster.
func (t *Testbed) Kubectl(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, t.kubectl, append([]string{"--kubeconfig=" + t.administratorKubeconfig()}, args...)...)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", args[0], err, strings.TrimSpace(string(output)))
	}
	return nil
}

// populate creates the objects of every testbed.
func (t *Testbed) populate(ctx context.Context) error {
	root := v1alpha1.Reference{Name: Administrator}
	err := t.Create(ctx,
		&v1alpha1.RepositoryStorage{
			ObjectMeta: metav1.ObjectMeta{Name: "default"},
			Spec:       v1alpha1.RepositoryStorageSpec{Path: t.path("storage")},
		},
		&v1alpha1.User{
			ObjectMeta: metav1.ObjectMeta{Name: Administrator},
			Spec:       v1alpha1.UserSpec{Username: Administrator, Name: "Administrator", Email: "root@example.com", Admin: true},
		},
		&v1alpha1.AccessToken{
			ObjectMeta: metav1.ObjectMeta{Name: Administrator},
			Spec: v1alpha1.AccessTokenSpec{
				UserRef: root, Scopes: []v1alpha1.TokenScope{v1alpha1.ScopeAPI}, SecretRef: &v1alpha1.SecretKeyReference{Name: tokenSecret},
			},
		},
	)
	if err != nil {
		return err
	}
	var secret corev1.Secret
	if err := t.client.Get(ctx, client.ObjectKey{Namespace: forgeplane.Namespace, Name: tokenSecret}, &secret); err != nil {
		return fmt.Errorf("reading the token of the administrator: %w", err)
	}
	if t.token = string(secret.Data["token"]); t.token == "" {
		return errors.New("the administrator has no token")
	}
	return nil
}

// Stop stops all processes. Their files stay in the directory.
func (t *Testbed) Stop() error {
	err := t.StopForgeplane()
	if t.plane != nil {
		err = errors.Join(err, t.plane.Stop())
	}
	return err
}

// Client returns the administrator's client of the cluster.
func (t *Testbed) Client() client.WithWatch { return t.client }

// NewClient returns a client of the cluster with its own connection, which can do everything.
func (t *Testbed) NewClient(user string) (client.WithWatch, error) {
	config, err := t.plane.Identity(user, "system:masters")
	if err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{Scheme: t.scheme})
}

// Identity returns the configuration of a client with a Kubernetes identity that has no rights.
func (t *Testbed) Identity(user string) (*rest.Config, error) { return t.plane.Identity(user) }

// AwaitAvailable waits until kube-apiserver reaches the server behind an APIService.
func (t *Testbed) AwaitAvailable(ctx context.Context, name string) error {
	return poll(ctx, prepareTimeout, "the APIService "+name+" to be available", func(ctx context.Context) (bool, error) {
		api := &unstructured.Unstructured{}
		api.SetAPIVersion("apiregistration.k8s.io/v1")
		api.SetKind("APIService")
		if err := t.client.Get(ctx, client.ObjectKey{Name: name}, api); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		conditions, _, err := unstructured.NestedSlice(api.Object, "status", "conditions")
		return slices.ContainsFunc(conditions, func(c any) bool {
			fields, _ := c.(map[string]any)
			return fields["type"] == "Available" && fields["status"] == "True"
		}), err
	})
}

// Token returns the administrator's access token for Forgeplane.
func (t *Testbed) Token() string { return t.token }

// Kubeconfig returns the path of the kubeconfig file by which Forgeplane reaches the cluster.
func (t *Testbed) Kubeconfig() string { return t.path("data", "forgeplane.kubeconfig") }

// ControlPlanePID returns the process id of a program of the control plane.
func (t *Testbed) ControlPlanePID(name string) (int, error) {
	for _, p := range t.plane.Processes() {
		if p.Name() == name {
			return p.PID(), nil
		}
	}
	return 0, fmt.Errorf("the control plane has no program %s", name)
}

// CPUDuring returns the CPU time in seconds that Forgeplane, if it runs, and the programs of the control plane use during a function.
func (t *Testbed) CPUDuring(do func() error) (seconds float64, err error) {
	before, err := t.cpu()
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := t.cpu()
	return (after - before).Seconds(), err
}

func (t *Testbed) cpu() (total time.Duration, err error) {
	processes := t.plane.Processes()
	if t.running != nil {
		processes = append(processes, t.running.process)
	}
	for _, p := range processes {
		one, err := usage.CPUTime(p.PID())
		if err != nil {
			return 0, err
		}
		total += one
	}
	return total, nil
}

// RepositoryDir returns the directory of a project's repository.
func (t *Testbed) RepositoryDir(p *v1alpha1.Project) string {
	return t.path("storage", filepath.FromSlash(p.Status.RepositoryPath))
}

// RegistryDir returns the directory of images.
func (t *Testbed) RegistryDir() string { return t.path("data", "registry") }

// ActivityDatabase returns the file of the activity database, which nothing else may open while Forgeplane runs.
func (t *Testbed) ActivityDatabase() string { return t.path("data", "activity.db") }

func (t *Testbed) path(elements ...string) string {
	return filepath.Join(append([]string{t.options.Directory}, elements...)...)
}
