package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/soak"
	"github.com/forgeplane/forgeplane/test/terminal"
)

var _ = Describe("Git over HTTP", Ordered, func() {
	const commits = 20
	var library team
	var max terminal.Terminal

	BeforeAll(func() {
		library = newTeam("library")
		max = library.start()
		for i := range commits - 1 {
			max.Commit(fmt.Sprintf("shelf-%d/book.txt", i), strings.Repeat(fmt.Sprintln("Page", i), 100))
		}
		max.MustPush("main")
	})

	It("serves a partial clone, and missing objects on demand", func() {
		reader := library.as("dana").Clone("--filter=blob:none", "--no-checkout", library.url("app"))
		Expect(reader.Git("rev-list", "--objects", "--all", "--missing=print")).To(MatchRegexp(`(?m)^\?[0-9a-f]{40}$`))
		reader.Git("checkout", "--quiet", "main")
		Expect(os.ReadFile(filepath.Join(reader.Dir, "shelf-3", "book.txt"))).To(BeEquivalentTo(strings.Repeat("Page 3\n", 100)))
	})

	It("serves a shallow clone, and the rest of the history on demand", func() {
		reader := library.as("dana").Clone("--depth=1", library.url("app"))
		Expect(reader.Git("rev-list", "--count", "HEAD")).To(Equal("1"))
		reader.Git("fetch", "--quiet", "--unshallow")
		Expect(reader.Git("rev-list", "--count", "HEAD")).To(Equal(fmt.Sprint(commits)))
		reader.Git("fsck", "--full", "--strict")
	})

	DescribeTable("speaks the protocol of the client", func(version int, words ...string) {
		screen, err := library.as("dana").With("GIT_TRACE_PACKET=1").
			Try("git", "-c", fmt.Sprintf("protocol.version=%d", version), "ls-remote", library.url("app"))
		Expect(err).NotTo(HaveOccurred(), screen)
		Expect(screen).To(ContainSubstring("refs/heads/main"))
		for _, word := range words {
			Expect(screen).To(ContainSubstring(word))
		}
		Expect(strings.Contains(screen, "< version 2")).To(Equal(version == 2))
	},
		Entry("version 0", 0, "# service=git-upload-pack"),
		Entry("version 1", 1, "< version 1"),
		Entry("version 2", 2, "< version 2", "> command=ls-refs"),
	)

	It("accepts compressed requests", func() {
		dana := library.clone("dana")
		// Git first names the newest commits, which the server does not have, and so names many.
		newest := dana.With("GIT_COMMITTER_DATE=2038-01-01T00:00:00Z")
		for i := range 40 {
			newest.Git("commit", "--quiet", "--allow-empty", "--message", fmt.Sprint("Only here ", i))
		}
		max.Commit("news.txt", "New.\n")
		max.MustPush("main")
		screen, err := dana.With("GIT_TRACE_CURL=1", "GIT_TRACE_CURL_NO_DATA=1").Try("git", "fetch", "origin")
		Expect(err).NotTo(HaveOccurred(), screen)
		Expect(sent(screen)).To(ContainElement(MatchRegexp("(?i)content-encoding: gzip")))
		Expect(dana.Git("rev-parse", "origin/main")).To(Equal(max.Git("rev-parse", "HEAD")))
	})

	It("accepts a long push in chunks", func() {
		content := make([]byte, soak.Times(5, 50)<<20)
		_, _ = rand.NewChaCha8([32]byte{}).Read(content)
		dana := library.clone("dana")
		Expect(os.WriteFile(filepath.Join(dana.Dir, "film"), content, 0o644)).To(Succeed())
		dana.Git("-c", "core.compression=0", "add", "film")
		dana.Git("commit", "--quiet", "--message", "Add a film")
		begun := time.Now()
		screen, err := dana.With("GIT_TRACE_CURL=1", "GIT_TRACE_CURL_NO_DATA=1").
			Try("git", "-c", "core.compression=0", "push", "origin", "HEAD:refs/heads/film")
		Expect(err).NotTo(HaveOccurred(), screen)
		report(fmt.Sprint(len(content), " bytes pushed after"), time.Since(begun))
		Expect(sent(screen)).To(ContainElement(MatchRegexp("(?i)transfer-encoding: chunked")))
		reader := library.as("max").Clone("--depth=1", "--branch=film", library.url("app"))
		got, err := os.ReadFile(filepath.Join(reader.Dir, "film"))
		Expect(err).NotTo(HaveOccurred())
		Expect(bytes.Equal(got, content)).To(BeTrue())
	})
})

// sent returns the headers that git has sent, according to its trace.
func sent(trace string) (headers []string) {
	for line := range strings.Lines(trace) {
		if _, header, found := strings.Cut(line, "=> Send header: "); found {
			headers = append(headers, strings.TrimSpace(header))
		}
	}
	return headers
}
