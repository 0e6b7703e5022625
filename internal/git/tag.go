package git

import (
	"bytes"
	"cmp"
	"context"
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

// ReadTag returns the annotated tag with an id. The error is ErrObjectNotFound if there is none, and ErrFileTooLarge if it has more than 4
// MiB. Callers must not change the tag.
func (r *Repository) ReadTag(ctx context.Context, id string) (*Tag, error) {
	if err := checkIDs(id); err != nil {
		return nil, err
	}
	size := func(t *Tag) int { return len(t.Message) + len(t.Name) + len(t.Type) + 400 }
	return recall(ctx, r, "reading a tag", id, size, func(ctx context.Context) (*Tag, error) {
		o, content, err := r.Read(ctx, id, maxCommit)
		if err != nil {
			return nil, err
		}
		if o.Type != "tag" {
			return nil, fmt.Errorf("%s is a %s: %w", id, o.Type, ErrObjectNotFound)
		}
		return parseTag(id, content)
	})
}

func parseTag(id string, content []byte) (*Tag, error) {
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
	if !IsObjectID(t.Object) {
		return nil, errors.New("a tag is damaged: it has no object")
	}
	t.Message = strings.ToValidUTF8(string(message), "\uFFFD")
	return t, nil
}

// WriteTag writes an annotated tag and returns its id. It ignores t.ID. No ref names the tag yet.
func (r *Repository) WriteTag(ctx context.Context, t Tag) (id string, err error) {
	if err := CheckRefName("refs/tags/" + t.Name); err != nil {
		return "", err
	}
	if err := checkIDs(t.Object); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, updateTimeout, fmt.Errorf("writing a tag took longer than %s", updateTimeout))
	defer cancel()
	if err := r.checkRoom(ctx); err != nil {
		return "", err
	}
	c := r.command("mktag")
	c.stdin = strings.NewReader(fmt.Sprintf("object %s\ntype %s\ntag %s\ntagger %s\n\n%s\n",
		t.Object, t.Type, t.Name, t.Tagger, strings.TrimRight(t.Message, "\n")))
	out, err := r.output(ctx, 1024, c)
	return strings.TrimSpace(string(out)), err
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
