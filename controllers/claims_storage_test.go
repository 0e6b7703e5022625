package controllers_test

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// directories are the directories that shards can declare. Some contain others, and two of them are the same directory.
var directories = []string{"a", "a/b", "a/b/c", "ab", "link"}

func (f *forge) createDirectories() {
	f.volumes = f.t.TempDir()
	for _, directory := range directories[:4] {
		f.Expect(os.MkdirAll(filepath.Join(f.volumes, directory), 0o755)).To(Succeed())
	}
	f.Expect(os.Symlink("ab", filepath.Join(f.volumes, "link"))).To(Succeed())
}

func (f *forge) storages() []*v1alpha1.RepositoryStorage {
	var l v1alpha1.RepositoryStorageList
	return all(f, &l, func() []v1alpha1.RepositoryStorage { return l.Items })
}

// specOfStorage gives a shard a directory. It takes no projects, because there is no Git.
func (f *forge) specOfStorage(s *v1alpha1.RepositoryStorage) {
	if s.ResourceVersion == "" {
		s.Spec.Path, s.Spec.Weight = filepath.Join(f.volumes, one(f, directories)), ptr.To(int32(0))
	}
}

// apart checks that no shard holds a directory inside that of another one.
func (f *forge) apart() {
	var held []string
	for _, s := range f.storages() {
		if len(s.Status.Claims) == 0 {
			continue
		}
		for _, other := range held {
			f.Expect(strings.HasPrefix(s.Spec.Path+"/", other+"/") || strings.HasPrefix(other+"/", s.Spec.Path+"/")).To(BeFalse(),
				"%s and %s are both held: %s", s.Spec.Path, other, f.story())
		}
		held = append(held, s.Spec.Path)
	}
}
