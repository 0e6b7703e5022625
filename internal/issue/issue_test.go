package issue_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/epic"
	"github.com/forgeplane/forgeplane/internal/iid"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/milestone"
	"github.com/forgeplane/forgeplane/internal/reaction"
	"github.com/forgeplane/forgeplane/internal/search"
)

var (
	noon   = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	web    = database.Subject{Kind: database.KindProject, ID: 20, UID: "web"}
	acme   = database.Subject{Kind: database.KindGroup, ID: 10, UID: "acme"}
	secret = database.Subject{Kind: database.KindProject, ID: 21, UID: "secret"}
	ann    = database.User{ID: 1, UID: "ann"}
	bob    = database.User{ID: 2, UID: "bob"}
)

// stores are the stores of issues and of the rows that conditions refer to.
type stores struct {
	*issue.Store
	milestones *milestone.Store
	epics      *epic.Store
	reactions  *reaction.Store
	clock      *clocktesting.FakePassiveClock
}

func open(t *testing.T, name string) stores {
	t.Helper()
	db := databasetest.Open(t, name, iid.Migrations(), milestone.Migrations(), epic.Migrations(), issue.Migrations(), reaction.Migrations())
	clk := clocktesting.NewFakePassiveClock(noon)
	return stores{issue.New(db, clk), milestone.New(db, clk), epic.New(db, clk), reaction.New(db, clk), clk}
}

func (s stores) create(t *testing.T, i issue.Issue) issue.Issue {
	t.Helper()
	if err := s.Create(t.Context(), &i); err != nil {
		t.Fatal(err)
	}
	return i
}

func TestStore_keepsIssue(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, s := NewWithT(t), open(t, name)
		weight := int64(3)
		i := s.create(t, issue.Issue{
			In: web, Title: "Crash", Description: "Always", Type: "issue", Confidential: true, Author: ann, MilestoneID: 5, EpicID: 6, Weight: &weight,
			Due: "2026-07-01", Labels: []issue.Label{{ID: 9, UID: "bug"}}, Assignees: []database.User{bob, ann},
		})
		other := s.create(t, issue.Issue{In: web, Title: "Another", Type: "issue", Author: bob})
		g.Expect([]int64{i.IID, other.IID}).To(Equal([]int64{1, 2}))
		got, err := s.Get(t.Context(), web.UID, 1)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Created).To(BeTemporally("==", noon))
		got.Created, got.Updated, i.Text = i.Created, i.Updated, "" // the text is not read
		g.Expect(got).To(Equal(i))
		g.Expect(s.WithID(t.Context(), other.ID)).To(HaveField("Title", "Another"))
		_, err = s.Get(t.Context(), secret.UID, 1)
		g.Expect(err).To(MatchError(issue.ErrNotFound))
	})
}

func TestUpdate_changesIssue(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, s := NewWithT(t), open(t, name)
		s.create(t, issue.Issue{In: web, Title: "Crash", Type: "issue", Author: ann, Assignees: []database.User{ann}, Labels: []issue.Label{{ID: 9, UID: "bug"}}})
		s.clock.SetTime(noon.Add(time.Hour))
		changed, err := s.Update(t.Context(), web.UID, 1, func(i *issue.Issue) error {
			i.Title, i.State, i.Closer, i.ClosedAt = "Tears", issue.Closed, bob, noon
			i.Assignees, i.Labels = []database.User{bob, ann}, nil
			return nil
		})
		g.Expect(err).NotTo(HaveOccurred())
		got, err := s.Get(t.Context(), web.UID, 1)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(And(HaveField("Title", "Tears"), HaveField("Labels", BeEmpty()), HaveField("Assignees", []database.User{bob, ann}), HaveField("Closer", bob)))
		g.Expect(got.Updated).To(BeTemporally("==", noon.Add(time.Hour)))
		g.Expect(changed.Text).To(Equal("tears\n"))

		refusal := errors.New("no")
		_, err = s.Update(t.Context(), web.UID, 1, func(*issue.Issue) error { return refusal })
		g.Expect(err).To(MatchError(refusal))
		_, err = s.Update(t.Context(), web.UID, 2, func(*issue.Issue) error { return nil })
		g.Expect(err).To(MatchError(issue.ErrNotFound))
	})
}

func TestDelete_removesIssue(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, s := NewWithT(t), open(t, name)
		i := s.create(t, issue.Issue{In: web, Title: "Crash", Type: "issue", Author: ann, Labels: []issue.Label{{ID: 9, UID: "bug"}}})
		seen := issue.Seen{Projects: []types.UID{web.UID}}
		g.Expect(s.Delete(t.Context(), i.ID)).To(Succeed())
		g.Expect(s.Delete(t.Context(), i.ID)).To(MatchError(issue.ErrNotFound))
		g.Expect(s.Touch(t.Context(), i.ID, noon)).To(MatchError(issue.ErrNotFound))
		g.Expect(s.CountLabels(t.Context(), seen, "bug")).To(BeEmpty())
		_, total, err := s.List(t.Context(), issue.Query{Seen: seen, Conditions: []issue.Condition{issue.Containing("crash", "")}, Order: issue.ByCreation, Page: database.Page{Limit: 1}})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(total).To(BeZero())
		g.Expect(s.create(t, issue.Issue{In: web, Title: "Next", Type: "issue", Author: ann}).IID).To(Equal(int64(2)), "an iid is never used again")
	})
}

func TestCountLabels_countsSeenIssues(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, s := NewWithT(t), open(t, name)
		bug, docs := issue.Label{ID: 9, UID: "bug"}, issue.Label{ID: 10, UID: "docs"}
		for _, i := range []issue.Issue{
			{In: web, Labels: []issue.Label{bug, docs}}, {In: web, Labels: []issue.Label{bug}}, {In: web, Labels: []issue.Label{bug}, Confidential: true},
			{In: secret, Labels: []issue.Label{bug}},
		} {
			i.Title, i.Type, i.Author = "An issue", "issue", ann
			s.create(t, i)
		}
		_, err := s.Update(t.Context(), web.UID, 2, func(i *issue.Issue) error { i.State = issue.Closed; return nil })
		g.Expect(err).NotTo(HaveOccurred())
		seen := issue.Seen{Projects: []types.UID{web.UID}}
		g.Expect(s.CountLabels(t.Context(), seen, "bug", "docs", "none")).To(Equal(map[types.UID]issue.Count{"bug": {Open: 1, Closed: 1}, "docs": {Open: 1}}))
		seen.Trusted = seen.Projects
		g.Expect(s.CountLabels(t.Context(), seen, "bug")).To(Equal(map[types.UID]issue.Count{"bug": {Open: 2, Closed: 1}}))
	})
}

// sample is an issue with the other data that conditions use.
type sample struct {
	issue.Issue
	milestone string
	reactions []string
}

// gone is the title of a milestone that does not exist any more.
const gone = "gone"

// claim is a condition with its equivalent in Go.
type claim struct {
	name string
	issue.Condition
	holds func(sample) bool
}

func claims() []claim {
	assigned := func(s sample, u database.User) bool { return slices.Contains(s.Assignees, u) }
	labeled := func(s sample, uid types.UID) bool {
		return slices.ContainsFunc(s.Labels, func(l issue.Label) bool { return l.UID == uid })
	}
	all := []claim{
		{"open", issue.Is(issue.Opened), func(s sample) bool { return s.State == issue.Opened }},
		{"numbered", issue.Numbered(1, 3, 5, 7), func(s sample) bool { return s.IID < 8 && s.IID%2 == 1 }},
		{"numbered nothing", issue.Numbered(), func(sample) bool { return false }},
		{"by", issue.By(ann.UID), func(s sample) bool { return s.Author == ann }},
		{"assigned", issue.Assigned(), func(s sample) bool { return len(s.Assignees) > 0 }},
		{"assigned to", issue.AssignedTo(bob.UID), func(s sample) bool { return assigned(s, bob) }},
		{"assigned to nobody", issue.AssignedTo(), func(sample) bool { return false }},
		{"labeled", issue.Labeled(), func(s sample) bool { return len(s.Labels) > 0 }},
		{"labeled with", issue.LabeledWith("bug", "none"), func(s sample) bool { return labeled(s, "bug") }},
		{"labeled with nothing", issue.LabeledWith(), func(sample) bool { return false }},
		{"planned", issue.Planned(), func(s sample) bool { return s.milestone != "" && s.milestone != gone }},
		{"planned for", issue.PlannedFor("1.0"), func(s sample) bool { return s.milestone == "1.0" }},
		{"in the milestone", issue.InMilestone(2), func(s sample) bool { return s.MilestoneID == 2 }},
		{"in an epic", issue.InEpic(issue.SeenEpics{Groups: []types.UID{acme.UID}}), func(s sample) bool { return s.EpicID == 1 }},
		{"in an epic of a trusted group", issue.InEpic(issue.SeenEpics{Groups: []types.UID{acme.UID}, Trusted: []types.UID{acme.UID}}), func(s sample) bool { return s.EpicID == 1 || s.EpicID == 2 }},
		{"in an epic for its author", issue.InEpic(issue.SeenEpics{Groups: []types.UID{acme.UID}, Viewer: ann.UID}), func(s sample) bool { return s.EpicID == 1 || s.EpicID == 2 }},
		{"in an epic of no group", issue.InEpic(issue.SeenEpics{Viewer: ann.UID}), func(sample) bool { return false }},
		{"in epics", issue.InEpics(1), func(s sample) bool { return s.EpicID == 1 }},
		{"weighed", issue.Weighed(), func(s sample) bool { return s.Weight != nil }},
		{"weighing", issue.Weighing(2), func(s sample) bool { return s.Weight != nil && *s.Weight == 2 }},
		{"of a type", issue.OfType("incident"), func(s sample) bool { return s.Type == "incident" }},
		{"confidential", issue.Confidential(), func(s sample) bool { return s.Confidential }},
		{"reacted to", issue.ReactedTo(ann.UID, ""), func(s sample) bool { return len(s.reactions) > 0 }},
		{"reacted to with", issue.ReactedTo(ann.UID, "tada"), func(s sample) bool { return slices.Contains(s.reactions, "tada") }},
		{"reacted to by nobody", issue.ReactedTo("carl", ""), func(sample) bool { return false }},
		{"created since", issue.Created.Since(noon.Add(time.Minute)), func(s sample) bool { return !s.Created.Before(noon.Add(time.Minute)) }},
		{"created until", issue.Created.Until(noon.Add(time.Minute)), func(s sample) bool { return !s.Created.After(noon.Add(time.Minute)) }},
		{"updated until", issue.Updated.Until(noon.Add(1500 * time.Millisecond)), func(s sample) bool { return !s.Updated.After(noon.Add(1500 * time.Millisecond)) }},
		{"created before all times", issue.Created.Until(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)), func(sample) bool { return false }},
		{"created after all times", issue.Created.Since(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)), func(sample) bool { return false }},
		{"has a due date", issue.HasDue(), func(s sample) bool { return s.Due != "" }},
		{"due", issue.Due("2026-06-15", "2026-06-16"), func(s sample) bool { return s.Due == "2026-06-15" }},
		{"overdue", issue.Due("", "2026-06-15"), func(s sample) bool { return s.Due != "" && s.Due < "2026-06-15" }},
	}
	for _, text := range []string{"a", "ß", "straSSE", "ÉTÉ", "100%", "a_c", `say "no"`, "été\nabc", "ab", "AbC", "'; --", `\`} {
		folded := search.Fold(text)
		all = append(all,
			claim{"containing " + text, issue.Containing(text, ""), func(s sample) bool { return strings.Contains(search.Fold(s.Title, s.Description), folded) }},
			claim{"titled " + text, issue.Containing(text, search.Title), func(s sample) bool { return strings.Contains(search.Fold(s.Title), folded) }},
			claim{"described " + text, issue.Containing(text, search.Description), func(s sample) bool {
				return strings.Contains(search.Fold(s.Description), folded)
			}},
		)
	}
	return all
}

// fill makes issues at random, always the same, with two milestones, the epic 1 and the confidential epic 2. Some issues are in
// a milestone or epic that is gone.
func (s stores) fill(t *testing.T) (all []sample) {
	t.Helper()
	g, r := NewWithT(t), rand.New(rand.NewPCG(38, 1))
	ids := map[string]int64{"": 0, gone: 99}
	for _, title := range []string{"1.0", "2.0"} {
		m := milestone.Milestone{In: web, Title: title, State: milestone.Active}
		g.Expect(s.milestones.Create(t.Context(), &m)).To(Succeed())
		ids[title] = m.ID
	}
	for n := range int64(2) {
		e := epic.Epic{In: acme, Title: "An epic", Author: ann, Confidential: n == 1}
		g.Expect(s.epics.Create(t.Context(), &e)).To(Succeed())
		g.Expect(e.ID).To(Equal(n + 1))
	}
	words := []string{"abc", "Straße", "été", "E\u0301te\u0301", "100%", "100 a", "a_c", "Ab", `say "no"`, "'; --", `\`, "日本語", "\n", " "}
	text := func() (text string) {
		for range r.IntN(4) {
			text += words[r.IntN(len(words))]
		}
		return text
	}
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	for n := range 60 {
		i := sample{milestone: pick("", "1.0", "2.0", gone)}
		i.Issue = issue.Issue{
			In: web, Title: strings.ReplaceAll(text(), "\n", " "), Description: text(), Type: pick("issue", "incident"), Confidential: r.IntN(2) == 0,
			Author: []database.User{ann, bob}[r.IntN(2)], MilestoneID: ids[i.milestone], EpicID: r.Int64N(4),
			Due: pick("", "2026-06-14", "2026-06-15", "2026-06-16"),
		}
		if w := r.Int64N(4); w > 0 {
			i.Weight = &w
		}
		for _, u := range []database.User{ann, bob} {
			if r.IntN(3) == 0 {
				i.Assignees = append(i.Assignees, u)
			}
		}
		for k, uid := range []types.UID{"bug", "docs"} {
			if r.IntN(3) == 0 {
				i.Labels = append(i.Labels, issue.Label{ID: int64(k + 1), UID: uid})
			}
		}
		s.clock.SetTime(noon.Add(time.Duration(n) * 500 * time.Millisecond))
		g.Expect(s.Create(t.Context(), &i.Issue)).To(Succeed())
		for _, name := range []string{"tada", "heart"} {
			if r.IntN(3) == 0 {
				i.reactions = append(i.reactions, name)
				g.Expect(s.reactions.Add(t.Context(), &reaction.Reaction{In: web, To: i.Item(), Name: name, User: ann})).To(Succeed())
			}
		}
		if r.IntN(2) == 0 {
			changed, err := s.Update(t.Context(), web.UID, i.IID, func(c *issue.Issue) error {
				c.State, c.Description = issue.Closed, c.Description+pick("", "abc", "ÉTÉ")
				return nil
			})
			g.Expect(err).NotTo(HaveOccurred())
			i.State, i.Description = changed.State, changed.Description
		}
		all = append(all, i)
	}
	return all
}

func TestList_agreesWithModel(t *testing.T) {
	for many, few := range map[string]int{"few": 1000, "many": 0} {
		t.Run(many, func(t *testing.T) {
			issue.Few(t, few)
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
		list := func(conditions ...issue.Condition) string {
			page, total, err := s.List(t.Context(), issue.Query{
				Seen: issue.Seen{Projects: []types.UID{web.UID}, Trusted: []types.UID{web.UID}}, Conditions: conditions, Order: issue.ByCreation, Ascending: true, Page: database.Page{Limit: 100},
			})
			if err != nil {
				t.Fatal(err)
			}
			var iids []int64
			for _, i := range page {
				iids = append(iids, i.IID)
			}
			return fmt.Sprint(total, iids)
		}
		model := func(holds func(sample) bool) string {
			var iids []int64
			for _, i := range all {
				if holds(i) {
					iids = append(iids, i.IID)
				}
			}
			return fmt.Sprint(len(iids), iids)
		}
		for n, c := range claims() {
			if got, want := list(c.Condition), model(c.holds); got != want {
				t.Errorf("%s\ngot  %s\nwant %s", c.name, got, want)
			}
			if got, want := list(database.Not(c.Condition)), model(func(s sample) bool { return !c.holds(s) }); got != want {
				t.Errorf("not %s\ngot  %s\nwant %s", c.name, got, want)
			}
			next := claims()[(n+1)%len(claims())]
			if got, want := list(c.Condition, database.Not(next.Condition)), model(func(s sample) bool { return c.holds(s) && !next.holds(s) }); got != want {
				t.Errorf("%s and not %s\ngot  %s\nwant %s", c.name, next.name, got, want)
			}
		}
	})
}

func TestList_sortsAndPages(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, s := NewWithT(t), open(t, name)
		one, two := int64(1), int64(2)
		for _, i := range []issue.Issue{
			{Title: "b", Due: "2026-07-01", Weight: &two}, {Title: "Zoo", Due: ""}, {Title: "älter", Due: "2026-06-01", Weight: &one}, {Title: "B", Due: "2026-06-01", Weight: &one},
		} {
			i.In, i.Type, i.Author = web, "issue", ann
			s.create(t, i)
			s.clock.SetTime(s.clock.Now().Add(time.Second))
		}
		g.Expect(s.Touch(t.Context(), 1, s.clock.Now())).To(Succeed())
		for _, test := range []struct {
			order     issue.Order
			ascending bool
			want      []int64
		}{
			{issue.ByCreation, false, []int64{4, 3, 2, 1}}, {issue.ByUpdate, false, []int64{1, 4, 3, 2}}, {issue.ByTitle, true, []int64{1, 4, 2, 3}},
			{issue.ByDue, true, []int64{3, 4, 1, 2}}, {issue.ByDue, false, []int64{1, 4, 3, 2}},
			{issue.ByWeight, true, []int64{3, 4, 1, 2}}, {issue.ByWeight, false, []int64{1, 4, 3, 2}},
		} {
			var got []int64
			for skip := range 5 {
				page, total, err := s.List(t.Context(), issue.Query{
					Seen: issue.Seen{Projects: []types.UID{web.UID}}, Order: test.order, Ascending: test.ascending, Page: database.Page{Skip: skip, Limit: 1},
				})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(total).To(Equal(4))
				for _, i := range page {
					g.Expect(i.Text).To(BeEmpty())
					got = append(got, i.IID)
				}
			}
			g.Expect(got).To(Equal(test.want), "%s ascending %t", test.order, test.ascending)
		}
	})
}

func TestList_hidesConfidentialIssues(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, s := NewWithT(t), open(t, name)
		for _, i := range []issue.Issue{
			{In: web, Author: ann, Confidential: true}, {In: web, Author: bob, Confidential: true, Assignees: []database.User{ann}},
			{In: web, Author: bob, Confidential: true}, {In: web, Author: bob}, {In: secret, Author: ann},
		} {
			i.Title, i.Type = "An issue", "issue"
			s.create(t, i)
		}
		for _, test := range []struct {
			seen issue.Seen
			want int
		}{
			{issue.Seen{}, 0}, {issue.Seen{Viewer: ann.UID}, 0}, {issue.Seen{Projects: []types.UID{web.UID}}, 1}, {issue.Seen{Projects: []types.UID{web.UID}, Viewer: ann.UID}, 3},
			{issue.Seen{Projects: []types.UID{web.UID}, Trusted: []types.UID{web.UID}}, 4}, {issue.Seen{Projects: []types.UID{web.UID, secret.UID}, Trusted: []types.UID{secret.UID}}, 2},
		} {
			_, total, err := s.List(t.Context(), issue.Query{Seen: test.seen, Order: issue.ByCreation, Page: database.Page{Limit: 9}})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(total).To(Equal(test.want), "%v", test.seen)
		}
	})
}
