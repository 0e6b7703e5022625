package ratelimit

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ParseProxies reads networks such as 10.0.0.0/8, and single addresses.
func ParseProxies(texts []string) ([]netip.Prefix, error) {
	all := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		if address, err := netip.ParseAddr(text); err == nil {
			all = append(all, netip.PrefixFrom(address, address.BitLen()))
			continue
		}
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is neither an address nor a network such as 10.0.0.0/8", text)
		}
		all = append(all, network.Masked())
	}
	return all, nil
}

// Client returns the address of the sender of a request: the address of the connection or, behind trusted proxies, the last address in
// X-Forwarded-For that does not belong to one of them. Earlier addresses can be forged.
func (l *Limiter) Client(r *http.Request) netip.Addr {
	at, _ := parseAddress(r.RemoteAddr)
	if len(l.proxies) == 0 {
		return at
	}
	forwarded := r.Header["X-Forwarded-For"]
	for i := len(forwarded) - 1; i >= 0; i-- {
		rest, more := forwarded[i], true
		for more && Trusts(l.proxies, at) {
			comma := strings.LastIndexByte(rest, ',')
			next, ok := parseAddress(strings.TrimSpace(rest[comma+1:]))
			if !ok {
				return at
			}
			at, rest, more = next, rest[:max(comma, 0)], comma >= 0
		}
	}
	return at
}

// Trusts reports whether an address is in one of the networks of proxies.
func Trusts(proxies []netip.Prefix, a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return slices.ContainsFunc(proxies, func(network netip.Prefix) bool { return network.Contains(a) })
}

// parseAddress reads an address, with a port or without.
func parseAddress(text string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(text)
	if err != nil {
		with, err := netip.ParseAddrPort(text)
		if err != nil {
			return netip.Addr{}, false
		}
		a = with.Addr()
	}
	return a.Unmap().WithZone(""), true
}
