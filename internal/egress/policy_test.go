package egress_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/forgeplane/forgeplane/internal/egress"
)

func TestCheck_refusesLocalAddresses(t *testing.T) {
	none := &egress.Policy{}
	for address, want := range map[string]error{
		"1.1.1.1": nil, "93.184.216.34": nil, "2606:4700::1111": nil, "64:ff9b::101:101": nil, "2002:101:101::1": nil,
		"127.0.0.1": egress.ErrLocalhost, "127.8.8.8": egress.ErrLocalhost, "::1": egress.ErrLocalhost, "0.0.0.0": egress.ErrLocalhost,
		"::": egress.ErrLocalhost, "::ffff:127.0.0.1": egress.ErrLocalhost, "64:ff9b::7f00:1": egress.ErrLocalhost, "2002:7f00:1::": egress.ErrLocalhost,
		"10.1.2.3": egress.ErrLocalNetwork, "172.16.0.1": egress.ErrLocalNetwork, "192.168.1.1": egress.ErrLocalNetwork,
		"::ffff:10.1.2.3": egress.ErrLocalNetwork, "64:ff9b::a01:203": egress.ErrLocalNetwork, "64:ff9b:1::a01:203": egress.ErrLocalNetwork,
		"169.254.169.254": egress.ErrLocalNetwork, "100.100.100.200": egress.ErrLocalNetwork, "168.63.129.16": egress.ErrLocalNetwork,
		"192.0.0.192": egress.ErrLocalNetwork, "fd00:ec2::254": egress.ErrLocalNetwork, "fe80::1": egress.ErrLocalNetwork, "fe80::1%eth0": egress.ErrLocalNetwork,
		"224.0.0.1": egress.ErrLocalNetwork, "ff02::1": egress.ErrLocalNetwork, "255.255.255.255": egress.ErrLocalNetwork, "0.1.2.3": egress.ErrLocalNetwork,
		"240.0.0.1": egress.ErrLocalNetwork, "198.18.0.1": egress.ErrLocalNetwork, "2001:db8::1": egress.ErrLocalNetwork, "::7f00:1": egress.ErrLocalNetwork,
		"2001:0:4136:e378::": egress.ErrLocalNetwork, "fec0::1": egress.ErrLocalNetwork,
	} {
		if err := none.Check("forge.example", netip.MustParseAddr(address)); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: got %v, want %v", address, err, want)
		}
	}
}

func TestParse_allowsListedHostsAndNetworks(t *testing.T) {
	p, err := egress.Parse([]string{"10.1.0.0/16", "127.0.0.1", "::1", "Git.Internal."})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		host, address string
		allowed       bool
	}{
		{"a.example", "10.1.2.3", true}, {"a.example", "::ffff:10.1.2.3", true}, {"a.example", "64:ff9b::a01:203", true},
		{"a.example", "10.2.0.1", false}, {"a.example", "127.0.0.1", true}, {"a.example", "127.0.0.2", false}, {"a.example", "::1", true},
		{"git.internal", "192.168.1.1", true}, {"GIT.internal.", "127.0.0.2", true}, {"x.git.internal", "192.168.1.1", false},
	} {
		if err := p.Check(c.host, netip.MustParseAddr(c.address)); (err == nil) != c.allowed {
			t.Errorf("%s at %s: %v", c.host, c.address, err)
		}
	}
	for _, bad := range []string{"", "http://x", "10.0.0.0/33", "*", "a b", "host:80"} {
		if _, err := egress.Parse([]string{bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestCheckSocket_limitsPorts(t *testing.T) {
	named, err := egress.Parse([]string{"10.0.0.0/8", "git.internal"})
	if err != nil {
		t.Fatal(err)
	}
	other, err := named.AtPorts([]int{443, 8443})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		policy        *egress.Policy
		host, address string
		want          error
	}{
		{nil, "a.example", "1.1.1.1:443", nil},
		{nil, "a.example", "1.1.1.1:80", nil},
		{nil, "a.example", "[2606:4700::1111]:443", nil},
		{nil, "a.example", "1.1.1.1:22", nil},
		{nil, "a.example", "1.1.1.1:25", egress.ErrPort},
		{nil, "a.example", "[2606:4700::1111]:8443", egress.ErrPort},
		{nil, "a.example", "127.0.0.1:443", egress.ErrLocalhost},
		{named, "a.example", "1.1.1.1:8443", egress.ErrPort},
		{named, "a.example", "10.1.2.3:3000", nil},
		{named, "a.example", "[::ffff:10.1.2.3]:3000", nil},
		{named, "git.internal", "1.1.1.1:3000", nil},
		{other, "a.example", "1.1.1.1:8443", nil},
		{other, "a.example", "1.1.1.1:80", egress.ErrPort},
		{other, "a.example", "10.1.2.3:80", nil},
	} {
		if err := c.policy.CheckSocket(c.host, c.address); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s at %s: got %v, want %v", c.host, c.address, err, c.want)
		}
	}
	const want = "port 25: requests to this port are not allowed: use one of 443, 8443, or ask the operator for --allow-target-ports"
	if err := other.CheckSocket("a.example", "1.1.1.1:25"); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	for _, bad := range [][]int{nil, {0}, {-1}, {443, 65536}} {
		if _, err := named.AtPorts(bad); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}

func TestCheckHost_refusesLocalHosts(t *testing.T) {
	none := (*egress.Policy)(nil)
	for host, want := range map[string]error{
		"forge.example": nil, "1.1.1.1": nil, "1.1": nil, "1234567.example": nil, "08.1": nil, "256.1.1.1": nil, "1.2.3.4.5": nil,
		"localhost": egress.ErrLocalhost, "LOCALHOST.": egress.ErrLocalhost, "x.localhost": egress.ErrLocalhost,
		"127.0.0.1": egress.ErrLocalhost, "127.1": egress.ErrLocalhost, "2130706433": egress.ErrLocalhost, "0x7f000001": egress.ErrLocalhost,
		"0177.0.0.1": egress.ErrLocalhost, "0x7F.1": egress.ErrLocalhost, "::1": egress.ErrLocalhost, "0": egress.ErrLocalhost,
		"10.0.0.1": egress.ErrLocalNetwork, "fe80::1%25eth0": egress.ErrLocalNetwork,
	} {
		if err := none.CheckHost(host); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: got %v, want %v", host, err, want)
		}
	}
}

func TestCanonical(t *testing.T) {
	for host, want := range map[string]string{
		"a.example": "a.example", "A.Example": "a.example", "a.example.": "a.example", "A.EXAMPLE.": "a.example",
		"192.0.2.1": "192.0.2.1", "192.0.2.1.": "192.0.2.1", "0xc0000201": "192.0.2.1", "192.0.513": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1",
		"2001:DB8:0:0::1": "2001:db8::1", "fe80::1%25eth0": "fe80::1", "fe80::1%eth0": "fe80::1", "": "",
	} {
		if got := egress.Canonical(host); got != want {
			t.Errorf("%s: got %s, want %s", host, got, want)
		}
	}
}
