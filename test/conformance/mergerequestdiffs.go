package conformance

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

var _ = throughEachDoor("Changes of merge requests", func(d *door) {
	It("are read as diffs, a patch, commits and versions", func() {
		team, history := d.cloned()
		git := func(args ...string) []string { return strings.Fields(history.Git(GinkgoTB(), args...)) }
		commits, head := git("rev-list", "main..left"), git("rev-parse", "left")[0]
		c := d.as(developer).MergeRequests
		made, _, err := c.CreateMergeRequest(team.project.ID, &gitlab.CreateMergeRequestOptions{
			Title: gitlab.Ptr("Left"), SourceBranch: gitlab.Ptr("left"), TargetBranch: gitlab.Ptr("main"),
		})
		Expect(err).NotTo(HaveOccurred())
		for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			changed, _, err := c.GetMergeRequestChanges(id, made.IID, &gitlab.GetMergeRequestChangesOptions{Unidiff: gitlab.Ptr(true)})
			Expect(err).NotTo(HaveOccurred())
			Expect(changed.SHA).To(Equal(head))

			diffs, r, err := c.ListMergeRequestDiffs(id, made.IID, &gitlab.ListMergeRequestDiffsOptions{Unidiff: gitlab.Ptr(true)})
			Expect(err).NotTo(HaveOccurred())
			var paths []string
			for _, one := range diffs {
				Expect(one.Diff).To(HavePrefix("--- "))
				paths = append(paths, one.NewPath)
			}
			Expect(paths).To(Equal(git("diff", "--name-only", "main...left")))
			Expect(r.TotalItems).To(Equal(int64(len(paths))))

			patch, r, err := c.ShowMergeRequestRawDiffs(id, made.IID, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(r.Header.Get("Content-Type")).To(HavePrefix("text/plain"))
			Expect(string(patch)).To(HavePrefix("diff --git a/" + paths[0]))

			listed, _, err := c.GetMergeRequestCommits(id, made.IID, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(listed).To(HaveLen(len(commits)))
			for n, one := range listed {
				Expect(one.ID).To(Equal(commits[n]))
			}

			versions, _, err := c.GetMergeRequestDiffVersions(id, made.IID, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(versions).To(HaveExactElements(And(HaveField("HeadCommitSHA", head), HaveField("MergeRequestID", made.ID), HaveField("State", "collected"))))
			version, _, err := c.GetSingleMergeRequestDiffVersion(id, made.IID, versions[0].ID, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(version.Diffs).To(HaveLen(len(paths)))
			Expect(version.Commits).To(HaveLen(len(commits)))
			_, r, err = c.GetSingleMergeRequestDiffVersion(id, made.IID, versions[0].ID+1000, nil)
			Expect(err).To(HaveOccurred())
			Expect(r.StatusCode).To(Equal(404))

			for _, commit := range slices.Concat(commits, []string{"left"}) {
				of, _, err := d.as(developer).Commits.ListMergeRequestsByCommit(id, commit)
				Expect(err).NotTo(HaveOccurred())
				Expect(of).To(HaveExactElements(HaveField("ID", made.ID)))
			}
			of, _, err := d.as(developer).Commits.ListMergeRequestsByCommit(id, "main")
			Expect(err).NotTo(HaveOccurred())
			Expect(of).To(BeEmpty())
		}
	})
})
