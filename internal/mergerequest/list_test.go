package mergerequest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/milestone"
	"github.com/forgeplane/forgeplane/internal/reaction"
	"github.com/forgeplane/forgeplane/internal/search"
)

// sample is a merge request with the other data that conditions use.
type sample struct {
	mergerequest.MergeRequest
	milestone string
	reactions []string
	approvers []database.User
	rules     []mergerequest.ApprovalRule
	deployed  *mergerequest.Deployment
}

// names reports whether a rule names one of some users as approver.
func (s sample) names(users ...database.User) bool {
	return slices.ContainsFunc(s.rules, func(r mergerequest.ApprovalRule) bool {
		return slices.ContainsFunc(r.Approvers, func(a database.Subject) bool {
			return a.Kind == mergerequest.KindUser && slices.Contains(users, database.User{ID: a.ID, UID: a.UID})
		})
	})
}

// approved reports whether the merge request and its rules have enough approvals, apart from those of groups, and of the author unless that is allowed.
func (s sample) approved(allowAuthor bool) bool {
	by := slices.DeleteFunc(slices.Clone(s.approvers), func(u database.User) bool { return u == s.Author && !allowAuthor })
	for _, r := range s.rules {
		n := r.Required
		for _, u := range by {
			if len(r.Approvers) == 0 || slices.Contains(r.Approvers, database.Subject{Kind: mergerequest.KindUser, ID: u.ID, UID: u.UID}) {
				n--
			}
		}
		if n > 0 {
			return false
		}
	}
	return int64(len(by)) >= s.ApprovalsRequired
}

// gone is the title of a milestone that does not exist any more.
const gone = "gone"

// claim is a condition with its equivalent in Go.
type claim struct {
	name string
	mergerequest.Condition
	holds func(sample) bool
}

func claims() []claim {
	labeled := func(s sample, uid types.UID) bool {
		return slices.ContainsFunc(s.Labels, func(l mergerequest.Label) bool { return l.UID == uid })
	}
	minute := noon.Add(20 * time.Second)
	ofProject := []mergerequest.ApprovalRule{{Required: 1}, {Required: 1, Approvers: []database.Subject{
		{Kind: mergerequest.KindUser, ID: bob.ID, UID: bob.UID}, {Kind: database.KindGroup, ID: 30, UID: "acme"},
	}}}
	all := []claim{
		{"opened", mergerequest.Is(mergerequest.Opened), func(s sample) bool { return s.State == mergerequest.Opened }},
		{"merged", mergerequest.Is(mergerequest.Merged), func(s sample) bool { return s.State == mergerequest.Merged }},
		{"numbered", mergerequest.Numbered(1, 3, 5, 7), func(s sample) bool { return s.IID < 8 && s.IID%2 == 1 }},
		{"numbered nothing", mergerequest.Numbered(), func(sample) bool { return false }},
		{"by", mergerequest.By(ann.UID), func(s sample) bool { return s.Author == ann }},
		{"by nobody", mergerequest.By(), func(sample) bool { return false }},
		{"assigned", mergerequest.Assigned(), func(s sample) bool { return len(s.Assignees) > 0 }},
		{"assigned to", mergerequest.AssignedTo(bob.UID), func(s sample) bool { return slices.Contains(s.Assignees, bob) }},
		{"assigned to nobody", mergerequest.AssignedTo(), func(sample) bool { return false }},
		{"reviewed", mergerequest.Reviewed(), func(s sample) bool { return len(s.Reviewers) > 0 }},
		{"reviewed by", mergerequest.ReviewedBy(ann.UID), func(s sample) bool { return slices.Contains(s.Reviewers, ann) }},
		{"reviewed by nobody", mergerequest.ReviewedBy(), func(sample) bool { return false }},
		{"approved", mergerequest.Approved(), func(s sample) bool { return len(s.approvers) > 0 }},
		{"approved by", mergerequest.ApprovedBy(bob.UID), func(s sample) bool { return slices.Contains(s.approvers, bob) }},
		{"approved by nobody", mergerequest.ApprovedBy(), func(sample) bool { return false }},
		{"fully approved", mergerequest.FullyApproved(), func(s sample) bool { return s.approved(false) }},
		{"fully approved, by authors too", mergerequest.FullyApproved(mergerequest.Demand{Project: web.UID, AllowAuthor: true}), func(s sample) bool { return s.approved(true) }},
		{"fully approved for a project", mergerequest.FullyApproved(mergerequest.Demand{Project: web.UID, Required: 1}), func(s sample) bool {
			return s.approved(false) && slices.ContainsFunc(s.approvers, func(u database.User) bool { return u != s.Author })
		}},
		{"fully approved by the rules of a project", mergerequest.FullyApproved(mergerequest.Demand{Project: web.UID, Rules: ofProject}), func(s sample) bool {
			s.rules = slices.Concat(s.rules, ofProject)
			return s.approved(false)
		}},
		{"fully approved without the demands of another project", mergerequest.FullyApproved(mergerequest.Demand{Project: "other", Required: 9, AllowAuthor: true}), func(s sample) bool {
			return s.approved(false)
		}},
		{"naming an approver", mergerequest.NamingApprover(), func(s sample) bool { return s.names(ann, bob) }},
		{"naming approvers", mergerequest.NamingApprovers(bob.UID), func(s sample) bool { return s.names(bob) }},
		{"naming no approvers", mergerequest.NamingApprovers(), func(sample) bool { return false }},
		{"from", mergerequest.From("b3"), func(s sample) bool { return s.SourceBranch == "b3" }},
		{"into", mergerequest.Into("main"), func(s sample) bool { return s.TargetBranch == "main" }},
		{"drafts", mergerequest.Drafts(), func(s sample) bool { return mergerequest.IsDraft(s.Title) }},
		{"labeled", mergerequest.Labeled(), func(s sample) bool { return len(s.Labels) > 0 }},
		{"labeled with", mergerequest.LabeledWith("bug", "none"), func(s sample) bool { return labeled(s, "bug") }},
		{"labeled with nothing", mergerequest.LabeledWith(), func(sample) bool { return false }},
		{"planned", mergerequest.Planned(), func(s sample) bool { return s.milestone != "" && s.milestone != gone }},
		{"planned for", mergerequest.PlannedFor("1.0"), func(s sample) bool { return s.milestone == "1.0" }},
		{"in the milestone", mergerequest.InMilestone(2), func(s sample) bool { return s.MilestoneID == 2 }},
		{"reacted to", mergerequest.ReactedTo(ann.UID, ""), func(s sample) bool { return len(s.reactions) > 0 }},
		{"reacted to with", mergerequest.ReactedTo(ann.UID, "tada"), func(s sample) bool { return slices.Contains(s.reactions, "tada") }},
		{"reacted to by nobody", mergerequest.ReactedTo("carl", ""), func(sample) bool { return false }},
		{"created since", mergerequest.Created.Since(minute), func(s sample) bool { return !s.Created.Before(minute) }},
		{"created until", mergerequest.Created.Until(minute), func(s sample) bool { return !s.Created.After(minute) }},
		{"updated since", mergerequest.Updated.Since(minute), func(s sample) bool { return !s.Updated.Before(minute) }},
		{"updated until", mergerequest.Updated.Until(minute), func(s sample) bool { return !s.Updated.After(minute) }},
		{"deployed", mergerequest.DeployedTo("", time.Time{}, time.Time{}), func(s sample) bool { return s.deployed != nil }},
		{"deployed to", mergerequest.DeployedTo("staging", time.Time{}, time.Time{}), func(s sample) bool { return s.deployed != nil && s.deployed.Environment == "staging" }},
		{"deployed since", mergerequest.DeployedTo("", minute, time.Time{}), func(s sample) bool { return s.deployed != nil && !s.deployed.At.Before(minute) }},
		{"deployed to until", mergerequest.DeployedTo("staging", time.Time{}, minute), func(s sample) bool {
			return s.deployed != nil && s.deployed.Environment == "staging" && !s.deployed.At.After(minute)
		}},
		{"created before all times", mergerequest.Created.Until(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)), func(sample) bool { return false }},
	}
	for _, text := range []string{"a", "straSSE", "ÉTÉ", "100%", "a_c", `say "no"`, "été\nabc", "draft:", "'; --", `\`} {
		folded := search.Fold(text)
		all = append(all,
			claim{"containing " + text, mergerequest.Containing(text, ""), func(s sample) bool { return strings.Contains(search.Fold(s.Title, s.Description), folded) }},
			claim{"titled " + text, mergerequest.Containing(text, search.Title), func(s sample) bool { return strings.Contains(search.Fold(s.Title), folded) }},
			claim{"described " + text, mergerequest.Containing(text, search.Description), func(s sample) bool {
				return strings.Contains(search.Fold(s.Description), folded)
			}},
		)
	}
	return all
}

// fill makes merge requests at random, always the same, with the milestones 1 and 2. Some are planned for a milestone that is gone.
func (s stores) fill(t *testing.T) (all []sample) {
	t.Helper()
	g, r := NewWithT(t), rand.New(rand.NewPCG(38, 2))
	ids := map[string]int64{"": 0, gone: 99}
	for _, title := range []string{"1.0", "2.0"} {
		m := milestone.Milestone{In: web, Title: title, State: milestone.Active}
		g.Expect(s.milestones.Create(t.Context(), &m)).To(Succeed())
		ids[title] = m.ID
	}
	words := []string{"abc", "Straße", "été", "E\u0301te\u0301", "100%", "100 a", "a_c", `say "no"`, "'; --", `\`, "\n", " "}
	text := func() (text string) {
		for range r.IntN(4) {
			text += words[r.IntN(len(words))]
		}
		return text
	}
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	some := func() (users []database.User) {
		for _, u := range []database.User{ann, bob} {
			if r.IntN(3) == 0 {
				users = append(users, u)
			}
		}
		return users
	}
	for n := range 60 {
		s.clock.SetTime(noon.Add(time.Duration(n) * 500 * time.Millisecond))
		m := sample{milestone: pick("", "1.0", "2.0", gone), approvers: some()}
		m.MergeRequest = mergerequest.MergeRequest{
			In: web, Source: web, SourceBranch: fmt.Sprint("b", n/2), TargetBranch: []string{"main", "next"}[n%2], Author: []database.User{ann, bob}[r.IntN(2)],
			Title: pick("", "Draft: ", "[draft]") + strings.ReplaceAll(text(), "\n", " "), Description: text(), MilestoneID: ids[m.milestone],
			ApprovalsRequired: r.Int64N(3), Assignees: some(), Reviewers: some(),
		}
		for k, uid := range []types.UID{"bug", "docs"} {
			if r.IntN(3) == 0 {
				m.Labels = append(m.Labels, mergerequest.Label{ID: int64(k + 1), UID: uid})
			}
		}
		g.Expect(s.Create(t.Context(), &m.MergeRequest)).To(Succeed())
		for _, u := range m.approvers {
			g.Expect(s.Approve(t.Context(), m.ID, u)).To(BeTrue())
		}
		for n := range r.IntN(3) {
			rule := mergerequest.ApprovalRule{MergeRequestID: m.ID, Name: fmt.Sprint(n), Required: r.Int64N(2)}
			for _, u := range some() {
				rule.Approvers = append(rule.Approvers, database.Subject{Kind: mergerequest.KindUser, ID: u.ID, UID: u.UID})
			}
			if r.IntN(4) == 0 {
				rule.Approvers = append(rule.Approvers, database.Subject{Kind: database.KindGroup, ID: 30, UID: "acme"})
			}
			g.Expect(s.SaveApprovalRule(t.Context(), &rule)).To(Succeed())
			m.rules = append(m.rules, rule)
		}
		for _, name := range []string{"tada", "heart"} {
			if r.IntN(3) == 0 {
				m.reactions = append(m.reactions, name)
				g.Expect(s.reactions.Add(t.Context(), &reaction.Reaction{In: web, To: m.Item(), Name: name, User: ann})).To(Succeed())
			}
		}
		if r.IntN(2) == 0 {
			state := mergerequest.State(pick("closed", "locked", "merged"))
			changed, err := s.Update(t.Context(), web.UID, m.IID, func(c *mergerequest.MergeRequest) error {
				c.State, c.Title, c.MergeCommit = state, c.Title+pick("", "abc", "ÉTÉ"), fmt.Sprint("commit", n)
				return nil
			})
			g.Expect(err).NotTo(HaveOccurred())
			m.MergeRequest = changed
			d := mergerequest.Deployment{Environment: pick("production", "staging"), JobID: 1, At: s.clock.Now()}
			g.Expect(s.Deployed(t.Context(), web.UID, d, []string{changed.MergeCommit})).To(Succeed())
			if state == mergerequest.Merged {
				m.deployed = &d
			}
		}
		all = append(all, m)
	}
	return all
}

func TestList_agreesWithModel(t *testing.T) {
	for many, few := range map[string]int{"few": 1000, "many": 0} {
		t.Run(many, func(t *testing.T) {
			mergerequest.Few(t, few)
			expectModel(t)
		})
	}
}

// expectModel compares lists with a model of them in Go.
func expectModel(t *testing.T) {
	t.Helper()
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		s := open(t, name)
		all := s.fill(t)
		list := func(conditions ...mergerequest.Condition) string {
			page, total, err := s.List(t.Context(), mergerequest.Query{
				Projects: []types.UID{web.UID}, Conditions: conditions, Order: mergerequest.ByCreation, Ascending: true, Page: database.Page{Limit: 100},
			})
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(total, iids(page))
		}
		model := func(holds func(sample) bool) string {
			var some []mergerequest.MergeRequest
			for _, m := range all {
				if holds(m) {
					some = append(some, m.MergeRequest)
				}
			}
			return fmt.Sprint(len(some), iids(some))
		}
		claims := claims()
		for n, c := range claims {
			if got, want := list(c.Condition), model(c.holds); got != want {
				t.Errorf("%s\ngot  %s\nwant %s", c.name, got, want)
			}
			if got, want := list(database.Not(c.Condition)), model(func(s sample) bool { return !c.holds(s) }); got != want {
				t.Errorf("not %s\ngot  %s\nwant %s", c.name, got, want)
			}
			next := claims[(n+1)%len(claims)]
			if got, want := list(c.Condition, database.Not(next.Condition)), model(func(s sample) bool { return c.holds(s) && !next.holds(s) }); got != want {
				t.Errorf("%s and not %s\ngot  %s\nwant %s", c.name, next.name, got, want)
			}
		}
	})
}

func TestList_sortsAndPages(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, s := NewWithT(t), open(t, name)
		for n, title := range []string{"b", "Zoo", "älter", "B"} {
			s.create(t, mergerequest.MergeRequest{Title: title, SourceBranch: fmt.Sprint("b", n)})
			s.clock.SetTime(s.clock.Now().Add(time.Second))
		}
		s.create(t, mergerequest.MergeRequest{Title: "Elsewhere", In: fork, SourceBranch: "b0"})
		g.Expect(s.Touch(t.Context(), 1, s.clock.Now())).To(Succeed())
		for _, test := range []struct {
			order     mergerequest.Order
			ascending bool
			want      []int64
		}{
			{mergerequest.ByCreation, false, []int64{4, 3, 2, 1}}, {mergerequest.ByCreation, true, []int64{1, 2, 3, 4}},
			{mergerequest.ByUpdate, false, []int64{1, 4, 3, 2}}, {mergerequest.ByTitle, true, []int64{1, 4, 2, 3}}, {mergerequest.ByTitle, false, []int64{3, 2, 4, 1}},
		} {
			var got []int64
			for skip := range 5 {
				page, total, err := s.List(t.Context(), mergerequest.Query{Projects: []types.UID{web.UID}, Order: test.order, Ascending: test.ascending, Page: database.Page{Skip: skip, Limit: 1}})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(total).To(Equal(4))
				got = append(got, iids(page)...)
			}
			g.Expect(got).To(Equal(test.want), "%s ascending %t", test.order, test.ascending)
		}
		_, total, err := s.List(t.Context(), mergerequest.Query{Order: mergerequest.ByCreation, Page: database.Page{Limit: 9}})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(total).To(BeZero(), "without projects")
	})
}

func TestList_remembersTotalOfVersion(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, s := NewWithT(t), open(t, name)
		total := func(version string, skip int) int {
			_, total, err := s.List(t.Context(), mergerequest.Query{Projects: []types.UID{web.UID}, Order: mergerequest.ByCreation, Page: database.Page{Skip: skip, Limit: 1, Version: version}})
			g.Expect(err).NotTo(HaveOccurred())
			return total
		}
		s.create(t, mergerequest.MergeRequest{SourceBranch: "a"})
		g.Expect(total("1", 0)).To(Equal(1))
		s.create(t, mergerequest.MergeRequest{SourceBranch: "b"})
		g.Expect([]int{total("1", 0), total("2", 0), total("", 0)}).To(Equal([]int{1, 2, 2}))
	})
}

func iids(some []mergerequest.MergeRequest) (all []int64) {
	for _, m := range some {
		all = append(all, m.IID)
	}
	return all
}
