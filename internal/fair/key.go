package fair

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"net/netip"
	"strconv"
	"strings"
)

// Key identifies a caller in limits. The zero Key is Forgeplane itself, which has the same share as any other caller.
type Key struct {
	kind    kind
	user    int64
	name    string
	address netip.Addr
	// unsigned says that an identity has the limits of anonymous callers.
	unsigned bool
}

type kind byte

const (
	self kind = iota
	user
	identity
	address
	namespace
	bots
	runner
)

// User returns the key of a user with a REST id, for all tokens and identities of the user.
func User(id int64) Key { return Key{kind: user, user: id} }

// Identity returns the key of a Kubernetes identity that acts without a user. All service accounts of a namespace share a key, because the
// owner of the namespace can create any number of them.
func Identity(name string) Key {
	const prefix = "system:serviceaccount:"
	if account, ok := strings.CutPrefix(name, prefix); ok {
		if namespace, _, ok := strings.Cut(account, ":"); ok {
			name = prefix + namespace + ":"
		}
	}
	return Key{kind: identity, name: name}
}

// Unsigned returns the key of an identity with the limits of anonymous callers.
func (k Key) Unsigned() Key {
	k.unsigned = true
	return k
}

// Namespace returns the key of a namespace, for background work that its objects cause.
func Namespace(name string) Key { return Key{kind: namespace, name: name} }

// Bots returns the key of all bots of the project or group with a UID, because anyone who can create one of them can create many.
func Bots(target string) Key { return Key{kind: bots, name: target} }

// Runner returns the key of the runner with an id.
func Runner(id int64) Key { return Key{kind: runner, user: id} }

// Address returns the key of an anonymous caller. An IPv6 network of 64 bits counts as one address, because its users can choose any
// address in it.
func Address(a netip.Addr) Key {
	const bits = 64
	a = a.Unmap().WithZone("")
	if a.Is6() {
		if p, err := a.Prefix(bits); err == nil {
			a = p.Addr()
		}
	}
	return Key{kind: address, address: a}
}

// Anonymous reports whether the key belongs to an anonymous caller.
func (k Key) Anonymous() bool { return k.kind == address || k.unsigned }

// Hash writes the key to a hash. Different keys write different data.
func (k Key) Hash(h *maphash.Hash) {
	var bytes [25]byte
	bytes[0] = byte(k.kind)
	binary.NativeEndian.PutUint64(bytes[1:], uint64(k.user))
	if k.address.IsValid() {
		a := k.address.As16()
		copy(bytes[9:], a[:])
	}
	_, _ = h.Write(bytes[:])
	_, _ = h.WriteString(k.name)
	end := byte(0)
	if k.unsigned {
		end = 1
	}
	_ = h.WriteByte(end)
}

type contextKey struct{}

// With returns a context for work on behalf of a caller.
func With(ctx context.Context, k Key) context.Context { return context.WithValue(ctx, contextKey{}, k) }

type noWaitKey struct{}

// NoWait returns a context in which callers do not wait for slots of their own share, but get Busy at once. Use it for work that other
// callers need as well.
func NoWait(ctx context.Context) context.Context { return context.WithValue(ctx, noWaitKey{}, true) }

// From returns the caller that the work of ctx counts for, or the zero Key if the caller is unknown.
func From(ctx context.Context) Key {
	k, _ := ctx.Value(contextKey{}).(Key)
	return k
}

// words are the names of the kinds of keys in String.
var words = map[kind]string{self: "self", user: "user", identity: "identity", address: "address", namespace: "namespace", bots: "bots", runner: "runner"}

// String returns the key as text, which ParseKey reads.
func (k Key) String() string {
	value := k.name
	switch k.kind {
	case user, runner:
		value = strconv.FormatInt(k.user, 10)
	case address:
		value = k.address.String()
	}
	if k.unsigned {
		return "unsigned " + words[k.kind] + ":" + value
	}
	return words[k.kind] + ":" + value
}

// ParseKey parses the result of String.
func ParseKey(text string) (k Key, err error) {
	rest, unsigned := strings.CutPrefix(text, "unsigned ")
	word, value, _ := strings.Cut(rest, ":")
	for kind, w := range words {
		if w == word {
			k = Key{kind: kind, name: value, unsigned: unsigned}
		}
	}
	switch k.kind {
	case user, runner:
		k.name = ""
		k.user, err = strconv.ParseInt(value, 10, 64)
	case address:
		k.name = ""
		k.address, err = netip.ParseAddr(value)
	}
	if err != nil || k.String() != text || k.kind == self && text != (Key{}).String() {
		return Key{}, fmt.Errorf("%q is not the text of a caller", text)
	}
	return k, nil
}
