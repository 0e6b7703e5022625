package egress

import "net"

// CheckSocket makes the check of the proxy for a connection.
func (p *Policy) CheckSocket(host, address string) error { return p.checkSocket(host, address) }

// ResolveBy replaces the resolver of the system. It must be called before the proxy is used.
func (p *Proxy) ResolveBy(r *net.Resolver) { p.resolver = r }
