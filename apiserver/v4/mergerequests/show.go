package mergerequests

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/milestone"
	"github.com/forgeplane/forgeplane/internal/note"
	"github.com/forgeplane/forgeplane/internal/pipeline"
	"github.com/forgeplane/forgeplane/internal/reaction"
)

// MergeRequest is "Merge request" of the core interface document, as lists show it.
type MergeRequest struct {
	ID                          int64                    `json:"id"`
	IID                         int64                    `json:"iid"`
	ProjectID                   int64                    `json:"project_id"`
	Title                       string                   `json:"title"`
	Description                 string                   `json:"description"`
	State                       mergerequest.State       `json:"state" doc:"opened, closed, locked or merged."`
	CreatedAt                   endpoint.Time            `json:"created_at"`
	UpdatedAt                   endpoint.Time            `json:"updated_at"`
	MergedBy                    *entity.UserSummary      `json:"merged_by" doc:"Deprecated for merge_user."`
	MergeUser                   *entity.UserSummary      `json:"merge_user"`
	MergedAt                    endpoint.Time            `json:"merged_at"`
	PreparedAt                  endpoint.Time            `json:"prepared_at"`
	ClosedBy                    *entity.UserSummary      `json:"closed_by"`
	ClosedAt                    endpoint.Time            `json:"closed_at"`
	TargetBranch                string                   `json:"target_branch"`
	SourceBranch                string                   `json:"source_branch"`
	UserNotesCount              int64                    `json:"user_notes_count"`
	Upvotes                     int64                    `json:"upvotes"`
	Downvotes                   int64                    `json:"downvotes"`
	Author                      *entity.UserSummary      `json:"author" doc:"Null if the user is gone."`
	Assignees                   []*entity.UserSummary    `json:"assignees"`
	Assignee                    *entity.UserSummary      `json:"assignee" doc:"The first assignee."`
	Reviewers                   []*entity.UserSummary    `json:"reviewers"`
	SourceProjectID             *int64                   `json:"source_project_id" doc:"Null if the project is gone."`
	TargetProjectID             int64                    `json:"target_project_id"`
	Labels                      any                      `json:"labels" doc:"Titles of the labels, or objects if the request asks for details."`
	Draft                       bool                     `json:"draft"`
	WorkInProgress              bool                     `json:"work_in_progress" doc:"Deprecated for draft."`
	Milestone                   *entity.Milestone        `json:"milestone"`
	MergeWhenPipelineSucceeds   bool                     `json:"merge_when_pipeline_succeeds"`
	MergeStatus                 mergerequest.MergeStatus `json:"merge_status" doc:"Deprecated for detailed_merge_status."`
	DetailedMergeStatus         string                   `json:"detailed_merge_status" doc:"mergeable, or why the merge request cannot be merged."`
	SHA                         *string                  `json:"sha" doc:"Head of the last version; null if the source branch has never existed."`
	MergeCommitSHA              *string                  `json:"merge_commit_sha"`
	SquashCommitSHA             *string                  `json:"squash_commit_sha"`
	DiscussionLocked            *bool                    `json:"discussion_locked"`
	ShouldRemoveSourceBranch    *bool                    `json:"should_remove_source_branch"`
	ForceRemoveSourceBranch     bool                     `json:"force_remove_source_branch"`
	AllowCollaboration          *bool                    `json:"allow_collaboration,omitempty" doc:"Only if the source branch is in a fork."`
	AllowMaintainerToPush       *bool                    `json:"allow_maintainer_to_push,omitempty" doc:"Same as allow_collaboration."`
	Reference                   string                   `json:"reference" doc:"Deprecated for references."`
	References                  item.References          `json:"references"`
	WebURL                      string                   `json:"web_url"`
	TimeStats                   item.TimeStats           `json:"time_stats"`
	Squash                      bool                     `json:"squash" doc:"Whether the merge request asks for one commit of all."`
	SquashOnMerge               bool                     `json:"squash_on_merge" doc:"Whether a merge makes one commit of all, by the merge request and squash_option of the project."`
	Tasks                       item.Tasks               `json:"task_completion_status"`
	HasConflicts                bool                     `json:"has_conflicts"`
	BlockingDiscussionsResolved bool                     `json:"blocking_discussions_resolved"`
	ApprovalsBeforeMerge        *int64                   `json:"approvals_before_merge" doc:"Deprecated. Number of approvals that the merge request itself asks for; null for none."`
}

// Detailed is a merge request with what only the answers about a single one show.
type Detailed struct {
	MergeRequest
	Subscribed            bool                    `json:"subscribed"`
	ChangesCount          *string                 `json:"changes_count" doc:"Number of changed files; null while it is unknown."`
	LatestBuildStartedAt  endpoint.Time           `json:"latest_build_started_at" doc:"When the first job of head_pipeline began."`
	LatestBuildFinishedAt endpoint.Time           `json:"latest_build_finished_at"`
	FirstDeployedAt       endpoint.Time           `json:"first_deployed_to_production_at"`
	Pipeline              *entity.Pipeline        `json:"pipeline" doc:"Same as head_pipeline, in short."`
	HeadPipeline          *entity.PipelineDetails `json:"head_pipeline" doc:"Newest pipeline of the last version; null without one, and for callers who cannot see it."`
	DiffRefs              *DiffRefs               `json:"diff_refs" doc:"Commits of the last version; null if the source branch has never existed."`
	MergeError            *string                 `json:"merge_error" doc:"Why the last merge failed."`
	FirstContribution     bool                    `json:"first_contribution"`
	User                  Viewer                  `json:"user"`
	DivergedCommitsCount  *int                    `json:"diverged_commits_count,omitempty"`
	RebaseInProgress      *bool                   `json:"rebase_in_progress,omitempty"`
}

// DiffRefs are the commits of a version of a merge request.
type DiffRefs struct {
	BaseSHA  string `json:"base_sha"`
	HeadSHA  string `json:"head_sha"`
	StartSHA string `json:"start_sha"`
}

// Viewer says what the caller can do.
type Viewer struct {
	CanMerge bool `json:"can_merge"`
}

// detail shows a merge request of the project of a request.
func (f *Family) detail(ctx context.Context, s auth.Subject, m mergerequest.MergeRequest) (Detailed, error) {
	shown, err := f.showOne(ctx, s, m)
	if err != nil {
		return Detailed{}, err
	}
	d := Detailed{MergeRequest: shown, ChangesCount: given(m.ChangesCount), MergeError: given(m.MergeError)}
	if m.Head != "" {
		d.DiffRefs = &DiffRefs{BaseSHA: m.Base, HeadSHA: m.Head, StartSHA: m.Start}
	}
	if d.Subscribed, err = item.Subscribed(ctx, &f.Kit, s, f.Activity.MergeRequests, m.Item(), people(m)); err != nil {
		return Detailed{}, err
	}
	if d.FirstContribution, err = f.firstContribution(ctx, s, m); err != nil {
		return Detailed{}, err
	}
	if d.User.CanMerge, err = f.canMerge(ctx, s, m); err != nil {
		return Detailed{}, err
	}
	if m.State == mergerequest.Merged {
		deployed, err := f.Activity.MergeRequests.FirstDeployed(ctx, m.ID)
		if err != nil {
			return Detailed{}, err
		}
		d.FirstDeployedAt = endpoint.Time(deployed)
	}
	err = f.showPipeline(ctx, s, m, &d)
	return d, err
}

// showOne shows a merge request of the project of a request, as lists do.
func (f *Family) showOne(ctx context.Context, s auth.Subject, m mergerequest.MergeRequest) (MergeRequest, error) {
	shown, err := f.show(ctx, s, map[types.UID]catalog.Scope{s.Scope.Project.UID: s.Scope}, []mergerequest.MergeRequest{m}, false)
	if err != nil {
		return MergeRequest{}, err
	}
	return shown[0], nil
}

// shower holds the related objects of the merge requests that it shows.
type shower struct {
	*Family
	users      map[types.UID]*entity.UserSummary
	labels     item.LabelsInForce
	milestones map[int64]milestone.Milestone
	notes      map[int64]note.Count
	reactions  map[int64]reaction.Count
	// consents says how far each merge request is approved.
	consents map[int64]consent
	// pipelines are the pipelines of the heads, as far as the project needs them for a merge.
	pipelines map[int64]pipeline.Pipeline
	// sources are the projects that have the source branches, by their UIDs, as far as they exist.
	sources map[types.UID]bool
	// details says that labels are shown as objects.
	details bool
}

// show shows merge requests of the given projects. It looks up the related objects of all merge requests at once.
func (f *Family) show(ctx context.Context, s auth.Subject, in map[types.UID]catalog.Scope, some []mergerequest.MergeRequest, details bool) ([]MergeRequest, error) {
	v := shower{Family: f, details: details, sources: map[types.UID]bool{}}
	var users []database.User
	var ids []int64
	milestones, labeled := map[int64]bool{}, map[types.UID]catalog.Scope{}
	for _, m := range some {
		if len(m.Labels) > 0 {
			labeled[m.In.UID] = in[m.In.UID]
		}
		users, ids = slices.Concat(users, []database.User{m.Author, m.Closer, merger(m)}, m.Assignees, m.Reviewers), append(ids, m.ID)
		if m.MilestoneID != 0 {
			milestones[m.MilestoneID] = true
		}
		if err := v.findSource(ctx, m); err != nil {
			return nil, err
		}
	}
	var err error
	if v.labels, err = item.InForce(ctx, f.Catalog, labeled); err != nil {
		return nil, err
	}
	if v.users, err = item.Users(ctx, f.Catalog, f.WebURL, users...); err != nil {
		return nil, err
	}
	if v.milestones, err = f.Activity.Milestones.WithIDs(ctx, slices.Collect(maps.Keys(milestones))...); err != nil {
		return nil, err
	}
	if v.notes, err = f.Activity.Notes.Counts(ctx, mergerequest.Kind, ids...); err != nil {
		return nil, err
	}
	if v.reactions, err = f.Activity.Reactions.Counts(ctx, mergerequest.Kind, ids...); err != nil {
		return nil, err
	}
	if v.consents, err = f.consents(ctx, f.committers, some...); err != nil {
		return nil, err
	}
	if v.pipelines, err = f.requiredPipelines(ctx, in, some); err != nil {
		return nil, err
	}
	shown := make([]MergeRequest, len(some))
	for n, m := range some {
		shown[n] = v.mergeRequest(in[m.In.UID], s.Scope, m)
	}
	return shown, nil
}

// findSource looks up whether the source project of a merge request exists.
func (v *shower) findSource(ctx context.Context, m mergerequest.MergeRequest) error {
	if m.Source.UID == m.In.UID {
		v.sources[m.Source.UID] = true
		return nil
	}
	_, err := catalog.ByIDAndUID[*v1alpha1.Project](ctx, v.Catalog, m.Source.ID, m.Source.UID)
	if err == nil {
		v.sources[m.Source.UID] = true
	}
	return catalog.IgnoreNotFound(err)
}

// mergeRequest shows a merge request of a project. from is the project or group of the request.
func (v *shower) mergeRequest(in, from catalog.Scope, m mergerequest.MergeRequest) MergeRequest {
	short := fmt.Sprintf("!%d", m.IID)
	merger := v.users[merger(m).UID]
	shown := MergeRequest{
		ID: m.ID, IID: m.IID, ProjectID: in.RESTID(), TargetProjectID: in.RESTID(), Title: m.Title, Description: m.Description, State: m.State,
		CreatedAt: endpoint.Time(m.Created), UpdatedAt: endpoint.Time(m.Updated), MergedBy: merger, MergeUser: merger, MergedAt: endpoint.Time(m.MergedAt),
		PreparedAt: endpoint.Time(m.PreparedAt), ClosedBy: v.users[m.Closer.UID], ClosedAt: endpoint.Time(m.ClosedAt),
		SourceBranch: m.SourceBranch, TargetBranch: m.TargetBranch,
		UserNotesCount: v.notes[m.ID].Notes, Upvotes: v.reactions[m.ID].Up, Downvotes: v.reactions[m.ID].Down, Author: v.users[m.Author.UID],
		Assignees: item.Known(v.users, m.Assignees), Reviewers: item.Known(v.users, m.Reviewers), Labels: v.labels.Show(m.In.UID, m.Labels, v.details),
		Draft: m.Draft, WorkInProgress: m.Draft, MergeStatus: m.MergeStatus, DetailedMergeStatus: v.detailedStatus(in, m),
		MergeWhenPipelineSucceeds: m.AutoMerge != nil, HasConflicts: hasConflicts(m),
		SHA: given(m.Head), MergeCommitSHA: given(m.MergeCommit), SquashCommitSHA: given(m.SquashCommit),
		DiscussionLocked: m.DiscussionLocked, ShouldRemoveSourceBranch: m.ShouldRemoveSource, ForceRemoveSourceBranch: m.RemoveSourceBranch,
		Reference: short, References: item.Refer(short, in, from), WebURL: fmt.Sprintf("%s/%s/-/merge_requests/%d", v.WebURL, in.Path(), m.IID),
		TimeStats: item.Times(m.Estimate, m.Spent), Squash: m.Squash,
		SquashOnMerge: in.Project.Spec.MergeRequests.Squash.Decide(m.Squash),
		Tasks:         item.CountTasks(m.Description), BlockingDiscussionsResolved: v.notes[m.ID].Unresolved == 0,
		Milestone: item.ShowMilestone(v.WebURL, in, v.milestones[m.MilestoneID], v.Clock.Now()),
	}
	if m.ApprovalsRequired > 0 {
		shown.ApprovalsBeforeMerge = &m.ApprovalsRequired
	}
	if len(shown.Assignees) > 0 {
		shown.Assignee = shown.Assignees[0]
	}
	if v.sources[m.Source.UID] {
		shown.SourceProjectID = &m.Source.ID
	}
	if m.Source.UID != m.In.UID {
		shown.AllowCollaboration, shown.AllowMaintainerToPush = &m.AllowCollaboration, &m.AllowCollaboration
	}
	return shown
}

// merger returns the user who merged a merge request. While an automatic merge waits, it returns the user who requested that merge.
func merger(m mergerequest.MergeRequest) database.User {
	if m.State == mergerequest.Opened && m.AutoMerge != nil {
		return m.AutoMerge.User
	}
	return m.Merger
}

// given returns nil for an empty text.
func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func hasConflicts(m mergerequest.MergeRequest) bool {
	return m.State == mergerequest.Opened && m.MergeStatus == mergerequest.CannotMerge && m.Head != ""
}

// detailedStatus returns mergeable, or the first reason why a merge request cannot be merged (API behaviour, section 2.5).
func (v *shower) detailedStatus(in catalog.Scope, m mergerequest.MergeRequest) string {
	p, c := v.pipelineStatus(in.Project, m), v.consents[m.ID]
	switch {
	case m.State != mergerequest.Opened:
		return "not_open"
	case m.MergeStatus == mergerequest.Unchecked || m.MergeStatus == mergerequest.CannotRecheck:
		return "unchecked"
	case m.MergeStatus == mergerequest.Checking:
		return "checking"
	case m.Draft:
		return "draft_status"
	case c.left() > 0:
		return "not_approved"
	case m.MergeStatus == mergerequest.CannotMerge:
		return "broken_status"
	case p != "": // the last one: a merge can wait for it
		return p
	default:
		return "mergeable"
	}
}
