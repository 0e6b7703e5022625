package registrycleanup_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("A cleanup with a schedule", func() {
	BeforeEach(func() { install(forge.Options{}) })

	It("follows a schedule in a time zone, and makes up for missed times once", func() {
		store("web", 3)
		f.Run()
		m := forge.RegistryCleanup("nightly").Of(website).KeepN(1).At("0 3 * * *", "Europe/Berlin").Build()
		f.Create(m)
		f.ExpectReady(m)
		Expect(m.Status.LastRun).To(BeNil())
		berlin, err := time.LoadLocation("Europe/Berlin")
		Expect(err).NotTo(HaveOccurred())
		next := m.Status.NextRunAt.In(berlin)
		Expect(next.Hour()).To(Equal(3))
		Expect(next.Sub(f.Clock.Now())).To(And(BeNumerically(">", 0), BeNumerically("<=", 24*time.Hour)))
		Expect(tags("web")).To(HaveLen(3))

		pass(m, 72*time.Hour)
		reaches(m, 1, v1alpha1.RegistryCleanupFinished)
		f.ExpectReady(m)
		Expect(tags("web")).To(HaveLen(1))
		Expect(m.Status.NextRunAt.Time).To(BeTemporally(">", f.Clock.Now()))
		pass(m, time.Second)
		Consistently(func() int64 { f.Refresh(m); return m.Status.LastRun.Number }, "500ms").Should(BeEquivalentTo(1))
		f.Change(m, func() { m.Spec.Schedule = "@hourly" })
		f.Eventually(m).Should(HaveField("Status.NextRunAt.Time", BeTemporally("<=", f.Clock.Now().Add(time.Hour))))
	})

	forge.DescribeTarget("a cleanup", forge.Projects, func() *forge.Forge { return f },
		func(name string, project, _ *v1alpha1.Reference) v1alpha1.Targeted {
			m := forge.RegistryCleanup(name).At("@yearly", "").Build()
			m.Spec.ProjectRef = *project
			return m
		})

	It("is punctual every hour", func() {
		store("web", 3)
		f.Run()
		m := forge.RegistryCleanup("hourly").Of(website).KeepN(1).At("@hourly", "").Build()
		f.Create(m)
		f.ExpectReady(m)
		for run, late := range []time.Duration{3 * time.Second, 0, time.Second} {
			next := *m.Status.NextRunAt
			pass(m, next.Sub(f.Clock.Now())+late)
			reaches(m, run+1, v1alpha1.RegistryCleanupFinished)
			Expect(m.Status.LastRun.StartedAt.Time).To(BeTemporally("==", next.Time))
			Expect(repository("web").Cleanup).To(BeTemporally("==", next.Time))
		}
	})

	It("makes up for a missed time although something else is changed", func() {
		store("web", 3)
		running := f.Run()
		m := forge.RegistryCleanup("nightly").Of(website).KeepN(1).At("0 3 * * *", "").Build()
		f.Create(m)
		f.ExpectReady(m)
		running.ExpectIdle() // a run that begins before the change would stop
		f.Clock.SetTime(f.Clock.Now().Add(25 * time.Hour))
		f.Change(m, func() { m.Spec.NameRegexKeep = "none" })
		reaches(m, 1, v1alpha1.RegistryCleanupFinished)
		Expect(tags("web")).To(HaveLen(1))
	})
})

var _ = Describe("A cleanup of several repositories", func() {
	BeforeEach(func() { install(forge.Options{}) })

	It("passes a repository that cannot be read, and ends after ten attempts", func() {
		store("web", 3)
		store("", 3)
		storage.unreadable.Store(&[]string{repository("web").Place}[0])
		f.Run()
		m := forge.RegistryCleanup("old").Of(website).Build()
		f.Create(m)
		f.ExpectWaiting(m, v1alpha1.ReasonCleanupIncomplete, "1 container repositories could not be read; the next attempt is at")
		Expect(tags("")).To(BeEmpty())
		for attempt := range 9 {
			f.Eventually(m).Should(HaveField("Status.Attempts", BeEquivalentTo(attempt+1)))
			pass(m, 10*time.Minute)
		}
		f.ExpectStalled(m, v1alpha1.ReasonCleanupIncomplete, "1 container repositories could not be read")
		Expect(m.Status.LastRun.State).To(Equal(v1alpha1.RegistryCleanupIncomplete))
		Expect(m.Status.LastError).NotTo(ContainSubstring("/srv"))
	})
})
