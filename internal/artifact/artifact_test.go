package artifact_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	_ "gocloud.dev/blob/memblob" // the driver of mem:// URLs
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/artifact"
	"github.com/forgeplane/forgeplane/internal/blob"
	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/iid"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// shelf is a store of artifacts with one job.
type shelf struct {
	*WithT
	t     *testing.T
	rows  *pipeline.Store
	blobs *blob.Store
	store *artifact.Store
	clock *clocktesting.FakeClock
	jobID int64
}

func newShelf(t *testing.T) shelf {
	t.Helper()
	g := NewWithT(t)
	blobs, err := blob.Open(t.Context(), "mem://")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = blobs.Close() })
	c := clocktesting.NewFakeClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC))
	rows := pipeline.New(databasetest.Open(t, databasetest.SQLite(t), iid.Migrations(), job.Migrations(), pipeline.Migrations()), c)
	p := pipeline.Pipeline{In: database.Subject{Kind: database.KindProject, ID: 20, UID: "web"}, Ref: "main"}
	jobs := []*pipeline.Job{{Name: "build", Needs: []pipeline.Need{}, Tags: []string{}, Spec: &config.Job{}}}
	g.Expect(rows.Create(t.Context(), &p, jobs, nil)).To(Succeed())
	return shelf{g, t, rows, blobs, artifact.NewStore(rows, blobs), c, jobs[0].ID}
}

// add stores an archive.
func (s shelf) add(content []byte) pipeline.Artifact {
	s.t.Helper()
	a := pipeline.Artifact{JobID: s.jobID, Type: pipeline.Archive, Format: "zip", Name: "artifacts.zip", Access: "all", Size: int64(len(content))}
	s.Expect(s.store.Add(s.t.Context(), &a, bytes.NewReader(content))).To(Succeed())
	return a
}

// read returns a file of an archive.
func (s shelf) read(a pipeline.Artifact, name string) (string, error) {
	s.t.Helper()
	f, err := s.store.Find(s.t.Context(), a, name)
	if err != nil {
		return "", err
	}
	var content bytes.Buffer
	err = f.Write(s.t.Context(), &content)
	return content.String(), err
}

// entry is a file of an archive.
type entry struct {
	header  zip.FileHeader
	content []byte
}

func archiveOf(t *testing.T, all ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range all {
		into, err := w.CreateHeader(&e.header)
		if err == nil {
			_, err = into.Write(e.content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// claiming returns an archive with the file f, which claims to have a size.
func claiming(t *testing.T, size uint64) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	into, err := w.CreateRaw(&zip.FileHeader{Name: "f", Method: zip.Deflate, CompressedSize64: 1, UncompressedSize64: size})
	if err == nil {
		_, err = into.Write([]byte{0})
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestFind_readsFilesInPlace(t *testing.T) {
	s := newShelf(t)
	long := bytes.Repeat([]byte("0123456789"), 100_000)
	all := []entry{
		{zip.FileHeader{Name: "bin/hello", Method: zip.Deflate}, long}, {zip.FileHeader{Name: "plain.txt"}, []byte("plain")},
		{zip.FileHeader{Name: "plain.txt"}, []byte("a second one")}, {zip.FileHeader{Name: "empty"}, nil}, {zip.FileHeader{Name: "dir/"}, nil},
		{zip.FileHeader{Name: "../evil"}, []byte("evil")},
	}
	for n := range 10_000 {
		all = append(all, entry{zip.FileHeader{Name: fmt.Sprintf("many/file-%d", n)}, []byte("x")})
	}
	a := s.add(archiveOf(t, all...))
	for name, content := range map[string]string{"bin/hello": string(long), "plain.txt": "plain", "empty": "", "many/file-9999": "x"} {
		s.Expect(s.read(a, name)).To(Equal(content), name)
	}
	for _, name := range []string{"missing", "dir", "dir/", "bin", "/plain.txt", "bin/../plain.txt", ""} {
		_, err := s.read(a, name)
		s.Expect(err).To(MatchError(artifact.ErrNoFile), name)
	}
	var whole bytes.Buffer
	s.Expect(s.store.Write(t.Context(), a, &whole)).To(Succeed())
	s.Expect(whole.Len()).To(BeEquivalentTo(a.Size))
}

func TestFind_refusesWhatItCannotRead(t *testing.T) {
	link := zip.FileHeader{Name: "f"}
	link.SetMode(fs.ModeSymlink | 0o777)
	device := zip.FileHeader{Name: "f"}
	device.SetMode(fs.ModeDevice | 0o600)
	valid := archiveOf(t, entry{zip.FileHeader{Name: "f"}, []byte("content")})
	directory := bytes.LastIndex(valid, []byte("PK\x01\x02"))
	changed := func(at int, to ...byte) []byte {
		b := bytes.Clone(valid)
		copy(b[directory+at:], to)
		return b
	}
	longName := bytes.Clone(valid)
	copy(longName[26:], []byte{0xff, 0xff}) // in front of the content
	large := make([]entry, 300)
	for i := range large {
		large[i].header = zip.FileHeader{Name: fmt.Sprint(i), Comment: string(bytes.Repeat([]byte("-"), 1<<16-1))}
	}
	for name, tt := range map[string]struct {
		archive []byte
		says    string
	}{
		"link":              {archiveOf(t, entry{link, []byte("/etc/passwd")}), "symbolic link"},
		"device":            {archiveOf(t, entry{device, nil}), "not a regular file"},
		"encrypted":         {changed(8, 1), "encrypted"},
		"unknown method":    {changed(10, 93), "compression method 93"},
		"too large":         {claiming(t, 5<<30), "larger than 4294967296 bytes"},
		"no archive":        {[]byte("This is text."), "not a valid zip file"},
		"empty":             {nil, "not a valid zip file"},
		"truncated":         {valid[:len(valid)-30], "not a valid zip file"},
		"large directory":   {archiveOf(t, large...), "the directory of the archive is larger"},
		"file out of reach": {changed(42, 0xff, 0xff, 0xff, 0x7f), "damaged"},
		"no content":        {longName, "damaged"},
		"long content":      {changed(20, 0xff, 0xff), "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			_, err := s.read(s.add(tt.archive), "f")
			s.Expect(errors.As(err, new(artifact.Unreadable))).To(BeTrue(), "%v", err)
			s.Expect(err).To(MatchError(ContainSubstring(tt.says)))
		})
	}
	t.Run("wrong checksum", func(t *testing.T) {
		s := newShelf(t)
		_, err := s.read(s.add(changed(16, 1, 2, 3, 4)), "f")
		s.Expect(err).To(MatchError(zip.ErrChecksum))
	})
	t.Run("bomb", func(t *testing.T) {
		s := newShelf(t)
		b := archiveOf(t, entry{zip.FileHeader{Name: "f", Method: zip.Deflate}, make([]byte, 1<<20)})
		at := bytes.LastIndex(b, []byte("PK\x01\x02"))
		copy(b[at+24:], []byte{10, 0, 0, 0}) // it claims to have 10 bytes
		content, err := s.read(s.add(b), "f")
		s.Expect(err).To(MatchError(zip.ErrChecksum))
		s.Expect(content).To(HaveLen(10))
	})
}

func TestCollector_removesContentBeforeRows(t *testing.T) {
	s := newShelf(t)
	a := s.add([]byte("content"))
	c := artifact.NewCollector(s.store, nil, s.clock, logr.Discard())
	s.Expect(c.Look(t.Context())).To(BeZero())
	s.Expect(s.rows.RemoveArtifacts(t.Context(), s.jobID)).To(Succeed())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Look(ended)
	s.Expect(err).To(HaveOccurred())
	s.Expect(c.Look(t.Context())).To(Equal(1))
	s.Expect(c.Look(t.Context())).To(BeZero())
	s.Expect(s.store.Write(t.Context(), a, new(bytes.Buffer))).To(MatchError(blob.ErrNotFound))
}
