package blob_test

import (
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	_ "gocloud.dev/blob/memblob" // the driver of mem:// URLs
	_ "gocloud.dev/blob/s3blob"  // the driver of s3:// URLs

	"github.com/forgeplane/forgeplane/internal/blob"
	"github.com/forgeplane/forgeplane/test/tools"
)

// onEach runs a test on each store.
func onEach(t *testing.T, test func(t *testing.T, s *blob.Store)) {
	for name, place := range map[string]func(*testing.T) string{
		"directory": func(t *testing.T) string { return filepath.Join(t.TempDir(), "new", "blobs") },
		"URL":       func(*testing.T) string { return "mem://" },
		"S3":        bucket,
	} {
		t.Run(name, func(t *testing.T) {
			s, err := blob.Open(t.Context(), place(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			test(t, s)
		})
	}
}

// bucket returns the URL of a new bucket of an object store that speaks S3.
func bucket(t *testing.T) string {
	t.Helper()
	b := tools.StartS3(t)
	t.Setenv("AWS_ACCESS_KEY_ID", b.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", b.SecretKey)
	return "s3://" + b.Name + "?" + url.Values{"region": {b.Region}, "endpoint": {b.Endpoint}, "use_path_style": {"true"}}.Encode()
}

func TestStore_returnsStoredContent(t *testing.T) {
	onEach(t, func(t *testing.T, s *blob.Store) {
		ctx := t.Context()
		for _, content := range []string{"first", "second, and longer"} {
			if err := s.Write(ctx, "a/b", "text/plain", []byte(content)); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Read(ctx, "a/b", 100); err != nil || string(got) != content {
				t.Errorf("got %q, %v; want %q", got, err, content)
			}
		}
	})
}

func TestStore_hasNoBlobAfterRemoval(t *testing.T) {
	onEach(t, func(t *testing.T, s *blob.Store) {
		ctx := t.Context()
		if err := s.Write(ctx, "a/b", "text/plain", []byte("x")); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := s.Remove(ctx, "a/b"); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Read(ctx, "a/b", 1); !errors.Is(err, blob.ErrNotFound) {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestOpen_readsPartOfWhatWasPut(t *testing.T) {
	onEach(t, func(t *testing.T, s *blob.Store) {
		if err := s.Put(t.Context(), "a", "text/plain", strings.NewReader("0123456789"), 10); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			offset, length int64
			want           string
		}{{0, -1, "0123456789"}, {3, 4, "3456"}, {8, -1, "89"}} {
			r, err := s.Open(t.Context(), "a", tt.offset, tt.length)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if err = errors.Join(err, r.Close()); err != nil || string(got) != tt.want {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		}
		if _, err := s.Open(t.Context(), "missing", 0, -1); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	})
}

// linked is a reader that can have one more name.
type linked struct {
	io.Reader
	link func(name string) error
}

func (l linked) Link(name string) error { return l.link(name) }

func TestPut_linksContentOrCopiesIt(t *testing.T) {
	for name, link := range map[string]func(string) error{
		"linked": func(name string) error { return os.WriteFile(name, []byte("0123456789"), 0o600) },
		"copied": func(string) error { return errors.ErrUnsupported },
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *blob.Store) {
				if err := s.Put(t.Context(), "a", "text/plain", linked{strings.NewReader("0123456789"), link}, 10); err != nil {
					t.Fatal(err)
				}
				if got, err := s.Read(t.Context(), "a", 100); err != nil || string(got) != "0123456789" {
					t.Errorf("got %q, %v", got, err)
				}
				if err := s.Each(t.Context(), "", func(b blob.Blob) error {
					if b.Key != "a" {
						return errors.New(b.Key)
					}
					return nil
				}); err != nil {
					t.Errorf("another blob: %v", err)
				}
			})
		})
	}
}

func TestPut_doesNotReadWhatItLinks(t *testing.T) {
	s, err := blob.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	unread := linked{iotest.ErrReader(errors.New("read")), func(name string) error { return os.WriteFile(name, []byte("0123456789"), 0o600) }}
	if err := s.Put(t.Context(), "a", "text/plain", unread, 10); err != nil {
		t.Error(err)
	}
}

func TestPut_leavesNothingAfterAFailure(t *testing.T) {
	onEach(t, func(t *testing.T, s *blob.Store) {
		broken := io.MultiReader(strings.NewReader("1234"), iotest.ErrReader(errors.New("the client has gone")))
		if err := s.Put(t.Context(), "a", "text/plain", broken, 10); !errors.Is(err, blob.ErrWrite) {
			t.Errorf("got %v", err)
		}
		if _, err := s.Open(t.Context(), "a", 0, -1); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRead_refusesLargerBlob(t *testing.T) {
	onEach(t, func(t *testing.T, s *blob.Store) {
		if err := s.Write(t.Context(), "a", "text/plain", []byte("1234")); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Read(t.Context(), "a", 3); err == nil {
			t.Errorf("got %q", got)
		}
	})
}

func TestEach_visitsBlobsWithPrefix(t *testing.T) {
	onEach(t, func(t *testing.T, s *blob.Store) {
		for _, key := range []string{"b/2", "b/1", "bb/3", "a/4"} {
			if err := s.Write(t.Context(), key, "text/plain", []byte(key)); err != nil {
				t.Fatal(err)
			}
		}
		var keys []string
		err := s.Each(t.Context(), "b/", func(b blob.Blob) error {
			if b.Modified.IsZero() {
				t.Errorf("%s has no time", b.Key)
			}
			keys = append(keys, b.Key)
			return nil
		})
		if want := []string{"b/1", "b/2"}; err != nil || !slices.Equal(keys, want) {
			t.Errorf("got %v, %v; want %v", keys, err, want)
		}
		failed := errors.New("enough")
		if err := s.Each(t.Context(), "", func(blob.Blob) error { return failed }); !errors.Is(err, failed) {
			t.Errorf("got %v", err)
		}
	})
}

func TestOpen_refusesUnusablePlaces(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for place, want := range map[string]string{
		"":                 "must be an absolute path or a URL",
		"blobs":            "must be an absolute path or a URL",
		file:               "not a directory",
		"unknown://bucket": "no driver registered",
	} {
		if _, err := blob.Open(context.Background(), place); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", place, err, want)
		}
	}
}
