package snapshot_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
	"github.com/forgeplane/forgeplane/test/patience"
)

// unpack reads an archive. It returns the content of each file, or the target of a link, by name.
func unpack(t *testing.T, format snapshot.ArchiveFormat, packed []byte) map[string]string {
	t.Helper()
	g := NewWithT(t)
	files := map[string]string{}
	read := func(name string, r io.Reader) {
		content, err := io.ReadAll(r)
		g.Expect(err).NotTo(HaveOccurred())
		files[name] = string(content)
	}
	var in io.Reader = bytes.NewReader(packed)
	switch format {
	case snapshot.Zip:
		z, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
		g.Expect(err).NotTo(HaveOccurred())
		for _, f := range z.File {
			r, err := f.Open()
			g.Expect(err).NotTo(HaveOccurred())
			read(f.Name, r)
		}
		return files
	case snapshot.TarGzip:
		var err error
		in, err = gzip.NewReader(in)
		g.Expect(err).NotTo(HaveOccurred())
	case snapshot.TarBzip2:
		in = bzip2.NewReader(in)
	}
	for archive := tar.NewReader(in); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			_, err := io.Copy(io.Discard, in) // its checksum is at the end
			g.Expect(err).NotTo(HaveOccurred())
			return files
		}
		g.Expect(err).NotTo(HaveOccurred())
		switch h.Typeflag {
		case tar.TypeXGlobalHeader:
		case tar.TypeSymlink:
			files[h.Name] = h.Linkname
		default:
			read(h.Name, archive)
		}
	}
}

func TestWriteArchive_hasTheFilesOfTheCommit(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			g := NewWithT(t)
			c, commit := oddTree(t, format)
			r := gittest.Bare(t, c)
			for _, path := range []string{"", "dir", "/dir/b/", "dir.txt", `"quoted"`, ":colon", "-dash"} {
				want := map[string]string{}
				for _, e := range listed(t, c, commit, "", "-r", "-t") {
					if below := strings.Trim(path, "/"); e.Type == "blob" && (below == "" || strings.HasPrefix(e.Path+"/", below+"/")) {
						want["x/"+e.Path] = c.Git(t, "cat-file", "blob", e.ID)
					}
				}
				for _, f := range []snapshot.ArchiveFormat{snapshot.Tar, snapshot.TarGzip, snapshot.TarBzip2, snapshot.Zip} {
					var out bytes.Buffer
					g.Expect(snapshot.WriteArchive(t.Context(), r, snapshot.Archive{Commit: commit, Path: path, Prefix: "x", Format: f}, &out)).To(Succeed())
					got := unpack(t, f, out.Bytes())
					maps.DeleteFunc(got, func(name, _ string) bool { return strings.HasSuffix(name, "/") })
					for name, content := range got {
						got[name] = strings.TrimSuffix(content, "\n") // as the client writes it
					}
					if f == snapshot.Zip { // Zip encodes names that are not UTF-8 differently
						delete(got, "x/not-\xff-utf8")
						g.Expect(len(got)).To(BeNumerically(">=", len(want)-1), path)
						continue
					}
					g.Expect(slices.Sorted(maps.Keys(got))).To(Equal(slices.Sorted(maps.Keys(want))), "%s of %q", f, path)
					g.Expect(got).To(Equal(want))
				}
			}
		})
	}
}

func TestWriteArchive_refusesWhatIsMissing(t *testing.T) {
	g := NewWithT(t)
	c, commit := oddTree(t, "sha1")
	r := gittest.Bare(t, c)
	for _, a := range []snapshot.Archive{
		{Commit: "main", Format: snapshot.Tar}, {Commit: strings.Repeat("0", 40), Format: snapshot.TarGzip}, {Commit: commit, Path: "..", Format: snapshot.Tar},
		{Commit: commit, Path: "nothing", Format: snapshot.TarBzip2}, {Commit: commit, Format: "rar"}, {Commit: commit, Path: "*", Format: snapshot.Tar},
	} {
		var out bytes.Buffer
		g.Expect(snapshot.WriteArchive(t.Context(), r, a, &out)).NotTo(Succeed(), "%v", a)
		g.Expect(out.Len()).To(BeZero(), "%v", a)
	}
	g.Expect(snapshot.WriteArchive(t.Context(), r, snapshot.Archive{Commit: commit, Prefix: "x", Format: snapshot.Tar}, full{})).NotTo(Succeed())
}

// turnstile blocks a writer until a test has seen it.
type turnstile struct{ seen, pass chan struct{} }

func (s turnstile) Write(p []byte) (int, error) {
	s.seen <- struct{}{}
	<-s.pass
	return len(p), nil
}

func TestWriteArchive_waitsForASlot(t *testing.T) {
	g := NewWithT(t)
	c, commit := oddTree(t, "sha1")
	e, err := git.NewEngine(t.Context(), git.Options{Slots: git.Slots{Archives: fair.Limits{Total: 1, Wait: 50 * time.Millisecond}}})
	g.Expect(err).NotTo(HaveOccurred())
	r := gittest.Repository(t, e, filepath.Dir(gittest.Bare(t, c).Dir()), "b.git")
	a := snapshot.Archive{Commit: commit, Prefix: "x", Format: snapshot.TarGzip}
	first := turnstile{make(chan struct{}), make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- snapshot.WriteArchive(t.Context(), r, a, first) }()
	<-first.seen
	var out bytes.Buffer
	g.Expect(snapshot.WriteArchive(t.Context(), r, a, &out)).To(MatchError(process.ErrBusy))
	gone, leave := context.WithCancelCause(t.Context())
	left := errors.New("the client has gone away")
	leave(left)
	g.Expect(snapshot.WriteArchive(gone, r, a, &out)).To(MatchError(left))
	g.Expect(out.Len()).To(BeZero())
	close(first.pass)
	g.Expect(<-ended).To(Succeed())
	g.Expect(snapshot.WriteArchive(t.Context(), r, a, &out)).To(Succeed())
}

func TestWriteArchive_remembersSmallArchives(t *testing.T) {
	g := NewWithT(t)
	c, commit := oddTree(t, "sha1")
	e, err := git.NewEngine(t.Context(), git.Options{Slots: git.Slots{Archives: fair.Limits{Total: 1, Wait: time.Millisecond}}})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(e.Close)
	r := gittest.Repository(t, e, filepath.Dir(gittest.Bare(t, c).Dir()), "b.git")
	a := snapshot.Archive{Commit: commit, Prefix: "x", Format: snapshot.TarGzip}
	var first, again bytes.Buffer
	g.Expect(snapshot.WriteArchive(t.Context(), r, a, &first)).To(Succeed())
	other := a
	other.Prefix = "y"
	held := turnstile{make(chan struct{}), make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- snapshot.WriteArchive(t.Context(), r, other, held) }()
	<-held.seen
	g.Expect(snapshot.WriteArchive(t.Context(), r, a, &again)).To(Succeed())
	g.Expect(again.Bytes()).To(Equal(first.Bytes()))
	for _, differs := range []snapshot.Archive{
		{Commit: commit, Prefix: "z", Format: snapshot.TarGzip}, {Commit: commit, Prefix: "x", Format: snapshot.Tar},
		{Commit: commit, Prefix: "x", Format: snapshot.TarGzip, Path: "dir"},
	} {
		g.Expect(snapshot.WriteArchive(t.Context(), r, differs, io.Discard)).To(MatchError(process.ErrBusy))
	}
	close(held.pass)
	g.Expect(<-ended).To(Succeed())
}

// gate is a writer that blocks after a number of bytes, and says so.
type gate struct {
	left          int
	reached, pass chan struct{}
}

func (g *gate) Write(p []byte) (int, error) {
	if g.left -= len(p); g.left < 0 && g.left+len(p) >= 0 {
		g.reached <- struct{}{}
		<-g.pass
	}
	return len(p), nil
}

func TestArchive_countsOnlyWhatIsHeld(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	c.Commit(t, "long", strings.Repeat("0123456789abcde\n", 17<<16))
	const room = 20 << 20
	held := fair.NewMemory("test", fair.Limits{Total: room})
	e, err := git.NewEngine(t.Context(), git.Options{Memory: held})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(e.Close)
	r := gittest.Repository(t, e, filepath.Dir(gittest.Bare(t, c).Dir()), "b.git")
	a := snapshot.Archive{Commit: c.Git(t, "rev-parse", "HEAD"), Format: snapshot.Tar}
	for after, free := range map[int]bool{1 << 20: false, 16 << 20: true} { // larger archives are not remembered
		client := &gate{left: after, reached: make(chan struct{}), pass: make(chan struct{})}
		ended := make(chan error, 1)
		go func() { ended <- snapshot.WriteArchive(t.Context(), r, a, client) }()
		<-client.reached
		weigh := held.Try(fair.With(t.Context(), fair.User(1)), room)
		g.Expect(weigh != nil).To(Equal(free), "after %d bytes", after)
		if free {
			weigh(0)
		}
		close(client.pass)
		g.Expect(<-ended).To(Succeed())
	}
}

func TestWriteArchive_endsWithItsReceiver(t *testing.T) {
	g := NewWithT(t)
	c, commit := oddTree(t, "sha1")
	pid := filepath.Join(t.TempDir(), "pid")
	e := gittest.EngineWith(t, `case "$1" in archive) echo $$ > `+pid+`.new; mv `+pid+`.new `+pid+`; exec sleep 600 ;; esac`)
	r := gittest.Repository(t, e, filepath.Dir(gittest.Bare(t, c).Dir()), "b.git")
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- snapshot.WriteArchive(ctx, r, snapshot.Archive{Commit: commit, Prefix: "x", Format: snapshot.TarBzip2}, io.Discard)
	}()
	gittest.Eventually(t, "the archive is begun", func() bool { return gittest.Exists(pid) })
	leave()
	g.Eventually(ended).WithTimeout(patience.Wait).Should(Receive(MatchError(context.Canceled)))
	text, err := os.ReadFile(pid)
	g.Expect(err).NotTo(HaveOccurred())
	job, err := strconv.Atoi(strings.TrimSpace(string(text)))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(syscall.Kill(job, 0)).To(MatchError(syscall.ESRCH))
}
