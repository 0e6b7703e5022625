package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/forgeplane/forgeplane/test/process"
)

// etcdSocket is the socket on which etcd serves kube-apiserver, relative to their working directory. The path of a socket is limited to about a
// hundred characters, and only the owner of the directory can use it. etcd requires the colon and a port, but does not use them.
const etcdSocket = "unix://etcd:0"

func (c *ControlPlane) etcd(o Options) process.Program {
	const peers = "unix://peers:0"
	args := []string{
		"--name=controlplane",
		"--data-dir=etcd",
		"--listen-client-urls=" + etcdSocket,
		"--advertise-client-urls=" + etcdSocket,
		"--listen-peer-urls=" + peers,
		"--initial-advertise-peer-urls=" + peers,
		"--initial-cluster=controlplane=" + peers,
		"--log-level=warn",
	}
	if o.Ephemeral {
		args = append(args, "--unsafe-no-fsync")
	}
	return c.program("etcd", o.Binaries.Etcd, args)
}

func (c *ControlPlane) apiServer(o Options) process.Program {
	program := c.program("kube-apiserver", o.Binaries.APIServer, append([]string{
		"--etcd-servers=" + etcdSocket,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.port),
		"--tls-cert-file=" + servingFile + certificateSuffix,
		"--tls-private-key-file=" + servingFile + keySuffix,
		"--client-ca-file=" + clientAuthority + certificateSuffix,
		"--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + serviceAccountFile + keySuffix,
		"--service-account-signing-key-file=" + serviceAccountFile + keySuffix,
		// The aggregation layer uses these credentials, by which an aggregated API server recognizes this one.
		"--requestheader-client-ca-file=" + proxyAuthority + certificateSuffix,
		"--requestheader-allowed-names=" + proxyName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + proxyFile + certificateSuffix,
		"--proxy-client-key-file=" + proxyFile + keySuffix,
		"--enable-aggregator-routing=false",
		// There are no other servers, so the endpoints of the kubernetes Service need no agreement.
		"--endpoint-reconciler-type=none",
		"--profiling=false",
	}, slices.Concat(auditArgs(o.Audit), o.Flags)...))
	program.Env = append(collection(), os.Environ()...) // of two values of a variable, the last one counts
	return program
}

// collection makes kube-apiserver collect its garbage less often than Go does by default, which took a fifth of its CPU time while many objects
// were written. It collects more often again when its memory approaches two gigabytes.
func collection() []string { return []string{"GOGC=400", "GOMEMLIMIT=2GiB"} }

func (c *ControlPlane) controllers(o Options) process.Program {
	return c.program("controllers", o.Binaries.Controllers, []string{"--kubeconfig=" + controllersFile})
}

func (c *ControlPlane) program(name, path string, args []string) process.Program {
	return process.Program{
		Name: name, Path: path, Args: args, Dir: c.directory,
		Log: filepath.Join(c.logs, name+".log"), Grace: 10 * time.Second,
	}
}
