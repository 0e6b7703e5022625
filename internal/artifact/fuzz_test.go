package artifact

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"testing"
)

// FuzzFind checks that Find reads only files within an archive, with the same content as the zip library of Go.
func FuzzFind(f *testing.F) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, header := range []zip.FileHeader{{Name: "plain.txt"}, {Name: "dir/"}, {Name: "dir/deflated", Method: zip.Deflate}, {Name: "../evil"}, {Name: "plain.txt"}} {
		into, err := w.CreateHeader(&header)
		if err == nil && header.Name != "dir/" {
			_, err = into.Write([]byte("content of " + header.Name))
		}
		if err != nil {
			f.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{"plain.txt", "dir/deflated", "dir/", "dir", "../evil", "dir/../plain.txt", "/plain.txt", ""} {
		f.Add(b.Bytes(), name)
	}
	f.Add(b.Bytes()[:b.Len()-10], "plain.txt")
	f.Fuzz(func(t *testing.T, archive []byte, name string) {
		found, err := find(bytes.NewReader(archive), int64(len(archive)), name)
		switch {
		case errors.Is(err, ErrNoFile), errors.As(err, new(Unreadable)):
			return
		case err != nil:
			t.Fatalf("%q: %v", name, err)
		case found.offset < 0 || found.packed < 0 || found.size < 0 || found.packed > int64(len(archive))-found.offset:
			t.Fatalf("%q is at %+v of %d bytes", name, found, len(archive))
		}
		var content bytes.Buffer
		err = found.unpack(&content, io.NewSectionReader(bytes.NewReader(archive), found.offset, found.packed))
		if int64(content.Len()) > found.size {
			t.Errorf("%q has %d bytes, more than %d", name, content.Len(), found.size)
		}
		// The library also refuses what only says again how large a file is.
		if want, unread := reference(t, archive, name); err == nil && unread == nil && !bytes.Equal(content.Bytes(), want) {
			t.Errorf("%q has the content %q, want %q", name, content.Bytes(), want)
		}
	})
}

// reference reads the first file of a name with the zip library.
func reference(t *testing.T, archive []byte, name string) ([]byte, error) {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, err
	}
	for _, file := range r.File {
		if file.Name == name {
			content, err := file.Open()
			if err != nil {
				return nil, err
			}
			return io.ReadAll(content)
		}
	}
	t.Errorf("the archive has no file %q", name)
	return nil, nil
}
