package object

import (
	"testing"
	"time"
	"unicode/utf8"
)

func FuzzParseTree(f *testing.F) {
	f.Add([]byte("100644 a\x0012345678901234567890" + "40000 dir\x0012345678901234567890"))
	f.Add([]byte("160000 \x00"))
	f.Fuzz(func(t *testing.T, content []byte) {
		_ = ParseTree(content, 20, func(e TreeEntry) error {
			if len(e.Mode) != 6 || len(e.ID) != 40 || e.Type == "" || e.Path == "" {
				t.Errorf("%q gives %+v", content, e)
			}
			if _, err := FindEntry(content, e.Path, 20); err != nil {
				t.Errorf("%q has no %q: %v", content, e.Path, err)
			}
			return nil
		})
	})
}

func FuzzParseCommit(f *testing.F) {
	f.Add([]byte("tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor A <a@b> 1 +0100\ncommitter B <> -1 x\n\ntitle\n\nbody"))
	f.Add([]byte("tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor >< 99999999999999999999 +9999\n\n\xff"))
	f.Add([]byte("tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor A <a@b> 999999999999 +0000\n\n"))
	f.Add([]byte("tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor A <a@b> 253402214399 +2399\n\n"))
	for _, encoding := range []string{"ISO-8859-1", "Shift_JIS", "ISO-2022-JP", "GB18030", "UTF-16", "x"} {
		f.Add([]byte("tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor J\xf6 <a@b> 1 +0100\nencoding " + encoding + "\n\n\x1b$Bx\x81\x30"))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		c, err := ParseCommit("id", content)
		if err != nil {
			return
		}
		for _, text := range []string{c.Message, c.Title(), c.Author.Name, c.Author.Email, c.Committer.Name} {
			if !utf8.ValidString(text) {
				t.Errorf("%q gives %q", content, text)
			}
		}
		for _, when := range []time.Time{c.Author.When, c.Author.When.UTC()} {
			if _, err := when.MarshalJSON(); err != nil {
				t.Errorf("%q: %v", content, err)
			}
		}
	})
}
