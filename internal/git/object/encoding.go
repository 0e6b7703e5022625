package object

import (
	"strings"
	"unicode/utf8"

	// These have the tables of the encodings of commits, and know their registered and common names.
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
)

// registered converts names of encodings that only Git knows to registered names.
var registered = strings.NewReplacer("iso8859", "iso-8859", "latin-1", "latin1")

// findEncoding returns the encoding that a commit names. It is nil for an unknown encoding, and for encodings that are not supersets of
// ASCII, because Git looks for headers, names and addresses in ASCII.
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

// decode converts texts in an encoding to UTF-8. Like Git, it leaves all of them unchanged if one of them is invalid in that encoding, or
// if the encoding is unknown.
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
