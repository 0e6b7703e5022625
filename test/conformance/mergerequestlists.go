package conformance

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/activity"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// listedRequests adds two merge requests of a team's project to the activity database: a draft by the maintainer, which has the milestone of the
// given id, and one that nobody has written.
func listedRequests(t team, word string, planned int64) {
	GinkgoHelper()
	made := newItems(t).issue
	stores, err := activity.Open(context.Background(), activityDatabase, clock.RealClock{})
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(stores.Database.Close()).To(Succeed()) }()
	for _, m := range []mergerequest.MergeRequest{
		{SourceBranch: "one", Title: "Draft: First " + word, Author: made.Author, Assignees: []database.User{made.Author}, Reviewers: []database.User{made.Author}, MilestoneID: planned},
		{SourceBranch: "two", Title: "Second", Description: "a " + word + " b"},
	} {
		m.In, m.Source, m.TargetBranch = made.In, made.In, "main"
		Expect(stores.MergeRequests.Create(context.Background(), &m)).To(Succeed())
	}
}

func requestIIDs(some []*gitlab.BasicMergeRequest, r *gitlab.Response, err error) []int64 {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	Expect(r.StatusCode).To(Equal(200))
	all := []int64{}
	for _, m := range some {
		all = append(all, m.IID)
	}
	return all
}

var _ = throughEachDoor("Lists of merge requests", func(d *door) {
	It("are filtered in a project, in a group and everywhere", func() {
		team, word := d.newTeam(gitlab.PrivateVisibility), fresh("word")
		listedRequests(team, word, 0)
		c := d.as(developer).MergeRequests
		for filter, want := range map[*gitlab.ListMergeRequestsOptions][]int64{
			{}:                                {2, 1},
			{Sort: gitlab.Ptr("asc")}:         {1, 2},
			{State: gitlab.Ptr("merged")}:     {},
			{WIP: gitlab.Ptr("yes")}:          {1},
			{SourceBranch: gitlab.Ptr("two")}: {2},
			{TargetBranch: gitlab.Ptr("dev")}: {},
			{In: gitlab.Ptr("title")}:         {1},
			{AuthorID: &maintainer.id}:        {1},
			{AssigneeID: gitlab.AssigneeID(gitlab.UserIDNone)}:     {2},
			{ReviewerID: gitlab.ReviewerID(gitlab.UserIDAny)}:      {1},
			{ApprovedByIDs: gitlab.ApproverIDs(gitlab.UserIDNone)}: {2, 1},
			{Labels: &gitlab.LabelOptions{"None"}}:                 {2, 1},
			{NotLabels: &gitlab.LabelOptions{"bug"}}:               {2, 1},
			{View: gitlab.Ptr("simple")}:                           {2, 1},
		} {
			o := *filter
			o.Search, o.Scope = &word, gitlab.Ptr("all")
			Expect(requestIIDs(c.ListMergeRequests(&o))).To(Equal(want), "%+v", o)
			inGroup := gitlab.ListGroupMergeRequestsOptions{
				Search: o.Search, Sort: o.Sort, State: o.State, WIP: o.WIP, SourceBranch: o.SourceBranch, TargetBranch: o.TargetBranch, In: o.In, AuthorID: o.AuthorID,
				AssigneeID: o.AssigneeID, ReviewerID: o.ReviewerID, ApprovedByIDs: o.ApprovedByIDs, Labels: o.Labels, NotLabels: o.NotLabels, View: o.View,
			}
			Expect(requestIIDs(c.ListGroupMergeRequests(team.group.ID, &inGroup))).To(Equal(want), "%+v", o)
			if o.In != nil {
				continue // the client has no such option for projects
			}
			inProject := gitlab.ListProjectMergeRequestsOptions{
				Search: o.Search, Sort: o.Sort, State: o.State, WIP: o.WIP, SourceBranch: o.SourceBranch, TargetBranch: o.TargetBranch, AuthorID: o.AuthorID,
				AssigneeID: o.AssigneeID, ReviewerID: o.ReviewerID, ApprovedByIDs: o.ApprovedByIDs, Labels: o.Labels, NotLabels: o.NotLabels, View: o.View,
			}
			Expect(requestIIDs(c.ListProjectMergeRequests(team.project.ID, &inProject))).To(Equal(want), "%+v", o)
		}
		Expect(requestIIDs(d.as(maintainer).MergeRequests.ListMergeRequests(&gitlab.ListMergeRequestsOptions{Search: &word}))).To(Equal([]int64{1}))
		_, r, err := c.ListProjectMergeRequests(team.project.ID, &gitlab.ListProjectMergeRequestsOptions{OrderBy: gitlab.Ptr("priority")})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`400 {"error":"order_by does not have a valid value"}`))
		_, r, err = d.as(nobody).MergeRequests.ListMergeRequests(&gitlab.ListMergeRequestsOptions{})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`401 {"message":"401 Unauthorized"}`))
	})

	It("show what belongs to a milestone", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		made, _, err := d.as(developer).Milestones.CreateMilestone(team.project.ID, &gitlab.CreateMilestoneOptions{Title: gitlab.Ptr("1.0")})
		Expect(err).NotTo(HaveOccurred())
		above, _, err := d.as(developer).GroupMilestones.CreateGroupMilestone(team.group.ID, &gitlab.CreateGroupMilestoneOptions{Title: gitlab.Ptr("All")})
		Expect(err).NotTo(HaveOccurred())
		listedRequests(team, "x", made.ID)
		Expect(requestIIDs(d.as(developer).Milestones.GetMilestoneMergeRequests(team.project.ID, made.ID, nil))).To(Equal([]int64{1}))
		Expect(requestIIDs(d.as(developer).GroupMilestones.GetGroupMilestoneMergeRequests(team.group.ID, above.ID, nil))).To(BeEmpty())
		issue := d.newIssue(maintainer, team.project.ID, gitlab.CreateIssueOptions{Title: gitlab.Ptr("Planned"), MilestoneID: &made.ID})
		issues, _, err := d.as(guest).Milestones.GetMilestoneIssues(team.project.ID, made.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(issues).To(HaveExactElements(HaveField("ID", issue.ID)))
		issues, _, err = d.as(guest).GroupMilestones.GetGroupMilestoneIssues(team.group.ID, above.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(issues).To(BeEmpty())
	})
})
