package egress

import "net"

// CheckSocket is what the proxy asks as it connects.
func (p *Policy) CheckSocket(host, address string) error { return p.checkSocket(host, address) }

// ResolveBy has names resolved in another way than the system's, before the proxy is used.
func (p *Proxy) ResolveBy(r *net.Resolver) { p.resolver = r }
