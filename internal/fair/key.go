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

// Key is the caller that something is counted for. The zero Key is Forgeplane itself, for work that it does on behalf
// of nobody: it has no more than any other caller.
type Key struct {
	kind    kind
	user    int64
	name    string
	address netip.Addr
	// unsigned says that an identity has no more than callers who have not signed in.
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
)

// User is the key of a user, by the REST id, whichever token or identity the user calls with.
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

// Unsigned is the key of an identity that is nobody's who has signed in, and has no more than they have.
func (k Key) Unsigned() Key {
	k.unsigned = true
	return k
}

// Namespace is the key of a namespace, for what its objects have Forgeplane do while nobody waits for it.
func Namespace(name string) Key { return Key{kind: namespace, name: name} }

// Bots is the key of all bots of the project or group with a UID, because anyone who can create one of them can create many.
func Bots(target string) Key { return Key{kind: bots, name: target} }

// Address is the key of a caller who has not signed in. The 64 bits of an IPv6 network count as one address, because everybody
// there has as many as they like.
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

// Anonymous reports whether the key belongs to a caller who has not signed in.
func (k Key) Anonymous() bool { return k.kind == address || k.unsigned }

// Hash writes the key to a hash, so that no two keys write the same.
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

// With returns a context for work that is done for a caller.
func With(ctx context.Context, k Key) context.Context { return context.WithValue(ctx, contextKey{}, k) }

type promptKey struct{}

// Promptly returns a context in which callers never wait for slots that they themselves hold or wait for; they get Busy at once. Use it for
// work that other callers need as well.
func Promptly(ctx context.Context) context.Context { return context.WithValue(ctx, promptKey{}, true) }

// From returns the caller that the work of ctx counts for, or the zero Key if the caller is unknown.
func From(ctx context.Context) Key {
	k, _ := ctx.Value(contextKey{}).(Key)
	return k
}

// words are how String names the kinds of keys.
var words = map[kind]string{self: "self", user: "user", identity: "identity", address: "address", namespace: "namespace", bots: "bots"}

// String returns the key as text, which ParseKey reads.
func (k Key) String() string {
	value := k.name
	switch k.kind {
	case user:
		value = strconv.FormatInt(k.user, 10)
	case address:
		value = k.address.String()
	}
	if k.unsigned {
		return "unsigned " + words[k.kind] + ":" + value
	}
	return words[k.kind] + ":" + value
}

// ParseKey returns the key whose String a text is.
func ParseKey(text string) (k Key, err error) {
	rest, unsigned := strings.CutPrefix(text, "unsigned ")
	word, value, _ := strings.Cut(rest, ":")
	for kind, w := range words {
		if w == word {
			k = Key{kind: kind, name: value, unsigned: unsigned}
		}
	}
	switch k.kind {
	case user:
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
