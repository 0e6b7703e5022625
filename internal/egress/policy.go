// Package egress decides which external targets may be reached, and is the only way out for programs that connect on behalf of users: what
// users name must not lead into the network of the forge itself.
package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Errors of targets that may not be reached.
var (
	// ErrLocalhost says that a target is this machine.
	ErrLocalhost = errors.New("requests to localhost are not allowed: name a host in a public network, or ask the operator for --allow-private-targets")
	// ErrLocalNetwork says that a target is in a network that is not the public one.
	ErrLocalNetwork = errors.New("requests to the local network are not allowed: name a host in a public network, or ask the operator for --allow-private-targets")
	// ErrPort says that a target is at a port that is not for mirrors and imports.
	ErrPort = errors.New("requests to this port are not allowed")
)

// DefaultPorts are the ports of ssh, http, https and git.
var DefaultPorts = []int{22, 80, 443, 9418} //nolint:gochecknoglobals // Go knows no constant slices

// Policy says which targets may be reached: every public address at some ports, and of the others those that an operator has named, at
// any port. The zero Policy, and a nil one, names none, and has DefaultPorts.
type Policy struct {
	networks []netip.Prefix
	hosts    map[string]bool
	ports    []int
}

// AtPorts returns the same policy for other ports of what an operator has not named.
func (p *Policy) AtPorts(ports []int) (*Policy, error) {
	limited := *p
	limited.ports = nil
	for _, port := range ports {
		if port < 1 || port > 65535 {
			return nil, fmt.Errorf("%d is not the number of a port", port)
		}
		limited.ports = append(limited.ports, port)
	}
	if len(limited.ports) == 0 {
		return nil, errors.New("at least one port must be named")
	}
	return &limited, nil
}

// checkPort returns why an address, which Check lets through, may not be connected to at a port, or nil.
func (p *Policy) checkPort(host string, addr netip.Addr, port uint16) error {
	ports := DefaultPorts
	if p != nil {
		if p.hosts[canonical(host)] || p.allows(addr.Unmap().WithZone("")) {
			return nil
		}
		if p.ports != nil {
			ports = p.ports
		}
	}
	if slices.Contains(ports, int(port)) {
		return nil
	}
	names := make([]string, len(ports))
	for i, n := range ports {
		names[i] = strconv.Itoa(n)
	}
	return fmt.Errorf("port %d: %w: use one of %s, or ask the operator for --allow-target-ports", port, ErrPort, strings.Join(names, ", "))
}

// Parse returns the policy that allows what is named: networks such as 10.0.0.0/8, addresses, and names of hosts, which may then
// have whatever address.
func Parse(allowed []string) (*Policy, error) {
	p := &Policy{hosts: map[string]bool{}}
	for _, text := range allowed {
		if network, err := netip.ParsePrefix(text); err == nil {
			p.networks = append(p.networks, network.Masked())
		} else if addr, err := netip.ParseAddr(text); err == nil {
			addr = addr.Unmap()
			p.networks = append(p.networks, netip.PrefixFrom(addr, addr.BitLen()))
		} else if host := canonical(text); host != "" && !strings.ContainsAny(host, "/:*@ ") {
			p.hosts[host] = true
		} else {
			return nil, fmt.Errorf("%q is neither a network, nor an address, nor the name of a host", text)
		}
	}
	return p, nil
}

// Canonical returns the canonical form of a host: a name in lower case without a dot at its end, or an address in the format of package
// netip, without a zone, and as IPv4 if it is an IPv4 address.
func Canonical(host string) string {
	name := canonical(host)
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.WithZone("").Unmap().String()
	}
	if addr := numeric(name); addr.IsValid() {
		return addr.String()
	}
	return name
}

func canonical(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// Check returns why an address may not be connected to, or nil. host is what it was resolved from.
func (p *Policy) Check(host string, addr netip.Addr) error {
	addr = addr.Unmap().WithZone("")
	if p != nil && p.hosts[canonical(host)] {
		return nil
	}
	for _, a := range append(embedded(addr), addr) {
		if p.allows(a) {
			continue
		}
		if a.IsLoopback() || a.IsUnspecified() {
			return ErrLocalhost
		}
		if !public(a) {
			return ErrLocalNetwork
		}
	}
	return nil
}

// CheckHost returns why the host of a URL may not be connected to, as far as that can be said without resolving it, or nil.
func (p *Policy) CheckHost(host string) error {
	name := canonical(host)
	if addr, err := netip.ParseAddr(name); err == nil {
		return p.Check(host, addr)
	}
	if addr := numeric(name); addr.IsValid() {
		return p.Check(host, addr)
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return p.Check(host, netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	}
	return nil
}

// numeric reads the older forms of an address, such as 127.1 and 0x7f000001, which resolvers take as well.
func numeric(host string) netip.Addr {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}
	}
	var value uint64
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 0, 64) // a leading zero is for base 8
		if err != nil || !digits(part) {
			return netip.Addr{}
		}
		width := 8
		if i == len(parts)-1 {
			width = 8 * (5 - len(parts))
		}
		if n >= 1<<width {
			return netip.Addr{}
		}
		value = value<<width | n
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)})
}

func digits(text string) bool {
	if hex, ok := strings.CutPrefix(text, "0x"); ok {
		return hex != "" && strings.Trim(hex, "0123456789abcdef") == ""
	}
	return text != "" && strings.Trim(text, "0123456789") == ""
}

func (p *Policy) allows(addr netip.Addr) bool {
	if p == nil {
		return false
	}
	for _, n := range p.networks {
		if n.Contains(addr) {
			return true
		}
	}
	return false
}

// closed are networks with a use of their own, next to those that package netip knows.
var closed = prefixes(
	"0.0.0.0/8",        // this network
	"100.64.0.0/10",    // between a provider and its customers; metadata of a cloud
	"168.63.129.16/32", // metadata of a cloud, at a public address
	"192.0.0.0/24",     // protocol assignments; metadata of a cloud
	"192.0.2.0/24",     // documentation
	"192.88.99.0/24",   // relays of 6to4
	"198.18.0.0/15",    // benchmarks
	"198.51.100.0/24",  // documentation
	"203.0.113.0/24",   // documentation
	"240.0.0.0/4",      // reserved, and broadcast
	"::/96",            // compatible with IPv4, out of use
	"64:ff9b:1::/48",   // translation within a network
	"100::/64",         // discarded
	"2001::/23",        // protocol assignments, Teredo among them
	"2001:db8::/32",    // documentation
	"3fff::/20",        // documentation
	"5f00::/16",        // segment routing
	"fec0::/10",        // site-local, out of use
)

func prefixes(all ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, 0, len(all))
	for _, text := range all {
		parsed = append(parsed, netip.MustParsePrefix(text))
	}
	return parsed
}

func public(addr netip.Addr) bool {
	if !addr.IsGlobalUnicast() || addr.IsPrivate() {
		return false
	}
	for _, n := range closed {
		if n.Contains(addr) {
			return false
		}
	}
	return true
}

// embedded returns the IPv4 address to which packets for an IPv6 address are forwarded, if there is one: NAT64 and 6to4.
func embedded(addr netip.Addr) []netip.Addr {
	if !addr.Is6() {
		return nil
	}
	b := addr.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(addr):
		return []netip.Addr{netip.AddrFrom4([4]byte(b[12:16]))}
	case netip.MustParsePrefix("2002::/16").Contains(addr):
		return []netip.Addr{netip.AddrFrom4([4]byte(b[2:6]))}
	default:
		return nil
	}
}

// refused reports whether an error says that a target may not be reached.
func refused(err error) bool {
	return errors.Is(err, ErrLocalhost) || errors.Is(err, ErrLocalNetwork) || errors.Is(err, ErrPort)
}

// checkSocket returns why a socket may not connect to an address and port, or nil. host is what the address was resolved from.
func (p *Policy) checkSocket(host, address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if err := p.Check(host, to.Addr()); err != nil {
		return err
	}
	return p.checkPort(host, to.Addr(), to.Port())
}
