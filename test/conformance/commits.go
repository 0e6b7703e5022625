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

	It("are listed page by page, each once", d.again(), func() {
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

	It("are read with their changes and their refs", func() {
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

	It("are created from actions, and are subject to protections", d.again(), func() {
		team, history := d.cloned()
		c := d.as(developer).Commits
		created, r, err := c.CreateCommit(team.project.PathWithNamespace, &gitlab.CreateCommitOptions{
			Branch: gitlab.Ptr("feature/one"), StartBranch: gitlab.Ptr("left"), CommitMessage: gitlab.Ptr("Change much\n\nWhy"),
			AuthorName: gitlab.Ptr("Ann Author"), AuthorEmail: gitlab.Ptr("ann@example.com"),
			Actions: []*gitlab.CommitActionOptions{
				{Action: gitlab.Ptr(gitlab.FileCreate), FilePath: gitlab.Ptr("new/ünï \"x\""), Content: gitlab.Ptr("one\ntwo\n")},
				{Action: gitlab.Ptr(gitlab.FileMove), FilePath: gitlab.Ptr("docs/moved.md"), PreviousPath: gitlab.Ptr("docs/a b.md")},
				{Action: gitlab.Ptr(gitlab.FileUpdate), FilePath: gitlab.Ptr("README.md"), Content: gitlab.Ptr("AP8="), Encoding: gitlab.Ptr("base64")},
				{Action: gitlab.Ptr(gitlab.FileChmod), FilePath: gitlab.Ptr("README.md"), ExecuteFilemode: gitlab.Ptr(true)},
				{Action: gitlab.Ptr(gitlab.FileDelete), FilePath: gitlab.Ptr("file")},
			},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		history.Git(GinkgoTB(), "fetch", "--quiet", remote(team.project), "feature/one:feature/one")
		rev := func(name string) string { return history.Git(GinkgoTB(), "rev-parse", name) }
		Expect(created.ID).To(Equal(rev("feature/one")))
		Expect(created.ParentIDs).To(Equal([]string{rev("left")}))
		Expect(created.Message).To(Equal("Change much\n\nWhy"))
		Expect(created.Stats.Additions).To(BeNumerically(">=", 2))
		Expect(created.ProjectID).To(Equal(team.project.ID))
		Expect(history.Git(GinkgoTB(), "log", "-1", "--format=%an <%ae> %cn <%ce>", "feature/one")).To(
			Equal("Ann Author <ann@example.com> Called developer <developer@example.com>"))
		Expect(history.Git(GinkgoTB(), "diff-tree", "-r", "-z", "--no-commit-id", "--name-status", "feature/one")).To(Equal(
			strings.Join([]string{"M", "README.md", "D", "docs/a b.md", "A", "docs/moved.md", "D", "file", "A", "new/ünï \"x\"", ""}, "\x00")))
		Expect(history.Git(GinkgoTB(), "ls-tree", "feature/one", "README.md")).To(HavePrefix("100755 blob"))
		Expect(history.Git(GinkgoTB(), "show", "feature/one:README.md")).To(Equal("\x00\xff"))

		_, _, err = d.as(maintainer).ProtectedBranches.ProtectRepositoryBranches(team.project.ID, &gitlab.ProtectRepositoryBranchesOptions{
			Name: gitlab.Ptr("feature/*"), PushAccessLevel: gitlab.Ptr(gitlab.MaintainerPermissions),
		})
		Expect(err).NotTo(HaveOccurred())
		more := &gitlab.CreateCommitOptions{Branch: gitlab.Ptr("feature/one"), CommitMessage: gitlab.Ptr("More"), Stats: gitlab.Ptr(false)}
		_, r, err = c.CreateCommit(team.project.ID, more)
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden - You are not allowed to push into this branch"}`))
		created, _, err = d.as(maintainer).Commits.CreateCommit(team.project.ID, more)
		Expect(err).NotTo(HaveOccurred())
		Expect(created.ParentIDs).To(Equal([]string{rev("feature/one")}))
		Expect(created.Stats).To(BeNil())
	})

	It("are refused with the messages of the API", d.again(), func() {
		team, _ := d.cloned()
		at := "projects/" + gitlab.PathEscape(team.project.PathWithNamespace) + "/repository/commits"
		for body, want := range map[string]string{
			`{}`: `400 {"error":"branch is missing, commit_message is missing, actions is missing"}`,
			`{"branch":"left","commit_message":"x","actions":[{"action":"create","file_path":"README.md"}]}`: `400 {"message":"A file with this name already exists"}`,
			`{"branch":"left","commit_message":"x","actions":[{"action":"delete","file_path":"gone"}]}`:      `400 {"message":"A file with this name doesn't exist"}`,
			`{"branch":"gone","commit_message":"x","actions":[]}`:                                            `400 {"message":"You can only create or edit files when you are on a branch"}`,
		} {
			Expect(answered(send(d.as(developer), "POST "+at, body))).To(Equal(want), body)
		}
		Expect(answered(send(d.as(guest), "POST "+at, `{"branch":"left","commit_message":"x","actions":[]}`))).To(Equal(`403 {"message":"403 Forbidden"}`))
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
	It("are read by their paths", d.again(), func() {
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

	It("are created, updated and deleted by their paths", func() {
		team, history := d.cloned()
		c := d.as(developer).RepositoryFiles
		for i, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			branch := gitlab.Ptr(fmt.Sprintf("files/%d", i))
			created, r, err := c.CreateFile(id, "a b/ünï.md", &gitlab.CreateFileOptions{
				Branch: branch, StartBranch: gitlab.Ptr("main"), Content: gitlab.Ptr("one\n"), CommitMessage: gitlab.Ptr("Create"),
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(201))
			Expect(created).To(Equal(&gitlab.FileInfo{FilePath: "a b/ünï.md", Branch: *branch}))
			file, _, err := c.GetFile(id, "a b/ünï.md", &gitlab.GetFileOptions{Ref: branch})
			Expect(err).NotTo(HaveOccurred())
			update := &gitlab.UpdateFileOptions{
				Branch: branch, Content: gitlab.Ptr("AP8="), Encoding: gitlab.Ptr("base64"), CommitMessage: gitlab.Ptr("Update"),
				LastCommitID: gitlab.Ptr(file.LastCommitID), ExecuteFilemode: gitlab.Ptr(true),
			}
			_, r, err = c.UpdateFile(id, "a b/ünï.md", update)
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(200))
			_, r, err = c.UpdateFile(id, "a b/ünï.md", update)
			Expect(err).To(HaveOccurred())
			Expect(answered(r)).To(Equal(`400 {"message":"You are attempting to update a file that has changed since you started editing it."}`))
			history.Git(GinkgoTB(), "fetch", "--quiet", remote(team.project), *branch)
			Expect(history.Git(GinkgoTB(), "show", "FETCH_HEAD:a b/ünï.md")).To(Equal("\x00\xff"))
			Expect(history.Git(GinkgoTB(), "log", "-2", "--format=%s by %an", "FETCH_HEAD")).To(Equal("Update by Called developer\nCreate by Called developer"))
			r, err = c.DeleteFile(id, "a b/ünï.md", &gitlab.DeleteFileOptions{Branch: branch, CommitMessage: gitlab.Ptr("Delete")})
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(Equal("204"))
			_, r, err = c.GetFile(id, "a b/ünï.md", &gitlab.GetFileOptions{Ref: branch})
			Expect(err).To(MatchError(gitlab.ErrNotFound))
			Expect(answered(r)).To(Equal(`404 {"message":"404 File Not Found"}`))
		}
	})

	It("are refused with the messages of the API", d.again(), func() {
		team, _ := d.cloned()
		at := "projects/" + gitlab.PathEscape(team.project.PathWithNamespace) + "/repository/files/"
		write := `{"branch":"left","commit_message":"x","content":"x"}`
		for request, want := range map[string]string{
			"POST " + at + "README.md": `400 {"message":"A file with this name already exists"}`,
			"PUT " + at + "gone":       `400 {"message":"A file with this name doesn't exist"}`,
			"DELETE " + at + "gone":    `400 {"message":"A file with this name doesn't exist"}`,
			"POST " + at + ".git%2Fx":  `400 {"message":"invalid path: '.git/x'"}`,
		} {
			Expect(answered(send(d.as(developer), request, write))).To(Equal(want), request)
			Expect(answered(send(d.as(guest), request, write))).To(Equal(`403 {"message":"403 Forbidden"}`), request)
		}
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

	It("show their signatures, which are not verified", func() {
		team, history := d.cloned()
		t := GinkgoTB()
		history.Git(t, "branch", "signed", history.Write(t, "commit", "tree "+history.Git(t, "rev-parse", "HEAD^{tree}")+
			"\nauthor A <a@b> 0 +0000\ncommitter A <a@b> 0 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n\nSigned\n"))
		history.Git(t, "push", "--quiet", remote(team.project), "signed")
		c := d.as(developer).Commits
		got, _, err := c.GetGPGSignature(team.project.ID, "signed")
		Expect(err).NotTo(HaveOccurred())
		Expect(*got).To(Equal(gitlab.GPGSignature{VerificationStatus: "unknown_key"}))
		_, r, err := c.GetGPGSignature(team.project.PathWithNamespace, "main")
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(`404 {"message":"404 Signature Not Found"}`))
	})
})
