package git_test

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
)

// unpack reads an archive. It returns the content of each file, or the target of a link, by name.
func unpack(t *testing.T, format git.ArchiveFormat, packed []byte) map[string]string {
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
	case git.Zip:
		z, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
		g.Expect(err).NotTo(HaveOccurred())
		for _, f := range z.File {
			r, err := f.Open()
			g.Expect(err).NotTo(HaveOccurred())
			read(f.Name, r)
		}
		return files
	case git.TarGzip:
		var err error
		in, err = gzip.NewReader(in)
		g.Expect(err).NotTo(HaveOccurred())
	case git.TarBzip2:
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

func TestAnArchiveHasTheFilesOfACommit(t *testing.T) {
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			g := NewWithT(t)
			c, commit := oddTree(t, format)
			r := bare(t, c)
			for _, path := range []string{"", "dir", "/dir/b/", "dir.txt", `"quoted"`, ":colon", "-dash"} {
				want := map[string]string{}
				for _, e := range listed(t, c, commit, "", "-r", "-t") {
					if below := strings.Trim(path, "/"); e.Type == "blob" && (below == "" || strings.HasPrefix(e.Path+"/", below+"/")) {
						want["x/"+e.Path] = c.Git(t, "cat-file", "blob", e.ID)
					}
				}
				for _, f := range []git.ArchiveFormat{git.Tar, git.TarGzip, git.TarBzip2, git.Zip} {
					var out bytes.Buffer
					g.Expect(r.Archive(t.Context(), git.Archive{Commit: commit, Path: path, Prefix: "x", Format: f}, &out)).To(Succeed())
					got := unpack(t, f, out.Bytes())
					maps.DeleteFunc(got, func(name, _ string) bool { return strings.HasSuffix(name, "/") })
					for name, content := range got {
						got[name] = strings.TrimSuffix(content, "\n") // as the client writes it
					}
					if f == git.Zip { // Zip encodes names that are not UTF-8 differently
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

func TestWhatHasNoArchive(t *testing.T) {
	g := NewWithT(t)
	c, commit := oddTree(t, "sha1")
	r := bare(t, c)
	for _, a := range []git.Archive{
		{Commit: "main", Format: git.Tar}, {Commit: strings.Repeat("0", 40), Format: git.TarGzip}, {Commit: commit, Path: "..", Format: git.Tar},
		{Commit: commit, Path: "nothing", Format: git.TarBzip2}, {Commit: commit, Format: "rar"}, {Commit: commit, Path: "*", Format: git.Tar},
	} {
		var out bytes.Buffer
		g.Expect(r.Archive(t.Context(), a, &out)).NotTo(Succeed(), "%v", a)
		g.Expect(out.Len()).To(BeZero(), "%v", a)
	}
	g.Expect(r.Archive(t.Context(), git.Archive{Commit: commit, Prefix: "x", Format: git.Tar}, full{})).NotTo(Succeed())
}

// turnstile blocks a writer until a test has seen it.
type turnstile struct{ seen, pass chan struct{} }

func (s turnstile) Write(p []byte) (int, error) {
	s.seen <- struct{}{}
	<-s.pass
	return len(p), nil
}

func TestFewArchivesAreWrittenAtOnceAndTheOthersWait(t *testing.T) {
	g := NewWithT(t)
	c, commit := oddTree(t, "sha1")
	e, err := git.NewEngine(t.Context(), git.Options{Slots: git.Slots{Archives: fair.Limits{Total: 1, Wait: 50 * time.Millisecond}}})
	g.Expect(err).NotTo(HaveOccurred())
	r := repository(t, e, filepath.Dir(bare(t, c).Dir()), "b.git")
	a := git.Archive{Commit: commit, Prefix: "x", Format: git.TarGzip}
	first := turnstile{make(chan struct{}), make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- r.Archive(t.Context(), a, first) }()
	<-first.seen
	var out bytes.Buffer
	g.Expect(r.Archive(t.Context(), a, &out)).To(MatchError(git.ErrBusy))
	gone, leave := context.WithCancelCause(t.Context())
	left := errors.New("the client has gone away")
	leave(left)
	g.Expect(r.Archive(gone, a, &out)).To(MatchError(left))
	g.Expect(out.Len()).To(BeZero())
	close(first.pass)
	g.Expect(<-ended).To(Succeed())
	g.Expect(r.Archive(t.Context(), a, &out)).To(Succeed())
}

func TestASmallArchiveIsRememberedAndWaitsForNobody(t *testing.T) {
	g := NewWithT(t)
	c, commit := oddTree(t, "sha1")
	e, err := git.NewEngine(t.Context(), git.Options{Slots: git.Slots{Archives: fair.Limits{Total: 1, Wait: time.Millisecond}}})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(e.Close)
	r := repository(t, e, filepath.Dir(bare(t, c).Dir()), "b.git")
	a := git.Archive{Commit: commit, Prefix: "x", Format: git.TarGzip}
	var first, again bytes.Buffer
	g.Expect(r.Archive(t.Context(), a, &first)).To(Succeed())
	other := a
	other.Prefix = "y"
	held := turnstile{make(chan struct{}), make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- r.Archive(t.Context(), other, held) }()
	<-held.seen
	g.Expect(r.Archive(t.Context(), a, &again)).To(Succeed())
	g.Expect(again.Bytes()).To(Equal(first.Bytes()))
	for _, differs := range []git.Archive{
		{Commit: commit, Prefix: "z", Format: git.TarGzip}, {Commit: commit, Prefix: "x", Format: git.Tar},
		{Commit: commit, Prefix: "x", Format: git.TarGzip, Path: "dir"},
	} {
		g.Expect(r.Archive(t.Context(), differs, io.Discard)).To(MatchError(git.ErrBusy))
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
	r := repository(t, e, filepath.Dir(bare(t, c).Dir()), "b.git")
	a := git.Archive{Commit: c.Git(t, "rev-parse", "HEAD"), Format: git.Tar}
	for after, free := range map[int]bool{1 << 20: false, 16 << 20: true} { // larger archives are not remembered
		client := &gate{left: after, reached: make(chan struct{}), pass: make(chan struct{})}
		ended := make(chan error, 1)
		go func() { ended <- r.Archive(t.Context(), a, client) }()
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

func TestAnArchiveThatNobodyTakesAnyMoreEndsItsProcess(t *testing.T) {
	g := NewWithT(t)
	c, commit := oddTree(t, "sha1")
	pid := filepath.Join(t.TempDir(), "pid")
	e := engineWith(t, `case "$1" in archive) echo $$ > `+pid+`.new; mv `+pid+`.new `+pid+`; exec sleep 600 ;; esac`)
	r := repository(t, e, filepath.Dir(bare(t, c).Dir()), "b.git")
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- r.Archive(ctx, git.Archive{Commit: commit, Prefix: "x", Format: git.TarBzip2}, io.Discard)
	}()
	eventually(t, "the archive is begun", func() bool { return exists(pid) })
	leave()
	g.Eventually(ended).WithTimeout(10 * time.Second).Should(Receive(MatchError(context.Canceled)))
	text, err := os.ReadFile(pid)
	g.Expect(err).NotTo(HaveOccurred())
	process, err := strconv.Atoi(strings.TrimSpace(string(text)))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(syscall.Kill(process, 0)).To(MatchError(syscall.ESRCH))
}
