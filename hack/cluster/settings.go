package main

import (
	_ "embed" // for the script and the objects
)

const (
	// address is the address of the node, and pods the network of its pods.
	address = "192.168.240.1"
	pods    = "10.244.0.0/24"
	// kubePort is the port of kube-apiserver.
	kubePort = 6443
	// pauseImage holds the namespaces of each pod.
	pauseImage = "forgeplane.dev/pause:1"
	// forgeplaneImage is the image that is the default of the chart.
	forgeplaneImage = "localhost/forgeplane"
	// volumes is the number of volumes.
	volumes = 4
)

// prepare gives the node its place: its arguments are the directory and the address of the node.
//
//go:embed prepare.sh
var prepare string

// objects are in the cluster from the start.
//
//go:embed objects.yaml.tmpl
var objects string

// runtimeSettings configure containerd, by the directory of the node. Without restrict_oom_score_adj, no container starts where the node itself runs in
// a container.
const runtimeSettings = `
version = 2
root = "%[1]s/root"
state = "%[1]s/state"
[grpc]
address = "%[1]s/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
path = "%[1]s/opt"
[plugins."io.containerd.grpc.v1.cri"]
restrict_oom_score_adj = true
sandbox_image = "` + pauseImage + `"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "%[2]s"
conf_dir = "%[1]s/network"
`

// network gives each pod an address. Each packet passes the node, where kube-proxy handles it.
const network = `{
  "cniVersion": "1.0.0", "name": "node",
  "plugins": [{
    "type": "ptp",
    "ipam": {"type": "host-local", "ranges": [[{"subnet": "` + pods + `"}]], "routes": [{"dst": "0.0.0.0/0"}]}
  }]
}`

// kubeletSettings let the kubelet use the control groups as they are, by the directory of the node.
const kubeletSettings = `
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: ` + address + `
healthzPort: 0
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: "%[1]s/control-plane/proxy-ca.crt"}}
authorization: {mode: AlwaysAllow}
clusterDNS: [` + address + `]
clusterDomain: cluster.local
resolvConf: ""
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
containerRuntimeEndpoint: "unix://%[1]s/containerd.sock"
volumePluginDir: "%[1]s/volume-plugins"
`

// names configures CoreDNS, by the path of a kubeconfig.
const names = `cluster.local:53 {
	errors
	kubernetes {
		kubeconfig %s
	}
}
`

// apiServerFlags make kube-apiserver reachable for pods, and let it ask the kubelet with the certificate that the control plane has for servers behind it.
var apiServerFlags = []string{
	"--bind-address=0.0.0.0", "--advertise-address=" + address, "--endpoint-reconciler-type=lease",
	"--kubelet-client-certificate=proxy.crt", "--kubelet-client-key=proxy.key", "--kubelet-preferred-address-types=InternalIP",
}
