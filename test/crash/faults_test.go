package crash

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/test/suite"
	"github.com/forgeplane/forgeplane/test/terminal"
)

// sparing is the time between two tries of a program that fails until idle processes of Forgeplane have ended.
const sparing = 200 * time.Millisecond

const unavailable = "The repository is not available. Please try again later, and tell an administrator if the problem persists."

var _ = Describe("A hook", Ordered, func() {
	var clone terminal.Terminal
	var before string

	BeforeAll(func() {
		machine.shard("hooks")
		create(project("hooked", "hooks"))
		expectReady("hooked")
		clone = owner().Clone(machine.url("hooked"))
		clone.Commit("first.txt", "First.\n")
		clone.MustPush("main")
		clone.Commit("second.txt", "Second.\n")
		before = clone.Git("ls-remote", "origin")
		DeferCleanup(expectRemoved, "hooked")
	})

	// expectClosed expects that every push is refused, and that the user sees the reason.
	expectClosed := func(words ...string) {
		GinkgoHelper()
		screen := clone.RefusedPush("main")
		for _, w := range words {
			Expect(screen).To(ContainSubstring(w))
		}
		Expect(clone.Git("ls-remote", "origin")).To(Equal(before), "it can still be read, and is as it was")
	}

	It("lets no push through while it cannot reach the server, until Forgeplane is started again", func() {
		Expect(os.Remove(filepath.Join(machine.options.Data, "run", "hook.sock"))).To(Succeed())
		expectClosed("remote: The server could not check this push, so nothing was changed: the component that checks pushes cannot be reached.",
			"remote: Try again later, and tell an administrator if the problem persists.")
		machine.stop()
		machine.start()
		clone.MustPush("main")
		before = clone.Git("ls-remote", "origin")
	})

	It("lets no push through if it is missing", func() {
		hidden := checkout.Program("hidden")
		Expect(os.Rename(checkout.Program("forgeplane-hook"), hidden)).To(Succeed())
		clone.Commit("third.txt", "Third.\n")
		expectClosed("remote: The server failed. Please try again later, and tell an administrator if the problem persists.")
		Expect(os.Rename(hidden, checkout.Program("forgeplane-hook"))).To(Succeed())
		clone.MustPush("main")
		before = clone.Git("ls-remote", "origin")
	})

	It("lets no push through if it cannot be executed", func() {
		Expect(os.Chmod(checkout.Program("forgeplane-hook"), 0o644)).To(Succeed())
		clone.Commit("fourth.txt", "Fourth.\n")
		expectClosed("remote: The server failed. Please try again later, and tell an administrator if the problem persists.")
		Expect(os.Chmod(checkout.Program("forgeplane-hook"), 0o755)).To(Succeed())
		clone.MustPush("main")
	})
})

var _ = Describe("A branch", func() {
	It("accepts pushes again after a killed git has left a lock and Forgeplane starts a day later", func() {
		machine.shard("locks")
		create(project("locked", "locks"))
		expectReady("locked")
		DeferCleanup(expectRemoved, "locked")
		clone := owner().Clone(machine.url("locked"))
		clone.Commit("first.txt", "First.\n")
		clone.MustPush("main")
		repository := filepath.Join(machine.shards, "locks", read("locked").Status.RepositoryPath)
		for _, name := range []string{"HEAD", "packed-refs", "refs/heads/main"} {
			Expect(os.WriteFile(filepath.Join(repository, name+".lock"), nil, 0o644)).To(Succeed())
		}
		clone.Commit("second.txt", "Second.\n")
		Expect(clone.RefusedPush("main")).To(ContainSubstring("! [remote rejected] HEAD -> main (failed to update ref)"), "somebody may be at work")
		machine.stop()
		machine.ageLocks()
		machine.start()
		Eventually(machine.locks).WithPolling(polling).Should(BeEmpty())
		clone.MustPush("main")
		clone.Git("push", "origin", "HEAD:refs/heads/other")
		clone.Git("push", "origin", ":refs/heads/other")
	})
})

var _ = Describe("A shard that vanishes", Ordered, func() {
	var clone terminal.Terminal
	var directory string

	BeforeAll(func() {
		directory = machine.shard("volume")
		create(project("stored", "volume"))
		create(project("doomed", "volume"))
		expectReady("stored", "doomed")
		clone = owner().Clone(machine.url("stored"))
		clone.Commit("first.txt", "First.\n")
		clone.MustPush("main")
		Expect(os.Rename(directory, directory+".away")).To(Succeed())
	})

	It("is reported as unavailable by itself and by the projects on it", func() {
		look("volume")
		expectShard("volume", v1alpha1.ReasonStorageUnavailable, "check that the volume is mounted")
		expectProject("stored", v1alpha1.ReasonStorageUnavailable, "storage volume is not mounted")
	})

	It("can be neither read nor written", func() {
		Expect(clone.Fail("git", "fetch")).To(ContainSubstring("remote: " + unavailable))
		clone.Commit("second.txt", "Second.\n")
		Expect(clone.RefusedPush("main")).To(ContainSubstring("remote: " + unavailable))
		Expect(directory).NotTo(BeADirectory(), "nothing is made in the place of a volume")
	})

	It("delays the deletion of a project, which says so", func() {
		remove("doomed")
		expectProject("doomed", v1alpha1.ReasonDeleting, "storage volume is not mounted")
	})

	It("is unchanged when it is back", func() {
		Expect(os.Rename(directory+".away", directory)).To(Succeed())
		look("volume")
		expectReady("stored")
		clone.MustPush("main")
		p := read("stored")
		admin.Git("--git-dir="+filepath.Join(directory, p.Status.RepositoryPath), "fsck", "--full", "--strict")
		expectRemoved("doomed", "stored")
		Expect(filepath.Glob(filepath.Join(directory, "*", "*", "*"))).To(BeEmpty())
	})
})

var _ = Describe("A volume that is not mounted", Ordered, suite.Soak, func() {
	var clone terminal.Terminal
	var directory string

	BeforeAll(func() {
		directory = machine.volume("bound", `mkdir "$directory.volume"
mount -t tmpfs -o size=16m tmpfs "$directory.volume"
mount --bind "$directory.volume" "$directory"`)
		admin.Apply(maxByREST)
		admin.WaitReady("accesstoken/max-rest")
		DeferCleanup(func() { admin.DoWith(maxByREST, "kubectl", "delete", "--filename=-") })
		DeferCleanup(expectRemoved, "kept", "below")
		create(project("kept", "bound"))
		expectReady("kept")
		clone = owner().Clone(machine.url("kept"))
		clone.Commit("first.txt", "First.\n")
		clone.MustPush("main")
	})

	inside := func(script string) string {
		GinkgoHelper()
		screen, err := machine.inside("directory='" + directory + "'\n" + script)
		Expect(err).NotTo(HaveOccurred(), screen)
		return screen
	}

	It("is noticed, and nothing is written below its mount point", func() {
		// It is busy as long as a process has a repository open.
		Eventually(func() error {
			screen, err := machine.inside("umount '" + directory + "'")
			if err != nil {
				return fmt.Errorf("%s: %w", screen, err)
			}
			return nil
		}).WithPolling(sparing).Should(Succeed())
		look("bound")
		create(project("below", "bound"))
		Eventually(func() metav1.ConditionStatus {
			p := read("below")
			return condition(p, p.Status.CommonStatus).Status
		}).WithPolling(polling).Should(Equal(metav1.ConditionFalse))
		expectShard("bound", v1alpha1.ReasonStorageUnavailable, "the volume of storage bound is not available: mount it at "+directory)
		expectProject("kept", v1alpha1.ReasonStorageUnavailable, "storage bound is not mounted")
		Expect(isReady(read("below"))).To(BeFalse())
		Expect(clone.Fail("git", "fetch")).To(ContainSubstring("remote: " + unavailable))
		for _, path := range []string{"branches", "tags", "tree", "files/first.txt?ref=main"} {
			Expect(machine.rest(tokenOf("max-rest"), http.MethodGet, "/projects/yard%2Fkept/repository/"+path, "")).To(Equal(http.StatusServiceUnavailable), path)
		}
		Expect(inside(`ls -A "$directory"`)).To(BeEmpty())
	})

	It("is as it was when it is mounted again", func() {
		inside(`mount --bind "$directory.volume" "$directory"`)
		look("bound")
		expectReady("kept", "below")
		clone.Commit("second.txt", "Second.\n")
		clone.MustPush("main")
	})

	It("is not mistaken for a volume from which one repository is gone", func() {
		repository := "\"$directory/" + read("kept").Status.RepositoryPath + "\""
		inside("mv " + repository + " \"$directory/aside\"")
		lookUntil("bound", "kept", false)
		expectProject("kept", v1alpha1.ReasonStorageUnavailable, "the repository is no longer on storage bound")
		expectReady("below")
		inside("mv \"$directory/aside\" " + repository)
		lookUntil("bound", "kept", true)
	})
})

var _ = Describe("A shard on a small volume", Ordered, suite.Soak, func() {
	const size = 24 // MiB
	var clone terminal.Terminal
	var directory string

	BeforeAll(func() {
		directory = machine.volume("small", fmt.Sprintf(`mount -t tmpfs -o size=%dm tmpfs "$directory"`, size))
		admin.Apply(maxByREST)
		admin.WaitReady("accesstoken/max-rest")
		DeferCleanup(func() { admin.DoWith(maxByREST, "kubectl", "delete", "--filename=-") })
		DeferCleanup(expectRemoved, "tight", "next", "later")
		look("small")
		create(project("tight", "small"))
		expectReady("tight")
		clone = owner().Clone(machine.url("tight"))
		clone.Commit("first.txt", "First.\n")
		clone.MustPush("main")
	})

	// fsck checks the repository where Forgeplane sees it.
	fsck := func() {
		GinkgoHelper()
		repository := filepath.Join(directory, read("tight").Status.RepositoryPath)
		screen, err := machine.inside("git -c safe.directory='*' --git-dir='" + repository + "' fsck --full --strict")
		Expect(err).NotTo(HaveOccurred(), screen)
		// The maintenance after a push has such files while it runs.
		Eventually(func() (string, error) {
			return machine.inside("find '" + directory + "' -name 'tmp_*' -o -name '*.lock'")
		}).WithPolling(polling).Should(BeEmpty(), "no temporary file may be left")
	}

	remount := func(mode string) {
		GinkgoHelper()
		// It is busy as long as a process, such as the maintenance after a push, writes to it.
		Eventually(func() error {
			screen, err := machine.inside("mount -o remount," + mode + " '" + directory + "'")
			if err != nil {
				return fmt.Errorf("%s: %w", screen, err)
			}
			return nil
		}).WithPolling(sparing).Should(Succeed())
		look("small")
	}

	It("refuses a push that does not fit on it, says why, and accepts the next one", func() {
		before := clone.Git("ls-remote", "origin")
		large := clone.In(clone.Space())
		large.Git("clone", "--quiet", clone.Dir, ".")
		large.Git("remote", "set-url", "origin", machine.url("tight"))
		large.Commit("large.bin", noise((size+8)<<20))
		Expect(large.RefusedPush("large")).To(ContainSubstring("No space left on device"))
		Expect(clone.Git("ls-remote", "origin")).To(Equal(before))
		fsck()
		clone.Commit("small.txt", "Small.\n")
		clone.MustPush("main")
	})

	It("says that it is full, and accepts no project until there is room", func() {
		_, err := machine.inside("cat /dev/zero > '" + directory + "/ballast'")
		Expect(err).To(HaveOccurred(), "until it is full")
		status, body := machine.answer(tokenOf("max-rest"), http.MethodPost, "/projects/yard%2Ftight/repository/commits",
			`{"branch":"main","commit_message":"Add it","actions":[{"action":"create","file_path":"more.txt","content":"More."}]}`)
		Expect(status).To(Equal(http.StatusInsufficientStorage), body)
		Expect(body).To(MatchJSON(`{"message":"` + git.Full + `"}`))
		create(project("next", "small"))
		versions := map[string]bool{}
		Consistently(func() int { versions[read("next").ResourceVersion] = true; return len(versions) }, "10s").WithPolling(polling).
			Should(BeNumerically("<", 30), "it is tried again with a growing delay")
		look("small")
		expectShard("small", v1alpha1.ReasonStorageUnavailable, "no space left on device")
		create(project("later", "small"))
		expectProject("later", v1alpha1.ReasonReferenceNotReady, "RepositoryStorage small is not ready")
		_, err = machine.inside("rm '" + directory + "/ballast'")
		Expect(err).NotTo(HaveOccurred())
		look("small")
		expectReady("next", "later", "tight")
		// Git leaves the temporary files for which there was no space.
		screen, err := machine.inside("find '" + directory + "' -name 'tmp_*' -delete")
		Expect(err).NotTo(HaveOccurred(), screen)
		fsck()
	})

	It("serves fetches and refuses pushes while it is read-only, and continues when it is writable again", func() {
		before := clone.Git("ls-remote", "origin")
		remount("ro")
		expectShard("small", v1alpha1.ReasonStorageUnavailable, "read-only file system")
		clone.Git("fetch", "--quiet")
		clone.Commit("later.txt", "Later.\n")
		Expect(clone.RefusedPush("main")).To(ContainSubstring("error: remote unpack failed: unable to create temporary object directory"))
		Expect(clone.Git("ls-remote", "origin")).To(Equal(before))
		remount("rw")
		clone.MustPush("main")
		fsck()
	})

	It("serves a repository that a lost move has retired while it is read-only, and makes it writable afterwards", func() {
		repository := filepath.Join(directory, read("tight").Status.RepositoryPath)
		screen, err := machine.inside("ln -s lost-1 '" + repository + "/forgeplane-retired'")
		Expect(err).NotTo(HaveOccurred(), screen)
		remount("ro")
		expectShard("small", v1alpha1.ReasonStorageUnavailable, "read-only file system")
		admin.Kubectl("annotate", "project", "tight", "--namespace=yard", "test/looked=yes")
		Eventually(func() bool { return machine.said("Failed to make a repository writable") }).WithPolling(polling).Should(BeTrue())
		expectReady("tight")
		clone.Git("fetch", "--quiet")
		remount("rw")
		Eventually(func() error {
			screen, err := clone.Push("main")
			if err != nil {
				return fmt.Errorf("%s: %w", screen, err)
			}
			return nil
		}).WithPolling(polling).Should(Succeed())
		fsck()
	})
})
