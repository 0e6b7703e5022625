package runner_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/runner"
)

var noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

func project(uid types.UID) database.Subject {
	return database.Subject{Kind: database.KindProject, ID: 20, UID: uid}
}

// onEachEngine runs a test with an empty store in each kind of database.
func onEachEngine(t *testing.T, test func(t *testing.T, s *runner.Store, c *clocktesting.FakePassiveClock)) {
	t.Helper()
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		t.Helper()
		c := clocktesting.NewFakePassiveClock(noon)
		test(t, runner.New(databasetest.Open(t, name, runner.Migrations()), c), c)
	})
}

// create adds a runner and returns it with its token.
func create(t *testing.T, s *runner.Store, r runner.Runner, places ...database.Subject) (made runner.Runner, token string) {
	t.Helper()
	token = runner.NewToken()
	err := s.Create(t.Context(), &r, token, places...)
	if err == nil {
		made, err = s.Get(t.Context(), r.ID)
	}
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return made, token
}

func TestStore_keepsRunners(t *testing.T) {
	onEachEngine(t, func(t *testing.T, s *runner.Store, c *clocktesting.FakePassiveClock) {
		g := NewWithT(t)
		one, token := create(t, s, runner.Runner{
			Type: runner.OfProject, Description: "Builder", RunUntagged: true, Tags: []string{"linux", `a"b`}, MaximumTimeout: time.Hour,
		}, project("web"))
		g.Expect(token).To(HavePrefix(runner.Prefix))
		found, err := s.ByToken(t.Context(), token)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).To(Equal(one))
		g.Expect(found).To(And(HaveField("Tags", []string{"linux", `a"b`}), HaveField("MaximumTimeout", time.Hour), HaveField("Created", BeTemporally("==", noon))))
		g.Expect(s.Assign(t.Context(), one.ID, project("app"))).To(Succeed())
		g.Expect(s.Assign(t.Context(), one.ID, project("app"))).To(Succeed(), "it may be assigned already")
		g.Expect(s.Places(t.Context(), one.ID)).To(ConsistOf(project("web"), project("app")))
		g.Expect(s.Unassign(t.Context(), one.ID, project("web"))).To(Succeed())
		g.Expect(s.Unassign(t.Context(), one.ID, project("web"))).To(MatchError(runner.ErrNotFound))
		g.Expect(s.Assigned(t.Context())).To(ConsistOf(types.UID("app")))

		one.Paused, one.Tags = true, []string{}
		g.Expect(s.Update(t.Context(), one)).To(Succeed())
		g.Expect(s.Get(t.Context(), one.ID)).To(Equal(one))
		g.Expect(s.Reset(t.Context(), one.ID, "another")).To(Succeed())
		g.Expect(s.ByToken(t.Context(), token)).Error().To(MatchError(runner.ErrNotFound))
		g.Expect(s.ByToken(t.Context(), "another")).To(HaveField("ID", one.ID))
		g.Expect(s.Delete(t.Context(), one.ID)).To(Succeed())
		g.Expect(s.Delete(t.Context(), one.ID)).To(MatchError(runner.ErrNotFound))
		g.Expect(s.Assigned(t.Context())).To(BeEmpty())
	})
}

func TestRegistration_hasOneTokenForEachSubject(t *testing.T) {
	onEachEngine(t, func(t *testing.T, s *runner.Store, _ *clocktesting.FakePassiveClock) {
		g := NewWithT(t)
		for token, in := range map[string]database.Subject{"former": project("web"), "of-app": project("app"), "of-all": {}} {
			g.Expect(s.ResetRegistration(t.Context(), in, token)).To(Succeed())
		}
		g.Expect(s.ResetRegistration(t.Context(), project("web"), "of-web")).To(Succeed())
		g.Expect(s.ByRegistrationToken(t.Context(), "former")).Error().To(MatchError(runner.ErrNoRegistration))
		web, err := s.ByRegistrationToken(t.Context(), "of-web")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(web.In).To(Equal(project("web")))
		g.Expect(web.Type()).To(Equal(runner.OfProject))
		g.Expect(s.ByRegistrationToken(t.Context(), "of-all")).To(HaveField("Type()", runner.OfInstance))

		g.Expect(s.Registrations().Move(t.Context(), project("web"), project("app"), "subject_kind")).To(Succeed(), "app has its own")
		g.Expect(s.ByRegistrationToken(t.Context(), "of-app")).To(HaveField("In", project("app")))
		g.Expect(s.Registrations().Remove(t.Context(), project("web"))).To(Succeed())
		g.Expect(s.ByRegistrationToken(t.Context(), "of-web")).Error().To(MatchError(runner.ErrNoRegistration))
	})
}

func TestContact_isRecordedOnceAMinute(t *testing.T) {
	onEachEngine(t, func(t *testing.T, s *runner.Store, c *clocktesting.FakePassiveClock) {
		g := NewWithT(t)
		contact := func(p runner.Program) runner.Runner {
			t.Helper()
			r, err := s.Get(t.Context(), 1)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.Contact(t.Context(), r, p)).To(Succeed())
			r, err = s.Get(t.Context(), 1)
			g.Expect(err).NotTo(HaveOccurred())
			return r
		}
		create(t, s, runner.Runner{Type: runner.OfInstance, Tags: []string{}})
		old, young := runner.Program{Name: "gitlab-runner", Version: "12"}, runner.Program{Name: "gitlab-runner", Version: "18"}
		g.Expect(contact(old)).To(And(HaveField("Contacted", BeTemporally("==", noon)), HaveField("Program", old)))
		c.SetTime(noon.Add(30 * time.Second))
		g.Expect(contact(old).Contacted).To(BeTemporally("==", noon))
		g.Expect(contact(young)).To(And(HaveField("Contacted", BeTemporally("==", noon.Add(30*time.Second))), HaveField("Program", young)))
	})
}

func TestList_selectsRunners(t *testing.T) {
	onEachEngine(t, func(t *testing.T, s *runner.Store, c *clocktesting.FakePassiveClock) {
		g := NewWithT(t)
		shared, _ := create(t, s, runner.Runner{Type: runner.OfInstance, Tags: []string{"linux", "arm"}})
		own, _ := create(t, s, runner.Runner{Type: runner.OfProject, Tags: []string{"Linux"}, Paused: true}, project("web"))
		g.Expect(s.Contact(t.Context(), own, runner.Program{})).To(Succeed())
		c.SetTime(noon.Add(time.Hour))
		for name, tt := range map[string]struct {
			of   runner.Condition
			want []int64
		}{
			"an id":          {runner.WithIDs(own.ID, 99), []int64{own.ID}},
			"a type":         {runner.Of(runner.OfInstance), []int64{shared.ID}},
			"a tag":          {runner.Tagged("linux"), []int64{shared.ID}},
			"part of a tag":  {runner.Tagged("lin"), nil},
			"paused":         {runner.Paused(true), []int64{own.ID}},
			"silent":         {runner.NeverContacted(), []int64{shared.ID}},
			"heard":          {runner.HeardSince(noon), []int64{own.ID}},
			"heard long ago": {runner.SilentSince(noon.Add(time.Minute)), []int64{own.ID}},
			"a project":      {runner.In("web"), []int64{own.ID}},
			"no project":     {runner.In(), nil},
			"either":         {database.Or(runner.In("web"), runner.Of(runner.OfInstance)), []int64{own.ID, shared.ID}},
		} {
			found, err := s.List(t.Context(), []runner.Condition{tt.of}, 0, 10)
			g.Expect(err).NotTo(HaveOccurred(), name)
			var ids []int64
			for _, r := range found {
				ids = append(ids, r.ID)
			}
			g.Expect(ids).To(Equal(tt.want), name)
			g.Expect(s.Count(t.Context(), []runner.Condition{tt.of}, 10)).To(Equal(len(tt.want)), name)
		}
	})
}
