package controlplane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// These are the files with keys in the directory. A certificate and its key have the same name.
const (
	certificateSuffix = ".crt"
	keySuffix         = ".key"

	clientAuthority    = "client-ca"
	proxyAuthority     = "proxy-ca"
	servingFile        = "kube-apiserver"
	proxyFile          = "proxy"
	serviceAccountFile = "service-account"
	administratorFile  = "administrator.kubeconfig"
	controllersFile    = "controllers.kubeconfig"

	// proxyName is the identity of kube-apiserver when it forwards a request to an aggregated API server.
	proxyName = "aggregator"
	// administratorGroup is the group that RBAC allows everything.
	administratorGroup = "system:masters"
)

// writeKeys writes the credentials of the programs. The authorities and the key of the service accounts survive a restart, so that everything that
// they have signed stays valid. All other credentials are issued again, so they never expire in a directory that is in use.
func (c *ControlPlane) writeKeys() error {
	if err := c.readKeys(); err != nil {
		return err
	}
	// The holder of a certificate from this authority can name any user in a header, so it must not be the authority of the clients.
	proxies, err := loadAuthority(c.path(proxyAuthority))
	if err != nil {
		return err
	}
	serving, err := c.clients.issue(server("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"))
	if err != nil {
		return err
	}
	proxy, err := proxies.issue(client(proxyName))
	if err != nil {
		return err
	}
	if err := errors.Join(serving.write(c.path(servingFile)), proxy.write(c.path(proxyFile)), c.writeServiceAccountKey()); err != nil {
		return err
	}
	controllers, err := c.Identity("system:kube-controller-manager")
	if err != nil {
		return err
	}
	return errors.Join(
		WriteKubeconfig(c.path(administratorFile), c.administrator),
		WriteKubeconfig(c.path(controllersFile), controllers),
	)
}

// readKeys reads the authority of the clients, or creates it, and issues the administrator's certificate.
func (c *ControlPlane) readKeys() (err error) {
	if c.clients, err = loadAuthority(c.path(clientAuthority)); err != nil {
		return err
	}
	c.administrator, err = c.Identity("administrator", administratorGroup)
	return err
}

func (c *ControlPlane) writeServiceAccountKey() error {
	path := c.path(serviceAccountFile + keySuffix)
	_, err := os.Stat(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	key, err := newKey()
	if err != nil {
		return err
	}
	return writeKey(path, key)
}

// Administrator returns the configuration of a client that can do everything.
func (c *ControlPlane) Administrator() *rest.Config { return rest.CopyConfig(c.administrator) }

// Identity returns the configuration of a client that acts as a user in the given groups and in the group of all authenticated users, with the
// rights that RBAC grants them. Service accounts are users named system:serviceaccount:<namespace>:<name>. The client does not limit its own
// requests.
func (c *ControlPlane) Identity(user string, groups ...string) (*rest.Config, error) {
	issued, err := c.clients.issue(client(user, groups...))
	if err != nil {
		return nil, err
	}
	return &rest.Config{Host: c.URL(), QPS: -1, TLSClientConfig: rest.TLSClientConfig{
		CAData: c.clients.certificatePEM(), CertData: issued.certificatePEM, KeyData: issued.keyPEM,
	}}, nil
}

// WriteKubeconfig writes a kubeconfig file for a configuration from Identity. Only the owner of the file can read it.
func WriteKubeconfig(path string, config *rest.Config) error {
	const name = "forgeplane"
	file := clientcmdapi.NewConfig()
	file.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	file.CurrentContext = name
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
