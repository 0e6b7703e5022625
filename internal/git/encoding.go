package git

import (
	"strings"
	"unicode/utf8"

	// They have the tables of the encodings that commits are in, and know their names: the registered ones, and those in use.
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
)

// registered turns names of encodings that only Git knows into those of the registry.
var registered = strings.NewReplacer("iso8859", "iso-8859", "latin-1", "latin1")

// findEncoding returns the encoding that a commit names. It is nil for one that is unknown, or in which a commit is not to be read:
// Git looks for headers, names and addresses in ASCII.
func findEncoding(name string) encoding.Encoding {
	name = registered.Replace(strings.ToLower(name))
	found, _ := ianaindex.IANA.Encoding(name)
	if found == nil {
		found, _ = htmlindex.Get(name)
	}
	if found == nil {
		return nil
	}
	if ascii, err := found.NewDecoder().String("<>"); err != nil || ascii != "<>" {
		return nil
	}
	return found
}

// decode turns texts that are in an encoding into UTF-8. As Git does, it leaves them all alone where one of them is not in it, or
// there is no such encoding.
func decode(name string, texts ...*string) {
	from := findEncoding(name)
	if from == nil {
		return
	}
	decoded := make([]string, len(texts))
	for i, text := range texts {
		var err error
		if decoded[i], err = from.NewDecoder().String(*text); err != nil || strings.ContainsRune(decoded[i], utf8.RuneError) {
			return
		}
	}
	for i, text := range texts {
		*text = decoded[i]
	}
}
