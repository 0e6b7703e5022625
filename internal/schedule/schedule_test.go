package schedule_test

import (
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/schedule"
	"github.com/forgeplane/forgeplane/internal/timetable"
)

var (
	noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	web  = database.Subject{Kind: database.KindProject, ID: 20, UID: "web"}
	dora = database.User{ID: 3, UID: "dora"}
)

// site is the schedules in a database.
type site struct {
	*WithT
	t *testing.T
	*schedule.Store
	clock *clocktesting.FakePassiveClock
}

func onEachEngine(t *testing.T, test func(s site)) {
	t.Helper()
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		c := clocktesting.NewFakePassiveClock(noon)
		test(site{NewWithT(t), t, schedule.New(databasetest.Open(t, name, job.Migrations(), schedule.Migrations()), c), c})
	})
}

// create creates a schedule of the branch main that comes every day at three.
func (s site) create() schedule.Schedule {
	s.t.Helper()
	of := schedule.Schedule{In: web, Description: "Every night", Ref: "main", Cron: "0 3 * * *", Zone: "Europe/Berlin", Active: true, Owner: dora}
	s.Expect(s.Create(s.t.Context(), &of)).To(Succeed())
	return of
}

func TestSchedule_isDueOncePerTime(t *testing.T) {
	onEachEngine(t, func(s site) {
		of := s.create()
		one := noon.Add(13 * time.Hour)
		s.Expect(of.Next).To(BeTemporally("==", one), "three in Berlin")
		key := strconv.FormatInt(of.ID, 10)
		_, due, err := s.Due(s.t.Context(), key)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(due).To(BeFalse())

		s.clock.SetTime(one.Add(50 * time.Hour))
		late, due, err := s.Due(s.t.Context(), key)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(due).To(BeTrue())
		s.Expect(late.Next).To(BeTemporally("==", one))
		s.Expect(s.Done(s.t.Context(), late)).To(Succeed())
		now, due, err := s.Due(s.t.Context(), key)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(due).To(BeFalse(), "times that were missed do not come again")
		s.Expect(now.Next).To(BeTemporally("==", one.Add(72*time.Hour)))

		now.Active = false
		s.Expect(s.Update(s.t.Context(), &now)).To(Succeed())
		s.Expect(s.Done(s.t.Context(), late)).To(Succeed(), "it has changed meanwhile")
		s.clock.SetTime(one.AddDate(0, 1, 0))
		_, due, err = s.Due(s.t.Context(), key)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(due).To(BeFalse())
		s.Expect(s.Delete(s.t.Context(), of.ID)).To(Succeed())
		_, due, err = s.Due(s.t.Context(), key)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(due).To(BeFalse())
		s.Expect(s.Delete(s.t.Context(), of.ID)).To(MatchError(schedule.ErrNotFound))
	})
}

func TestCreate_refusesMistakesAndTooMany(t *testing.T) {
	onEachEngine(t, func(s site) {
		of := s.create()
		wrong := of
		wrong.Cron = "soon"
		s.Expect(s.Create(s.t.Context(), &wrong)).To(MatchError(timetable.ErrSchedule))
		s.Expect(s.Update(s.t.Context(), &wrong)).To(MatchError(timetable.ErrSchedule))
		wrong.Cron, wrong.Zone = of.Cron, "Mars/Olympus"
		s.Expect(s.Create(s.t.Context(), &wrong)).To(MatchError(timetable.ErrZone))
		for range schedule.Max - 1 {
			s.create()
		}
		more := of
		more.ID = 0
		s.Expect(s.Create(s.t.Context(), &more)).To(MatchError(schedule.ErrTooMany))
		active := true
		s.Expect(s.Count(s.t.Context(), schedule.Query{Project: web.UID, Active: &active})).To(Equal(schedule.Max))
		active = false
		s.Expect(s.Count(s.t.Context(), schedule.Query{Project: web.UID, Active: &active})).To(BeZero())
		s.Expect(s.List(s.t.Context(), schedule.Query{Project: web.UID}, 1, 2)).To(HaveExactElements(HaveField("ID", of.ID+1), HaveField("ID", of.ID+2)))
		_, err := s.Get(s.t.Context(), "other", of.ID)
		s.Expect(err).To(MatchError(schedule.ErrNotFound))
	})
}

func TestVariables_haveDifferentKeys(t *testing.T) {
	onEachEngine(t, func(s site) {
		of := s.create()
		v := schedule.Variable{ScheduleID: of.ID, Key: "TARGET", Value: "staging", Type: "env_var"}
		s.Expect(s.AddVariable(s.t.Context(), v)).To(Succeed())
		s.Expect(s.AddVariable(s.t.Context(), v)).To(MatchError(schedule.ErrExists))
		v.Value = "production"
		s.Expect(s.ChangeVariable(s.t.Context(), v)).To(Succeed())
		s.Expect(s.Variables(s.t.Context(), of.ID)).To(HaveExactElements(And(HaveField("Key", "TARGET"), HaveField("Value", "production"))))
		s.Expect(s.RemoveVariable(s.t.Context(), of.ID, "TARGET")).To(Succeed())
		s.Expect(s.RemoveVariable(s.t.Context(), of.ID, "TARGET")).To(MatchError(schedule.ErrNotFound))
		s.Expect(s.ChangeVariable(s.t.Context(), v)).To(MatchError(schedule.ErrNotFound))
		for n := range schedule.MaxVariables {
			v.Key = "KEY_" + strconv.Itoa(n)
			s.Expect(s.AddVariable(s.t.Context(), v)).To(Succeed())
		}
		v.Key = "MORE"
		s.Expect(s.AddVariable(s.t.Context(), v)).To(MatchError(schedule.ErrTooMany))
	})
}
