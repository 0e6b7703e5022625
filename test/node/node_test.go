package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/forgeplane"
	"github.com/forgeplane/forgeplane/test/installation"
	"github.com/forgeplane/forgeplane/test/process"
	"github.com/forgeplane/forgeplane/test/suite"
)

// pauseImage holds the namespaces of each pod.
const pauseImage = "forgeplane.dev/pause:1"

// runtimeSettings configure containerd. Without restrict_oom_score_adj, no container starts where the node itself runs in a container.
const runtimeSettings = `
version = 2
root = %[1]q
state = %[2]q
[grpc]
address = %[3]q
[plugins."io.containerd.grpc.v1.cri"]
restrict_oom_score_adj = true
sandbox_image = %[4]q
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = %[1]q
conf_dir = %[1]q
`

// kubeletSettings let the kubelet use the control groups as they are, and leave the network of the machine as it is.
const kubeletSettings = `
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 127.0.0.1
port: %d
healthzPort: 0
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: ""}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
protectKernelDefaults: true
localStorageCapacityIsolation: false
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: "1Mi", nodefs.available: "0%%", nodefs.inodesFree: "0%%", imagefs.available: "0%%"}
containerRuntimeEndpoint: unix://%s
podLogsDir: %s
`

// startKubelet is a script that gives the kubelet the settings of the kernel that it requires, in the mount namespace of containerd, and starts it:
// $0 is a directory for files, and the command follows.
const startKubelet = `
for setting in vm/overcommit_memory=1 kernel/panic=10 kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
	file="$0/$(echo "${setting%=*}" | tr / .)"
	echo "${setting#*=}" >"$file"
	mount --bind "$file" "/proc/sys/${setting%=*}"
done
exec "$@"`

// node has the files and the programs of a node.
type node struct {
	space  string // directory
	socket string // of containerd
}

func (n *node) path(elements ...string) string {
	return filepath.Join(append([]string{n.space}, elements...)...)
}

// startNode starts containerd with an image that is in an OCI layout, and the kubelet, which makes the node a part of a cluster.
func startNode(ctx context.Context, cluster *installation.Cluster, layout string) {
	GinkgoHelper()
	n := &node{space: GinkgoT().TempDir()}
	n.socket = n.path("containerd.sock")
	DeferCleanup(removeControlGroups)
	write(n.path("containerd.toml"), fmt.Sprintf(runtimeSettings, n.path("root"), n.path("state"), n.socket, pauseImage))
	containerd := n.start("containerd", "unshare", "--mount", "containerd", "--config="+n.path("containerd.toml"))
	Eventually(func() error { return exec.CommandContext(ctx, "ctr", "--address="+n.socket, "version").Run() }).Should(Succeed())
	n.load(ctx, pause(ctx))
	archive := filepath.Join(GinkgoT().TempDir(), "image.tar")
	run(ctx, "tar", "--create", "--file="+archive, "--directory="+layout, ".")
	n.load(ctx, archive, "--base-name=forgeplane.dev/forgeplane")

	identity, err := cluster.Identity("system:node:node", "system:nodes", "system:masters")
	Expect(err).NotTo(HaveOccurred())
	Expect(controlplane.WriteKubeconfig(n.path("kubeconfig"), identity)).To(Succeed())
	port, err := controlplane.FreePort(ctx)
	Expect(err).NotTo(HaveOccurred())
	write(n.path("kubelet.yaml"), fmt.Sprintf(kubeletSettings, port, n.socket, n.path("logs")))
	kubelet := n.start("kubelet", "nsenter", fmt.Sprintf("--target=%d", containerd.PID()), "--mount", "sh", "-euc", startKubelet, n.space,
		build(ctx, "kubelet", n.space), "--config="+n.path("kubelet.yaml"), "--kubeconfig="+n.path("kubeconfig"), "--root-dir="+n.path("pods"),
		"--cert-dir="+n.path("certificates"), "--hostname-override=node", "--node-ip=127.0.0.1")
	Eventually(func() error {
		select {
		case <-kubelet.Done():
			return StopTrying("the kubelet has ended").Wrap(kubelet.Ended())
		default:
		}
		_, err := cluster.Admin.Try("kubectl", "get", "node/node")
		return err
	}).Should(Succeed())
}

// removeControlGroups removes the directories above the control groups of containers, which containerd leaves. They can be removed only if they have
// no others below them.
func removeControlGroups() {
	directories, err := filepath.Glob("/sys/fs/cgroup/*/k8s.io")
	Expect(err).NotTo(HaveOccurred())
	for _, directory := range append(directories, "/sys/fs/cgroup/k8s.io") {
		_ = os.Remove(directory)
	}
}

// start starts a program that stops with the spec.
func (n *node) start(program string, command ...string) *process.Process {
	GinkgoHelper()
	path, err := exec.LookPath(command[0])
	Expect(err).NotTo(HaveOccurred())
	p, err := process.Start(process.Program{Name: program, Path: path, Args: command[1:], Dir: n.space, Log: n.path(program + ".log")})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		if CurrentSpecReport().Failed() {
			GinkgoWriter.Println(program, p.Tail())
		}
		Expect(p.Stop()).To(Succeed())
	})
	return p
}

func (n *node) load(ctx context.Context, archive string, options ...string) {
	GinkgoHelper()
	arguments := append([]string{"--address=" + n.socket, "--namespace=k8s.io", "images", "import"}, options...)
	run(ctx, "ctr", append(arguments, archive)...)
}

// pause returns an archive with the image of pause.
func pause(ctx context.Context) string {
	GinkgoHelper()
	directory := GinkgoT().TempDir()
	build(ctx, "pause", directory)
	files, archive := filepath.Join(directory, "files.tar"), filepath.Join(directory, "pause.tar")
	run(ctx, "tar", "--create", "--file="+files, "--directory="+directory, "pause")
	layer, err := tarball.LayerFromFile(files)
	Expect(err).NotTo(HaveOccurred())
	image, err := mutate.AppendLayers(empty.Image, layer)
	Expect(err).NotTo(HaveOccurred())
	configuration, err := image.ConfigFile()
	Expect(err).NotTo(HaveOccurred())
	configuration = configuration.DeepCopy()
	configuration.OS, configuration.Architecture, configuration.Config = "linux", runtime.GOARCH, v1.Config{Entrypoint: []string{"/pause"}}
	image, err = mutate.ConfigFile(image, configuration)
	Expect(err).NotTo(HaveOccurred())
	tag, err := name.NewTag(pauseImage)
	Expect(err).NotTo(HaveOccurred())
	Expect(tarball.WriteToFile(archive, tag, image)).To(Succeed())
	return archive
}

func write(path, text string) {
	GinkgoHelper()
	Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
}

func run(ctx context.Context, program string, arguments ...string) {
	GinkgoHelper()
	output, err := exec.CommandContext(ctx, program, arguments...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s %s\n%s", program, strings.Join(arguments, " "), output)
}

// pod is a pod with the settings of the chart, and with the network of the machine: the node has no network of its own.
const pod = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: forgeplane-system}
---
apiVersion: v1
kind: Pod
metadata: {name: forgeplane, namespace: forgeplane-system}
spec:
  nodeName: node
  hostNetwork: true
  automountServiceAccountToken: false
  securityContext: {runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: forgeplane
    image: forgeplane.dev/forgeplane:%[1]s
    imagePullPolicy: Never
    command: [forgeplane]
    args: %[2]s
    readinessProbe: {httpGet: {host: 127.0.0.1, port: %[3]d, path: /readyz}, periodSeconds: 1, failureThreshold: 60}
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
    volumeMounts: [{name: data, mountPath: %[4]q}, {name: tmp, mountPath: /tmp}]
  volumes:
  - {name: data, hostPath: {path: %[4]q}}
  - {name: tmp, emptyDir: {}}
`

var _ = Describe("A node", suite.Soak, func() {
	It("runs the image in a pod that becomes ready", func(ctx context.Context) {
		requirements()
		checkout := installation.NewCheckout()
		shell := checkout.Developer()
		shell.Do("make", "image", "OUT=.dev/image")
		cluster := checkout.StartCluster()
		startNode(ctx, cluster, filepath.Join(checkout.Data(), "image", "oci"))

		data, ports := GinkgoT().TempDir(), installation.FreePorts()
		options := forgeplane.Options{
			Programs: "/usr/bin", Data: data, Logs: data, HTTPPort: ports.HTTP, TLSPort: ports.TLS, HealthPort: ports.Health, ControlPlane: cluster.ControlPlane,
		}
		program, err := options.Program()
		Expect(err).NotTo(HaveOccurred())
		shell.Do("chown", "-R", "65532:65532", data)
		arguments, err := json.Marshal(program.Args)
		Expect(err).NotTo(HaveOccurred())
		cluster.Admin.Apply(fmt.Sprintf(pod, shell.Do("cat", "cmd/forgeplane/VERSION"), arguments, ports.Health, data))
		in := "--namespace=" + forgeplane.Namespace
		DeferCleanup(func() { cluster.Admin.Kubectl("delete", "pod/forgeplane", in, "--timeout=120s") })
		cluster.Admin.Kubectl("wait", "--for=condition=Ready", "--timeout=180s", "pod/forgeplane", in)
		Expect(options.WaitReady(ctx)).To(Succeed())
		cluster.Admin.Kubectl("wait", "--for=create", "--timeout=60s", "apiservice/v4.rest.forgeplane.dev")
	})
})
