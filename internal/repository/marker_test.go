package repository_test

import (
	"context"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// shardAt returns a shard in a directory, which has no marker.
func shardAt(directory, name string, uid types.UID) *v1alpha1.RepositoryStorage {
	return &v1alpha1.RepositoryStorage{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}, Spec: v1alpha1.RepositoryStorageSpec{Path: directory}}
}

func TestMark_replacesMarkerOnlyToTakeOver(t *testing.T) {
	g := NewWithT(t)
	directory := t.TempDir()
	one, two := shardAt(directory, "one", "1"), shardAt(directory, "two", "2")
	g.Expect(repository.ReadMarker(one)).To(BeNil())
	g.Expect(repository.CheckMarker(one)).To(MatchError(git.ErrStorageMissing))
	g.Expect(repository.Mark(one, false)).To(Succeed())
	g.Expect(repository.CheckMarker(one)).To(Succeed())

	g.Expect(repository.Mark(two, false)).To(MatchError(fs.ErrExist), "as if two processes did so at once")
	g.Expect(repository.CheckMarker(one)).To(Succeed())
	g.Expect(repository.CheckMarker(two)).To(And(MatchError(git.ErrStorageMissing),
		MatchError(ContainSubstring("the volume at "+directory+" belongs to RepositoryStorage one with the UID 1"))))
	g.Expect(repository.Unmark(two)).To(Succeed())
	g.Expect(repository.CheckMarker(one)).To(Succeed(), "it is another's")

	g.Expect(repository.Mark(two, true)).To(Succeed())
	g.Expect(repository.ReadMarker(one)).To(HaveValue(Equal(repository.MarkerOf(two))))
	g.Expect(os.ReadDir(directory)).To(HaveLen(1), "nothing else is left")
	g.Expect(repository.Unmark(two)).To(Succeed())
	g.Expect(os.ReadDir(directory)).To(BeEmpty())
}

func TestMark_removesWhatCrashHasLeft(t *testing.T) {
	g := NewWithT(t)
	one := shardAt(t.TempDir(), "one", "1")
	left := one.Spec.Path + "/.new-1"
	g.Expect(os.WriteFile(left, []byte(`{"na`), 0o600)).To(Succeed())
	g.Expect(repository.Mark(one, false)).To(Succeed())
	g.Expect(repository.CheckMarker(one)).To(Succeed())
	g.Expect(os.ReadDir(one.Spec.Path)).To(HaveLen(1))

	g.Expect(os.Link(repository.MarkerPath(one), left)).To(Succeed())
	g.Expect(repository.Mark(one, false)).To(MatchError(fs.ErrExist))
	g.Expect(repository.CheckMarker(one)).To(Succeed(), "both names were the same file")
	g.Expect(os.ReadDir(one.Spec.Path)).To(HaveLen(1))
}

func TestMark_doesNotCreateDirectory(t *testing.T) {
	g := NewWithT(t)
	s := shardAt(t.TempDir()+"/unmounted", "one", "1")
	g.Expect(repository.Mark(s, false)).To(MatchError(fs.ErrNotExist))
	g.Expect(s.Spec.Path).NotTo(BeADirectory())
}

func TestReadMarker_refusesOtherContent(t *testing.T) {
	text := func(text string) func(string) error {
		return func(file string) error { return os.WriteFile(file, []byte(text), 0o600) }
	}
	for name, put := range map[string]func(file string) error{
		"empty":         text(""),
		"not JSON":      text("ssd"),
		"without UID":   text(`{"name":"ssd"}`),
		"no name":       text(`{"name":"s\u001bd","uid":"1"}`),
		"too long":      text(`{"name":"ssd","uid":"1"}` + strings.Repeat(" ", 1<<20)),
		"symbolic link": func(file string) error { return os.Symlink("/etc/hostname", file) },
		"directory":     func(file string) error { return os.Mkdir(file, 0o700) },
		"pipe":          func(file string) error { return unix.Mkfifo(file, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := shardAt(t.TempDir(), "ssd", "1")
			g.Expect(put(repository.MarkerPath(s))).To(Succeed())
			_, err := repository.ReadMarker(s)
			g.Expect(err).To(HaveOccurred())
			g.Expect(repository.CheckMarker(s)).To(MatchError(git.ErrStorageMissing))
		})
	}
}

func TestRecordOwner_writesNothingWithoutMarker(t *testing.T) {
	g := NewWithT(t)
	s := newShop(t, "sha1")
	directory := strings.TrimSuffix(s.git.Dir(), repository.Path(s.project))
	g.Expect(os.Remove(repository.MarkerPath(shardAt(directory, "shard", "")))).To(Succeed())
	g.Expect(s.repos.RecordOwner(t.Context(), s.project, func(context.Context) (repository.Place, error) {
		return repository.Place{Namespace: "namespace", Cluster: "cluster"}, nil
	})).To(MatchError(git.ErrStorageMissing))
	r := repository.NewRetained(s.project, "namespace", "acme/web", time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	g.Expect(s.repos.Record(t.Context(), r)).To(MatchError(git.ErrStorageMissing))
	for _, name := range []string{".projects", ".retained"} {
		g.Expect(directory + name).NotTo(BeAnExistingFile())
	}
}
