package egress

import "net"

// ResolveBy has names resolved in another way than the system's, before the proxy is used.
func (p *Proxy) ResolveBy(r *net.Resolver) { p.resolver = r }
