package crash

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// maxByREST is a token with which Max can request maintenance.
const maxByREST = `
apiVersion: forgeplane.dev/v1alpha1
kind: AccessToken
metadata: {name: max-rest}
spec: {userRef: {name: max}, scopes: [api], secretRef: {name: max-rest}}
`

// origin is a project that is forked.
type origin struct {
	name   string
	pusher *pusher
	// beside is the commit of a branch that the other branches do not contain.
	beside string
	// garbage is a commit that no ref needs, and that is so old that the next maintenance removes it.
	garbage string
}

// newOrigin imports a project and pushes to it.
func newOrigin(name, importURL string) *origin {
	GinkgoHelper()
	create(project(name, "forks").ImportedFrom(importURL))
	expectReady(name)
	o := &origin{name: name, pusher: newPusher(&machine.server, "line", name)}
	for range 3 {
		screen, err := o.pusher.push()
		Expect(err).NotTo(HaveOccurred(), screen)
	}
	o.beside = o.pushBeside("beside")
	o.garbage = o.pushBeside("passing")
	o.pusher.clone.Git("push", "--quiet", "origin", ":refs/heads/passing")
	o.ageGarbage()
	return o
}

// pushBeside pushes a branch with a commit that the later pushes do not contain.
func (o *origin) pushBeside(branch string) (commit string) {
	GinkgoHelper()
	clone := o.pusher.clone
	commit = clone.Commit(branch+".bin", noise(fileSize))
	clone.MustPush(branch)
	clone.Git("reset", "--quiet", "--hard", "HEAD~")
	return commit
}

// ageGarbage makes the garbage three weeks old, in the form in which the maintenance of that time would have left it, and lets the next maintenance
// be one that repacks everything.
func (o *origin) ageGarbage() {
	GinkgoHelper()
	directory := directoryOf(o.name)
	defer lockMaintenance(directory)()
	past := time.Now().Add(-21 * 24 * time.Hour)
	Expect(filepath.WalkDir(filepath.Join(directory, "objects"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return os.Chtimes(path, past, past)
	})).To(Succeed())
	admin.Git("--git-dir="+directory, "repack", "-d", "--cruft", "--quiet")
	o.makeDue()
}

// makeDue lets the next maintenance repack everything.
func (o *origin) makeDue() {
	GinkgoHelper()
	past := time.Now().Add(-8 * 24 * time.Hour)
	Expect(os.Chtimes(maintenanceOf(directoryOf(o.name)), past, past)).To(Succeed())
}

// hasGarbage reports whether no maintenance has removed the garbage.
func (o *origin) hasGarbage() bool {
	GinkgoHelper()
	_, err := admin.Try("git", "--git-dir="+directoryOf(o.name), "cat-file", "-e", o.garbage)
	return err == nil
}

// maintain requests maintenance, and does not wait for it.
func (o *origin) maintain(token string) {
	GinkgoHelper()
	Expect(machine.rest(token, http.MethodPost, "/projects/yard%2F"+o.name+"/housekeeping", "")).To(Equal(http.StatusCreated))
}

// expectMaintained expects that the project has every push that was accepted, loses its garbage, and can be pushed to.
func (o *origin) expectMaintained(token string) {
	GinkgoHelper()
	directory := directoryOf(o.name)
	expectIntact(directory)
	o.pusher.expectKept(refsOf(o.name))
	o.makeDue()
	o.maintain(token)
	Eventually(o.hasGarbage).WithPolling(polling).Should(BeFalse())
	lockMaintenance(directory)()
	expectIntact(directory)
	screen, err := o.pusher.push()
	Expect(err).NotTo(HaveOccurred(), screen)
}

// directoryOf returns the directory of the repository of a project.
func directoryOf(name string) string {
	GinkgoHelper()
	p := read(name)
	return filepath.Join(machine.shards, p.Status.Storage, p.Status.RepositoryPath)
}

// maintenanceOf returns the file in a repository that is locked during maintenance.
func maintenanceOf(directory string) string {
	return filepath.Join(directory, "forgeplane-maintenance")
}

// lockMaintenance waits until no maintenance of a repository is running, and prevents its maintenance until unlock is called.
func lockMaintenance(directory string) (unlock func()) {
	GinkgoHelper()
	f, err := os.OpenFile(maintenanceOf(directory), os.O_RDWR|os.O_CREATE, 0o644)
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }).WithPolling(polling).Should(Succeed())
	return func() {
		GinkgoHelper()
		Expect(syscall.Flock(int(f.Fd()), syscall.LOCK_UN)).To(Succeed())
		Expect(f.Close()).To(Succeed())
	}
}
