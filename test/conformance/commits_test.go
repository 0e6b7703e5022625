package conformance

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

var _ = throughEachDoor("Commits", func(d *door) {
	commitIDs := func(all []*gitlab.Commit) (ids []string) {
		for _, c := range all {
			ids = append(ids, c.ID)
		}
		return ids
	}

	It("are listed", func() {
		team, history := d.cloned()
		log := func(args ...string) []string {
			return strings.Fields(history.Git(GinkgoTB(), append([]string{"log", "--format=%H"}, args...)...))
		}
		c := d.as(developer).Commits
		for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			all, r, err := c.ListCommits(id, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(commitIDs(all)).To(Equal(log("main")))
			Expect(all[0].Title).To(Equal(`Change "docs/api/ünï.md"`))
			Expect(all[0].Stats).To(BeNil())
			Expect(all[0].WebURL).To(Equal(team.project.WebURL + "/-/commit/" + all[0].ID))
			Expect(r.TotalItems).To(BeZero())
			Expect(r.NextPage).To(BeZero())
		}
		for _, listed := range []struct {
			options gitlab.ListCommitsOptions
			want    []string
		}{
			{gitlab.ListCommitsOptions{RefName: gitlab.Ptr("right/side")}, log("right/side")},
			{gitlab.ListCommitsOptions{RefName: gitlab.Ptr("main..left")}, log("main..left")},
			{gitlab.ListCommitsOptions{All: gitlab.Ptr(true)}, log("--all")},
			{gitlab.ListCommitsOptions{Path: gitlab.Ptr("docs/a b.md")}, log("--", "docs/a b.md")},
			{gitlab.ListCommitsOptions{Author: gitlab.Ptr("nobody")}, nil},
			{gitlab.ListCommitsOptions{Author: gitlab.Ptr("Ann"), FirstParent: gitlab.Ptr(true)}, log("main")},
			{gitlab.ListCommitsOptions{Since: gitlab.Ptr(time.Now().Add(time.Hour))}, nil},
			{gitlab.ListCommitsOptions{Until: gitlab.Ptr(time.Now().Add(time.Hour))}, log("main")},
		} {
			all, _, err := c.ListCommits(team.project.ID, &listed.options)
			Expect(err).NotTo(HaveOccurred())
			Expect(commitIDs(all)).To(Equal(listed.want), "%+v", listed.options)
		}
		counted, _, err := c.ListCommits(team.project.ID, &gitlab.ListCommitsOptions{WithStats: gitlab.Ptr(true), Trailers: gitlab.Ptr(true)})
		Expect(err).NotTo(HaveOccurred())
		Expect(counted).To(HaveEach(HaveField("Stats", Equal(&gitlab.CommitStats{Additions: 1, Total: 1}))))
	})

	It("are listed page by page, each once", func() {
		team, history := d.cloned()
		for _, pagination := range []string{"", "keyset"} {
			all, err := gitlab.ScanAndCollect(func(p gitlab.PaginationOptionFunc) ([]*gitlab.Commit, *gitlab.Response, error) {
				return d.as(developer).Commits.ListCommits(team.project.PathWithNamespace, &gitlab.ListCommitsOptions{
					ListOptions: gitlab.ListOptions{PerPage: 2, Pagination: pagination}, RefName: gitlab.Ptr("left"),
				}, p)
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(commitIDs(all)).To(Equal(strings.Fields(history.Git(GinkgoTB(), "rev-list", "left"))))
		}
	})

	It("are read, with what they have changed and where they are", func() {
		team, history := d.cloned()
		history.Git(GinkgoTB(), "tag", "v1", "left")
		history.Git(GinkgoTB(), "push", "--quiet", remote(team.project), "v1")
		rev := func(name string) string { return history.Git(GinkgoTB(), "rev-parse", name) }
		c := d.as(developer).Commits
		for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			one, _, err := c.GetCommit(id, "right/side", nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(one.ID).To(Equal(rev("right/side")))
			Expect(one.ShortID).To(Equal(one.ID[:8]))
			Expect(one.ParentIDs).To(Equal([]string{rev("main")}))
			Expect(one.Message).To(Equal("Change \"file\"\n"))
			Expect(one.AuthorEmail).To(Equal("ann@example.com"))
			Expect(one.Stats).To(Equal(&gitlab.CommitStats{Additions: 1, Total: 1}))
			Expect(one.ProjectID).To(Equal(team.project.ID))
			Expect(one.Status).To(BeNil())
			Expect(one.LastPipeline).To(BeNil())
			short, _, err := c.GetCommit(id, one.ID[:10], &gitlab.GetCommitOptions{Stats: gitlab.Ptr(false)})
			Expect(err).NotTo(HaveOccurred())
			Expect(short.ID).To(Equal(one.ID))
			Expect(short.Stats).To(BeNil())

			changes, r, err := c.GetCommitDiff(id, "right/side", &gitlab.GetCommitDiffOptions{Unidiff: gitlab.Ptr(true)})
			Expect(err).NotTo(HaveOccurred())
			Expect(changes).To(HaveExactElements(Equal(&gitlab.Diff{
				Diff: "--- /dev/null\n+++ b/file\n@@ -0,0 +1 @@\n+right/side\n", OldPath: "file", NewPath: "file", AMode: "0", BMode: "100644", NewFile: true,
			})))
			Expect(r.TotalItems).To(Equal(int64(1)))

			refs, _, err := c.GetCommitRefs(id, rev("main"), nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(refs).To(HaveExactElements(Equal(&gitlab.CommitRef{Type: "branch", Name: "left"}), Equal(&gitlab.CommitRef{Type: "branch", Name: "main"}),
				Equal(&gitlab.CommitRef{Type: "branch", Name: "right/side"}), Equal(&gitlab.CommitRef{Type: "tag", Name: "v1"})))
			refs, _, err = c.GetCommitRefs(id, "left", &gitlab.GetCommitRefsOptions{Type: gitlab.Ptr("branch")})
			Expect(err).NotTo(HaveOccurred())
			Expect(refs).To(HaveExactElements(Equal(&gitlab.CommitRef{Type: "branch", Name: "left"})))
		}
	})

	It("are refused in the words of the API", func() {
		team, _ := d.cloned()
		at := "projects/" + gitlab.PathEscape(team.project.PathWithNamespace) + "/repository/commits"
		for _, refused := range []struct {
			who           *person
			request, want string
		}{
			{outsider, "GET " + at, `404 {"message":"404 Project Not Found"}`},
			{guest, "GET " + at, `403 {"message":"403 Forbidden"}`},
			{guest, "GET " + at + "/main/diff", `403 {"message":"403 Forbidden"}`},
			{developer, "GET " + at + "?ref_name=gone", `404 {"message":"404 Commit Not Found"}`},
			{developer, "GET " + at + "/gone", `404 {"message":"404 Commit Not Found"}`},
			{developer, "GET " + at + "/gone/diff", `404 {"message":"404 Commit Not Found"}`},
			{developer, "GET " + at + "/gone/refs", `404 {"message":"404 Commit Not Found"}`},
			{developer, "GET " + at + "/main/refs?type=x", `400 {"error":"type does not have a valid value"}`},
			{developer, "GET " + at + "?order=x", `400 {"error":"order does not have a valid value"}`},
		} {
			Expect(answered(send(d.as(refused.who), refused.request, ""))).To(Equal(refused.want), refused.request)
		}
	})
})

var _ = throughEachDoor("Files", func(d *door) {
	It("are read by their paths", func() {
		team, history := d.cloned()
		rev := func(name string) string { return history.Git(GinkgoTB(), "rev-parse", name) }
		c := d.as(developer).RepositoryFiles
		for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			for _, path := range []string{"README.md", "docs/a b.md", "docs/api/ünï.md"} {
				content := "content of " + path + "\n"
				want := &gitlab.File{
					FileName: path[strings.LastIndex(path, "/")+1:], FilePath: path, Size: int64(len(content)), Encoding: "base64",
					Content: base64.StdEncoding.EncodeToString([]byte(content)), Ref: "right/side", BlobID: rev("right/side:" + path), CommitID: rev("right/side"),
					SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(content))), LastCommitID: history.Git(GinkgoTB(), "rev-list", "--max-count=1", "main", "--", path),
				}
				file, _, err := c.GetFile(id, path, &gitlab.GetFileOptions{Ref: gitlab.Ptr("right/side")})
				Expect(err).NotTo(HaveOccurred())
				Expect(file).To(Equal(want))
				want.Content = ""
				file, _, err = c.GetFileMetaData(id, path, &gitlab.GetFileMetaDataOptions{Ref: gitlab.Ptr("right/side")})
				Expect(err).NotTo(HaveOccurred())
				Expect(file).To(Equal(want))

				raw, r, err := c.GetRawFile(id, path, nil)
				Expect(err).NotTo(HaveOccurred())
				Expect(string(raw)).To(Equal(content))
				Expect(r.Header.Get("Content-Type")).To(HavePrefix("text/plain"))
				Expect(r.Header.Get("Content-Disposition")).To(HavePrefix("inline; filename"))
				want.Ref, want.CommitID = "HEAD", rev("main")
				file, _, err = c.GetRawFileMetaData(id, path, nil)
				Expect(err).NotTo(HaveOccurred())
				Expect(file).To(Equal(want))
			}
			in, _, err := c.GetRawFileReader(id, "file", &gitlab.GetRawFileOptions{Ref: gitlab.Ptr("left"), LFS: gitlab.Ptr(true)})
			Expect(err).NotTo(HaveOccurred())
			Expect(io.ReadAll(in)).To(BeEquivalentTo("left\n"))
			Expect(in.Close()).To(Succeed())
		}
	})

	It("are refused in the words of the API", func() {
		team, _ := d.cloned()
		at := "projects/" + gitlab.PathEscape(team.project.PathWithNamespace) + "/repository/files/"
		for _, refused := range []struct {
			who           *person
			request, want string
		}{
			{outsider, "GET " + at + "README.md?ref=main", `404 {"message":"404 Project Not Found"}`},
			{guest, "GET " + at + "README.md?ref=main", `403 {"message":"403 Forbidden"}`},
			{developer, "GET " + at + "README.md", `400 {"error":"ref is missing"}`},
			{developer, "GET " + at + "README.md?ref=", `400 {"error":"ref is empty"}`},
			{developer, "GET " + at + "README.md?ref=gone", `404 {"message":"404 Commit Not Found"}`},
			{developer, "GET " + at + "gone?ref=main", `404 {"message":"404 File Not Found"}`},
			{developer, "GET " + at + "docs?ref=main", `404 {"message":"404 File Not Found"}`},
			{developer, "GET " + at + "gone/raw", `404 {"message":"404 File Not Found"}`},
			{developer, "GET " + at + "README.md/raw?ref=gone", `404 {"message":"404 Commit Not Found"}`},
		} {
			Expect(answered(send(d.as(refused.who), refused.request, ""))).To(Equal(refused.want), refused.request)
		}
	})
})
