package object

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// Tag is a parsed annotated tag.
type Tag struct {
	ID string
	// Object is the id of the tagged object, and Type its type.
	Object, Type string
	// Name is the name of the tag, without "refs/tags/".
	Name string
	// Tagger is the zero Signature in some old tags.
	Tagger Signature
	// Message is in UTF-8; invalid characters are replaced.
	Message string
}

// ParseTag parses the content of an annotated tag.
func ParseTag(id string, content []byte) (*Tag, error) {
	t := &Tag{ID: id}
	headers, message, _ := bytes.Cut(content, []byte("\n\n"))
	for line := range bytes.Lines(headers) {
		name, value, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		switch name { // Git uses the first of each
		case "object":
			t.Object = cmp.Or(t.Object, value)
		case "type":
			t.Type = cmp.Or(t.Type, value)
		case "tag":
			t.Name = strings.ToValidUTF8(value, "\uFFFD")
		case "tagger":
			t.Tagger = parseSignature(value)
		}
	}
	if !IsID(t.Object) {
		return nil, errors.New("a tag is damaged: it has no object")
	}
	t.Message = strings.ToValidUTF8(string(message), "\uFFFD")
	return t, nil
}

// String returns the signature in Git's format, without characters that Git does not allow in names and addresses.
func (s Signature) String() string {
	return fmt.Sprintf("%s <%s> %d %s", plain(s.Name), plain(s.Email), s.When.Unix(), s.When.Format("-0700"))
}

// plain removes characters that names and addresses cannot contain, and characters at their ends that Git removes.
func plain(text string) string {
	text = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || c == '<' || c == '>' {
			return -1
		}
		return c
	}, text)
	return strings.Trim(text, " .,:;\"\\'")
}
