package object_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/history"
)

func TestReadCommit_decodesLikeGit(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	commits := []struct{ encoding, author, message, title string }{
		{"ISO-8859-1", "J\xf6rg", "Gr\xfc\xdfe\n\nM\xfc\x92de\n\nChangelog: ge\xe4ndert", "Grüße"},
		{"iso8859-1", "J\xf6rg", "\x92", "\u0092"},
		{"latin-1", "J\xf6rg", "Gr\xfc\xdfe", "Grüße"},
		{"ISO8859-15", "J\xf6rg", "5 \xa4", "5 €"},
		{"windows-1252", "J\xf6rg", "5 \x80", "5 €"},
		{"CP1251", "\xce\xeb\xff", "\xcf\xf0\xe8\xe2\xe5\xf2", "Привет"},
		{"KOI8-R", "\xef\xcc\xd1", "\xf0\xd2\xc9\xd7\xc5\xd4", "Привет"},
		{"EUC-JP", "\xc5\xc4", "\xc6\xfc\xcb\xdc\n\n\xb8\xec", "日本"},
		{"SJIS", "\x93c", "\x93\xfa\x96{", "日本"},
		{"ISO-2022-JP", "\x1b$BED\x1b(B", "\x1b$BF|K\\\x1b(B\n\n<a@b>", "日本"},
		{"GB18030", "\xcc\xef", "\xc8\xd5\xb1\xbe", "日本"},
		{"GB2312", "\xcc\xef", "\xc8\xd5\xb1\xbe", "日本"},
		{"Big5", "\xa5\xd0", "\xa4\xe9\xa5\xbb", "日本"},
		{"EUC-KR", "\xb1\xe8", "\xc7\xd1\xb1\xb9", "한국"},
		{"UTF-8", "Jörg", "Grüße", "Grüße"},
		{"windows-1252", "Jörg", "\x81", "\uFFFD"},
		{"EUC-JP", "Jörg", "Grüße", "Grüße"},
		{"klingon", "Jörg", "Gr\xfc\xdfe", "Gr\uFFFDe"},
	}
	for _, x := range commits {
		c.Env = []string{"GIT_AUTHOR_NAME=" + x.author, "GIT_COMMITTER_NAME=" + x.author + " 2"}
		c.Git(t, "-c", "i18n.commitEncoding="+x.encoding, "commit", "--quiet", "--allow-empty", "--message="+x.message)
	}
	r := gittest.Bare(t, c)
	i := len(commits)
	for walked, err := range history.Walk(t.Context(), r, history.Log{Tips: []string{c.Git(t, "rev-parse", "HEAD")}, Limit: i}) {
		g.Expect(err).NotTo(HaveOccurred())
		i--
		about := commits[i].encoding + ": " + commits[i].title
		g.Expect(walked.Title()).To(Equal(commits[i].title), about)
		said := strings.ToValidUTF8(c.Git(t, "show", "--no-patch", "--format=%an%n%cn%n%B", walked.ID), "\uFFFD")
		g.Expect(walked.Author.Name+"\n"+walked.Committer.Name+"\n"+walked.Message).To(Equal(said), about)
		g.Expect(r.ReadCommit(t.Context(), walked.ID)).To(Equal(walked), about)
	}
	g.Expect(i).To(BeZero())
}

func TestReadCommit_ignoresEncodingsWithoutASCII(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	for _, encoding := range []string{"UTF-16", "UTF-16LE", "IBM037", "ISO-2022-CN", "replacement"} {
		c.Git(t, "-c", "i18n.commitEncoding="+encoding, "commit", "--quiet", "--allow-empty", "--message=Nothing")
	}
	commits, _, err := history.List(t.Context(), gittest.Bare(t, c), history.Log{Tips: []string{c.Git(t, "rev-parse", "HEAD")}, Limit: 5})
	if err != nil || len(commits) != 5 {
		t.Fatalf("there are %d commits (%v)", len(commits), err)
	}
	for _, got := range commits {
		if got.Title() != "Nothing" || got.Author.Email != "ann@example.com" || got.Author.When.Unix() == 0 {
			t.Errorf("it is %+v", got)
		}
	}
}
