package endpoint

import (
	"encoding/base64"
	"encoding/json"
	"math/bits"
	"reflect"
	"strings"
	"sync"
	"unicode/utf8"
)

// sizes estimates how many bytes values have in JSON, and remembers the estimates by type.
type sizes struct{ known sync.Map }

// jsonSizes has the types of all answers.
var jsonSizes sizes

// sizer estimates the maximum size of values of a type in JSON, in bytes: fixed, plus the result of vary unless that is nil.
type sizer struct {
	fixed int64
	vary  func(v reflect.Value) int64
}

func (s sizer) of(v reflect.Value) int64 {
	if s.vary == nil {
		return s.fixed
	}
	return s.fixed + s.vary(v)
}

const (
	// longest is the maximum number of bytes that one byte becomes, as in "\u0001".
	longest = 6
	// plain is the maximum length of numbers, true, null and times, including the separator.
	plain = 40
)

// of returns the maximum number of bytes that a value has in JSON.
func (s *sizes) of(value any) int64 {
	v := reflect.ValueOf(value)
	if !v.IsValid() {
		return plain
	}
	return s.sizer(v.Type()).of(v)
}

// sizer returns the sizer of a type.
func (s *sizes) sizer(t reflect.Type) sizer {
	if known, ok := s.known.Load(t); ok {
		return known.(sizer)
	}
	return (&compiler{s, map[reflect.Type]bool{}}).sizer(t)
}

// compiler builds sizers. It keeps track of the enclosing types.
type compiler struct {
	sizes  *sizes
	within map[reflect.Type]bool
}

func (c *compiler) sizer(t reflect.Type) sizer {
	if known, ok := c.sizes.known.Load(t); ok {
		return known.(sizer)
	}
	if c.within[t] {
		return sizer{vary: func(v reflect.Value) int64 { return c.sizes.sizer(t).of(v) }}
	}
	c.within[t] = true
	made := c.compile(t)
	delete(c.within, t)
	c.sizes.known.Store(t, made)
	return made
}

var rawType = reflect.TypeFor[json.RawMessage]()

func (c *compiler) compile(t reflect.Type) sizer {
	switch t.Kind() {
	case reflect.String:
		return sizer{plain, textSize}
	case reflect.Interface:
		return sizer{plain, func(v reflect.Value) int64 {
			if v.IsNil() {
				return 0
			}
			return c.sizes.sizer(v.Elem().Type()).of(v.Elem())
		}}
	case reflect.Pointer:
		to := c.sizer(t.Elem())
		return sizer{plain, func(v reflect.Value) int64 {
			if v.IsNil() {
				return 0
			}
			return to.of(v.Elem())
		}}
	case reflect.Slice, reflect.Array:
		return c.compileList(t)
	case reflect.Map:
		key, element := c.sizer(t.Key()), c.sizer(t.Elem())
		return sizer{plain, func(v reflect.Value) (bytes int64) {
			for all := v.MapRange(); all.Next(); {
				bytes += key.of(all.Key()) + element.of(all.Value())
			}
			return bytes
		}}
	case reflect.Struct:
		return c.compileStruct(t)
	default:
		return sizer{fixed: plain}
	}
}

func (c *compiler) compileList(t reflect.Type) sizer {
	if t == rawType {
		return sizer{plain, func(v reflect.Value) int64 { return int64(v.Len()) }}
	}
	if t.Elem().Kind() == reflect.Uint8 {
		return sizer{plain, func(v reflect.Value) int64 { return int64(base64.StdEncoding.EncodedLen(v.Len())) }}
	}
	element := c.sizer(t.Elem())
	return sizer{plain, func(v reflect.Value) int64 {
		bytes := int64(v.Len()) * (element.fixed + 1)
		if element.vary != nil {
			for i := range v.Len() {
				bytes += element.vary(v.Index(i))
			}
		}
		return bytes
	}}
}

func (c *compiler) compileStruct(t reflect.Type) sizer {
	if t == timeType {
		return sizer{fixed: plain}
	}
	type field struct {
		index int
		vary  func(reflect.Value) int64
	}
	var vary []field
	fixed := int64(plain)
	// A type with its own encoding can show fields that would otherwise be hidden.
	own := t.Implements(marshalerType) || t.Implements(textType)
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !own && (name == "-" || !f.IsExported() && !f.Anonymous) {
			continue
		}
		size := c.sizer(f.Type)
		fixed += size.fixed + int64(max(len(name), len(f.Name))+len(`"":,`))
		if size.vary != nil {
			vary = append(vary, field{i, size.vary})
		}
	}
	if len(vary) == 0 {
		return sizer{fixed: fixed}
	}
	return sizer{fixed, func(v reflect.Value) (bytes int64) {
		for _, f := range vary {
			bytes += f.vary(v.Field(f.index))
		}
		return bytes
	}}
}

// textSize returns the number of bytes of a text between its quotes.
func textSize(v reflect.Value) int64 {
	text := v.String()
	if plainText(text) {
		return int64(len(text))
	}
	bytes := len(text) + strings.Count(text, `"`) + strings.Count(text, `\`)
	control, ascii := controls(text)
	if control > 0 {
		short := strings.Count(text, "\n") + strings.Count(text, "\r") + strings.Count(text, "\t")
		bytes += short + (longest-1)*(control-short)
	}
	switch {
	case ascii:
	case utf8.ValidString(text):
		const separator = len("\u2028")
		bytes += (longest - separator) * (strings.Count(text, "\u2028") + strings.Count(text, "\u2029"))
	default:
		bytes = invalidSize(text)
	}
	return int64(bytes)
}

// invalidSize returns the maximum number of bytes of a text that is not valid UTF-8.
func invalidSize(text string) (bytes int) {
	for _, r := range text {
		switch {
		case r == '"', r == '\\', r == '\n', r == '\r', r == '\t':
			bytes += 2
		case r < ' ', r == utf8.RuneError, r == '\u2028', r == '\u2029':
			bytes += longest
		default:
			bytes += utf8.RuneLen(r)
		}
	}
	return bytes
}

const (
	ones  = 0x0101010101010101 // n*ones is eight bytes, each of them n
	highs = 0x80 * ones
)

// plainText reports whether a text is the same in JSON: ASCII without control characters, quotes and backslashes.
func plainText(text string) bool {
	for ; len(text) >= 8; text = text[8:] {
		eight := load(text)
		// A difference sets the highest bit of the first byte that is a control character, a quote or a backslash. The bytes after it can be
		// wrong, but do not matter.
		control, quote, backslash := eight-' '*ones, (eight^'"'*ones)-ones, (eight^'\\'*ones)-ones
		if (eight|control|quote|backslash)&highs != 0 {
			return false
		}
	}
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// controls counts the control characters in a text, and reports whether the text is ASCII. It processes eight bytes at a time, because an
// answer can have millions.
func controls(text string) (count int, ascii bool) {
	var all uint64
	for ; len(text) >= 8; text = text[8:] {
		eight := load(text)
		all |= eight
		// In the sum, the highest bit is set for each byte that is a space or above.
		count += bits.OnesCount64(^(eight&^highs + 0x60*ones | eight) & highs)
	}
	for i := range len(text) {
		all |= uint64(text[i])
		if text[i] < ' ' {
			count++
		}
	}
	return count, all&highs == 0
}

// load returns the first eight bytes of a text.
func load(text string) uint64 {
	return uint64(text[0]) | uint64(text[1])<<8 | uint64(text[2])<<16 | uint64(text[3])<<24 |
		uint64(text[4])<<32 | uint64(text[5])<<40 | uint64(text[6])<<48 | uint64(text[7])<<56
}
