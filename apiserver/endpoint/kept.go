package endpoint

import (
	"reflect"
	"sync/atomic"
)

// Kept is an answer that a handler remembers. It is encoded for the first request that it answers, and its JSON is sent to all others.
type Kept[T any] struct {
	size  int64
	state atomic.Pointer[keptState[T]]
}

// keptState has the body, or its JSON once that is known.
type keptState[T any] struct {
	body *T
	text []byte
}

// Keep returns an answer for many requests. Callers must not change the body afterwards.
func Keep[T any](body T) *Kept[T] {
	k := &Kept[T]{size: jsonSizes.of(&body)}
	k.state.Store(&keptState[T]{body: &body})
	return k
}

// Size returns the maximum size of the answer in JSON, in bytes.
func (k *Kept[T]) Size() int64 { return k.size }

func (k *Kept[T]) load() (body any, text []byte) {
	s := k.state.Load()
	return s.body, s.text
}

func (k *Kept[T]) encoded(text []byte) { k.state.Store(&keptState[T]{text: text}) }

func (*Kept[T]) bodyType() reflect.Type { return reflect.TypeFor[T]() }

// anyKept is any Kept.
type anyKept interface {
	Size() int64
	// load returns the body, or else its JSON.
	load() (body any, text []byte)
	// encoded replaces the body with its JSON.
	encoded(text []byte)
}
