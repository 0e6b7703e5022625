package reaction

import (
	"slices"

	"github.com/yuin/goldmark-emoji/definition" // the names of emoji with their aliases, as pure data, beside the Markdown of the forge
)

// Emoji returns the name under which reactions with an emoji are stored, for any of its names. known is false if no emoji has this name.
func Emoji(name string) (canonical string, known bool) {
	e, known := definition.Github().Get(name)
	if !known {
		return "", false
	}
	names := e.ShortNames
	// Clients know +1 and -1 as aliases.
	if i := slices.IndexFunc(names, func(n string) bool { return n[0] != '+' && n[0] != '-' }); i > 0 {
		names = names[i:]
	}
	return names[0], true
}
