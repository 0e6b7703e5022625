package conformance

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// push fills the repository of a project from a client as soon as the repository exists.
func push(p *gitlab.Project, c *gittest.Client) {
	GinkgoHelper()
	Eventually(func() error {
		_, err := c.Try("push", "--quiet", "--all", remote(p))
		return err
	}).WithPolling(polling).Should(Succeed())
}

// newHistory has three files on main, and two branches that diverge from there: left and right/side.
func newHistory() *gittest.Client {
	GinkgoHelper()
	c := gittest.New(GinkgoTB(), "sha1")
	for _, path := range []string{"README.md", "docs/a b.md", "docs/api/ünï.md"} {
		c.Commit(GinkgoTB(), path, "content of "+path+"\n")
	}
	for _, branch := range []string{"left", "right/side"} {
		c.Git(GinkgoTB(), "checkout", "--quiet", "-b", branch, "main")
		c.Commit(GinkgoTB(), "file", branch+"\n")
	}
	c.Git(GinkgoTB(), "checkout", "--quiet", "main")
	return c
}

// pushWide pushes the branch "wide", and returns the type of each path in it.
func pushWide(p *gitlab.Project, c *gittest.Client) map[string]string {
	GinkgoHelper()
	const directories, filesEach = 400, 49
	entries := map[string]string{}
	stream := bytes.NewBufferString("commit refs/heads/wide\ncommitter Ann Author <ann@example.com> 1700000000 +0000\ndata 0\n")
	for n := range directories {
		entries[fmt.Sprintf("d%03d", n)] = "tree"
		for m := range filesEach {
			path := fmt.Sprintf("d%03d/file-%02d", n, m)
			entries[path] = "blob"
			fmt.Fprintf(stream, "M 100644 inline %s\ndata 1\n%d\n", path, m%7)
		}
	}
	c.Import(GinkgoTB(), stream)
	push(p, c)
	return entries
}

// files are the files in an archive, by the end of their names.
func files(format string, text []byte) (names []string) {
	GinkgoHelper()
	var in io.Reader = bytes.NewReader(text)
	var err error
	switch format {
	case "zip":
		z, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
		Expect(err).NotTo(HaveOccurred())
		for _, f := range z.File {
			if !strings.HasSuffix(f.Name, "/") {
				names = append(names, f.Name)
			}
		}
		return names
	case "tar":
	case "bz2", "tar.bz2", "tbz", "tbz2", "tb2":
		in = bzip2.NewReader(in)
	default:
		in, err = gzip.NewReader(in)
		Expect(err).NotTo(HaveOccurred())
	}
	for archive := tar.NewReader(in); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		Expect(err).NotTo(HaveOccurred())
		if h.Typeflag == tar.TypeReg {
			names = append(names, h.Name)
		}
	}
}

var _ = throughEachDoor("Repositories", func(d *door) {
	var team team
	var history *gittest.Client
	BeforeEach(func() {
		team, history = d.newTeam(gitlab.PrivateVisibility), newHistory()
		push(team.project, history)
	})
	rev := func(name string) string {
		GinkgoHelper()
		return history.Git(GinkgoTB(), "rev-parse", name)
	}
	both := func() []any { return []any{team.project.ID, team.project.PathWithNamespace} }

	It("list the files of a directory", func() {
		for _, id := range both() {
			top, r, err := d.as(developer).Repositories.ListTree(id, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(top).To(HaveExactElements(
				Equal(&gitlab.TreeNode{ID: rev("main:docs"), Name: "docs", Type: "tree", Path: "docs", Mode: "040000"}),
				Equal(&gitlab.TreeNode{ID: rev("main:README.md"), Name: "README.md", Type: "blob", Path: "README.md", Mode: "100644"}),
			))
			Expect(r.TotalItems).To(Equal(int64(2)))
		}
		below, _, err := d.as(developer).Repositories.ListTree(team.project.ID, &gitlab.ListTreeOptions{
			Path: gitlab.Ptr("docs"), Ref: gitlab.Ptr("right/side"), Recursive: gitlab.Ptr(true),
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(below).To(HaveExactElements(HaveField("Path", "docs/api"), HaveField("Path", "docs/a b.md"), HaveField("Path", "docs/api/ünï.md")))
	})

	It("list all files, page by page, each once", d.again(), func() {
		all := func(perPage int64, branch string) []*gitlab.TreeNode {
			options := &gitlab.ListTreeOptions{
				ListOptions: gitlab.ListOptions{Pagination: "keyset", PerPage: perPage}, Recursive: gitlab.Ptr(true), Ref: &branch,
			}
			found, err := gitlab.ScanAndCollect(func(p gitlab.PaginationOptionFunc) ([]*gitlab.TreeNode, *gitlab.Response, error) {
				return d.as(developer).Repositories.ListTree(team.project.PathWithNamespace, options, p)
			})
			Expect(err).NotTo(HaveOccurred())
			return found
		}
		Expect(all(2, "left")).To(HaveExactElements(HaveField("Path", "docs"), HaveField("Path", "docs/api"), HaveField("Path", "README.md"),
			HaveField("Path", "docs/a b.md"), HaveField("Path", "docs/api/ünï.md"), HaveField("Path", "file")))

		entries := pushWide(team.project, history)
		Expect(entries).To(HaveLen(20_000))
		for _, e := range all(100, "wide") {
			// A matcher would compare every key.
			if kind, there := entries[e.Path]; !there || kind != e.Type {
				Fail(fmt.Sprintf("%s is a %s, and there are %d more: want it once", e.Path, e.Type, len(entries)))
			}
			delete(entries, e.Path)
		}
		Expect(entries).To(BeEmpty())
	})

	It("provide the content of files", func() {
		id := rev("main:docs/api/ünï.md")
		for _, project := range both() {
			raw, r, err := d.as(developer).Repositories.RawBlobContent(project, id)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(raw)).To(Equal("content of docs/api/ünï.md\n"))
			Expect(r.Header.Get("X-Gitlab-Blob-Id")).To(Equal(id))
			Expect(r.Header.Get("Content-Type")).To(HavePrefix("text/plain"))
			text, _, err := d.as(developer).Repositories.Blob(project, id)
			Expect(err).NotTo(HaveOccurred())
			var blob struct {
				Size                   int
				Encoding, Content, SHA string
			}
			Expect(json.Unmarshal(text, &blob)).To(Succeed())
			Expect(blob.Size).To(Equal(len(raw)))
			Expect(blob.Encoding).To(Equal("base64"))
			Expect(blob.SHA).To(Equal(id))
			Expect(base64.StdEncoding.DecodeString(blob.Content)).To(Equal(raw))
		}
	})

	It("can be downloaded as archives", func() {
		c, commit := d.as(developer).Repositories, rev("main")
		name := fmt.Sprintf("%s-main-%s", team.project.Path, commit)
		for _, format := range []string{"", "tar.gz", "tgz", "gz", "tar.bz2", "tbz", "tbz2", "tb2", "bz2", "tar", "zip"} {
			options := &gitlab.ArchiveOptions{}
			if format != "" {
				options.Format = &format
			}
			text, r, err := c.Archive(team.project.PathWithNamespace, options)
			Expect(err).NotTo(HaveOccurred(), format)
			Expect(files(format, text)).To(HaveExactElements(name+"/README.md", name+"/docs/a b.md", name+"/docs/api/ünï.md"), format)
			Expect(r.Header.Get("Content-Disposition")).To(HavePrefix(`attachment; filename="`+name+`.`), format)
		}
		var streamed bytes.Buffer
		_, err := c.StreamArchive(team.project.ID, &streamed, &gitlab.ArchiveOptions{
			Format: gitlab.Ptr("zip"), SHA: gitlab.Ptr("right/side"), Path: gitlab.Ptr("docs/api"),
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(files("zip", streamed.Bytes())).To(HaveExactElements(
			fmt.Sprintf("%s-right-side-%s-docs-api/docs/api/ünï.md", team.project.Path, rev("right/side")),
		))
	})

	It("can be compared", func() {
		for _, id := range both() {
			found, _, err := d.as(developer).Repositories.Compare(id, &gitlab.CompareOptions{From: gitlab.Ptr("left"), To: gitlab.Ptr("right/side")})
			Expect(err).NotTo(HaveOccurred())
			Expect(found.Commits).To(HaveExactElements(HaveField("ID", rev("right/side"))))
			Expect(found.Commit).To(Equal(found.Commits[0]))
			Expect(found.Diffs).To(HaveExactElements(Equal(&gitlab.Diff{
				Diff: "@@ -0,0 +1 @@\n+right/side\n", OldPath: "file", NewPath: "file", AMode: "0", BMode: "100644", NewFile: true,
			})))
			Expect(found.CompareTimeout).To(BeFalse())
			Expect(found.CompareSameRef).To(BeFalse())
			Expect(found.WebURL).To(Equal(fmt.Sprintf("%s/-/compare/%s...%s", team.project.WebURL, rev("left"), rev("right/side"))))
		}
		straight, _, err := d.as(developer).Repositories.Compare(team.project.ID, &gitlab.CompareOptions{
			From: gitlab.Ptr("left"), To: gitlab.Ptr("right/side"), Straight: gitlab.Ptr(true), Unidiff: gitlab.Ptr(true), FromProjectID: &team.project.ID,
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(straight.Diffs).To(HaveExactElements(HaveField("Diff", "--- a/file\n+++ b/file\n@@ -1 +1 @@\n-left\n+right/side\n")))
		same, _, err := d.as(developer).Repositories.Compare(team.project.ID, &gitlab.CompareOptions{From: gitlab.Ptr("main"), To: gitlab.Ptr(rev("main"))})
		Expect(err).NotTo(HaveOccurred())
		Expect(same.CompareSameRef).To(BeTrue())
		Expect(same.Commit).To(BeNil())
	})

	It("show contributors and merge bases", func() {
		for _, id := range both() {
			all, r, err := d.as(developer).Repositories.Contributors(id, &gitlab.ListContributorsOptions{OrderBy: gitlab.Ptr("name"), Sort: gitlab.Ptr("desc")})
			Expect(err).NotTo(HaveOccurred())
			Expect(all).To(HaveExactElements(Equal(&gitlab.Contributor{Name: "Ann Author", Email: "ann@example.com", Commits: 3})))
			Expect(r.TotalItems).To(Equal(int64(1)))
			base, _, err := d.as(developer).Repositories.MergeBase(id, &gitlab.MergeBaseOptions{Ref: &[]string{"left", "right/side", "main"}})
			Expect(err).NotTo(HaveOccurred())
			Expect(base.ID).To(Equal(rev("main")))
			Expect(base.ParentIDs).To(Equal([]string{rev("main~1")}))
			Expect(base.Title).To(Equal(history.Git(GinkgoTB(), "show", "--no-patch", "--format=%s", "main")))
			Expect(base.AuthoredDate.Unix()).To(Equal(base.CommittedDate.Unix()))
			Expect(base.WebURL).To(Equal(team.project.WebURL + "/-/commit/" + rev("main")))
		}
	})

	It("say what is missing, and who cannot see it", d.again(), func() {
		at := fmt.Sprintf("projects/%d/repository/", team.project.ID)
		for request, want := range map[string]string{
			"tree?ref=x":             `404 {"message":"404 Tree Not Found"}`,
			"tree?path=x":            `404 {"message":"404 invalid revision or path Not Found"}`,
			"tree?pagination=none":   `400 {"error":"pagination cannot be \"none\" unless \"recursive\" is true"}`,
			"blobs/x":                `404 {"message":"404 Blob Not Found"}`,
			"blobs/x/raw":            `404 {"message":"404 Blob Not Found"}`,
			"archive.zip?sha=x":      `404 {"message":"404 File Not Found"}`,
			"compare?from=main&to=x": `404 {"message":"404 Ref Not Found"}`,
			"compare?from=main":      `400 {"error":"to is missing"}`,
			"compare?from=main&to=left&from_project_id=1": fmt.Sprintf(`400 {"message":"Target project id:1 is not a fork of project id:%d"}`, team.project.ID),
			"contributors?ref=x":                          `404 {"message":"404 Not Found"}`,
			"contributors?order_by=x":                     `400 {"error":"order_by does not have a valid value"}`,
			"merge_base?refs[]=main":                      `400 {"message":"Provide at least 2 refs"}`,
			"merge_base?refs=main,x,y":                    `400 {"message":"Could not find refs: x, y"}`,
			"merge_base":                                  `400 {"error":"refs is missing"}`,
			"tree?ref=right/side&path=.":                  `404 {"message":"404 invalid revision or path Not Found"}`,
		} {
			Expect(answered(send(d.as(developer), "GET "+at+request, ""))).To(Equal(want), request)
		}
		for _, request := range []string{"tree", "blobs/" + rev("main:README.md"), "archive", "compare?from=main&to=left", "contributors", "merge_base?refs=main,left"} {
			Expect(answered(send(d.as(guest), "GET "+at+request, ""))).To(Equal(`403 {"message":"403 Forbidden"}`), request)
			Expect(answered(send(d.as(outsider), "GET "+at+request, ""))).To(Equal(`404 {"message":"404 Project Not Found"}`), request)
			Expect(answered(send(d.as(nobody), "GET "+at+request, ""))).To(Equal(`404 {"message":"404 Project Not Found"}`), request)
		}
	})

	It("are visible to everybody in a public project, and empty until the first push", d.again(), func() {
		public := d.newTeam(gitlab.PublicVisibility)
		at := fmt.Sprintf("GET projects/%d/repository/", public.project.ID)
		Expect(answered(send(d.as(nobody), at+"tree", ""))).To(Equal(`404 {"message":"404 Tree Not Found"}`))
		Expect(answered(send(d.as(nobody), at+"archive", ""))).To(Equal(`404 {"message":"404 File Not Found"}`))
		push(public.project, history)
		Expect(answered(send(d.as(nobody), at+"blobs/"+rev("main:README.md")+"/raw", ""))).To(Equal("200 content of README.md"))
	})
})
