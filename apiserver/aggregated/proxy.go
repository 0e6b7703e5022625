package aggregated

import (
	"net/http"
	"net/netip"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/x509"
)

// proxy knows kube-apiserver, which passes requests on, by its certificate. The zero value recognizes no client as kube-apiserver.
type proxy struct{ certificate authenticator.Request }

// newProxy returns a proxy that knows the certificates that the cluster names for kube-apiserver; the zero value if it names none.
func newProxy(c *authenticatorfactory.RequestHeaderConfig) proxy {
	if c == nil || c.CAContentProvider == nil {
		return proxy{}
	}
	verified := authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) { return nil, true, nil })
	return proxy{x509.NewDynamicCAVerifier(c.CAContentProvider.VerifyOptions, verified, c.AllowedClientNames)}
}

// passes reports whether kube-apiserver has sent a request. Others reach the port too, such as pods with a token.
func (p proxy) passes(r *http.Request) bool {
	if p.certificate == nil {
		return false
	}
	_, ok, err := p.certificate.AuthenticateRequest(r)
	return ok && err == nil
}

// client returns the address of the client that sent a request. For a request that kube-apiserver passes on, that is the address that
// kube-apiserver appended to X-Forwarded-For; for any other request it is the address of the connection.
func (p proxy) client(r *http.Request) netip.Addr {
	if all := r.Header.Values("X-Forwarded-For"); len(all) > 0 && p.passes(r) {
		last := all[len(all)-1]
		if a, err := netip.ParseAddr(strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])); err == nil {
			return a.Unmap()
		}
	}
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	return peer.Addr().Unmap()
}
