package registrycleanup_test

import (
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/audit/audittest"
	"github.com/forgeplane/forgeplane/internal/registry/cleanup"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("A cleanup", func() {
	BeforeEach(func() { install(forge.Options{}) })

	It("deletes tags once, and says what it has done", func() {
		store("web", 5)
		store("", 3)
		running := f.Run()
		m := forge.RegistryCleanup("old").Of(website).In("web").Names("v.*", "v000").KeepN(2).OlderThan("1 hour").Build()
		f.Create(m)
		f.ExpectReady(m)
		reaches(m, 1, v1alpha1.RegistryCleanupFinished)
		Expect(tags("web")).To(Equal([]string{"v000", "v003", "v004"}))
		Expect(tags("")).To(HaveLen(3))
		Expect(*m.Status.LastRun).To(And(HaveField("Repositories", int64(1)), HaveField("Selected", int64(2)), HaveField("Deleted", int64(2)),
			HaveField("Kept", int64(3)), HaveField("Failed", BeZero()), HaveField("FinishedAt", Not(BeNil())), HaveField("StartedAt", Not(BeNil()))))
		Expect(m.Status.TargetPath).To(Equal("acme/website"))
		Expect(m.Status.NextRunAt).To(BeNil())
		running.ExpectIdle()
		f.ExpectRestartWritesNothing()
	})

	It("cleans up all repositories of its project, or the one with the path of the project", func() {
		store("web", 3)
		store("", 3)
		f.Run()
		m := forge.RegistryCleanup("root").Of(website).In(cleanup.Root).Build()
		f.Create(m)
		f.ExpectReady(m)
		Expect(tags("")).To(BeEmpty())
		Expect(tags("web")).To(HaveLen(3))
		f.Clock.SetTime(f.Clock.Now().Add(time.Hour))
		all := forge.RegistryCleanup("all").Of(website).Build()
		f.Create(all)
		f.ExpectReady(all)
		Expect(tags("web")).To(BeEmpty())
		Expect(all.Status.LastRun.Repositories).To(BeEquivalentTo(2))
	})

	It("runs again when what it deletes changes, and then only when the hour is over", func() {
		store("web", 5)
		f.Run()
		m := forge.RegistryCleanup("old").Of(website).In("web").KeepN(4).DryRun().Build()
		f.Create(m)
		f.ExpectReady(m)
		Expect(m.Status.LastRun.Tags).To(Equal([]string{"web:v000"}))
		Expect(tags("web")).To(HaveLen(5))
		f.Change(m, func() { m.Spec.DryRun = false })
		reaches(m, 2, v1alpha1.RegistryCleanupFinished)
		Expect(m.Status.LastRun.Tags).To(BeEmpty())
		Expect(tags("web")).To(HaveLen(4))

		f.Change(m, func() { m.Spec.KeepN = 1 })
		f.ExpectWaiting(m, v1alpha1.ReasonProgressing, "a container repository can be cleaned up once an hour")
		reaches(m, 3, v1alpha1.RegistryCleanupWaiting)
		Expect(tags("web")).To(HaveLen(4))
		pass(m, time.Hour+2*time.Second)
		reaches(m, 3, v1alpha1.RegistryCleanupFinished)
		Expect(tags("web")).To(Equal([]string{"v004"}))
	})

	It("waits for another one of the same repository", func() {
		store("web", 5)
		f.Run()
		first := forge.RegistryCleanup("first").Of(website).In("web").KeepN(4).Build()
		f.Create(first)
		f.ExpectReady(first)
		second := forge.RegistryCleanup("second").Of(website).Build()
		f.Create(second)
		f.ExpectWaiting(second, v1alpha1.ReasonProgressing, "waiting until")
		Expect(second.Status.NextAttemptAt.Sub(f.Clock.Now())).To(BeNumerically("~", time.Hour, 5*time.Second))
		pass(second, time.Hour+2*time.Second)
		f.ExpectReady(second)
		Expect(tags("web")).To(BeEmpty())
	})

	It("does nothing while it is suspended", func() {
		store("web", 3)
		f.Run()
		once, nightly := forge.RegistryCleanup("once").Of(website).Suspended().Build(), forge.RegistryCleanup("nightly").Of(website).At("@daily", "").Suspended().Build()
		f.Create(once, nightly)
		f.ExpectSettled(once, v1alpha1.ReasonSuspended, "spec.suspend is true")
		f.ExpectSettled(nightly, v1alpha1.ReasonSuspended, "spec.suspend is true")
		Expect(nightly.Status.NextRunAt).To(BeNil())
		Expect(tags("web")).To(HaveLen(3))
		f.Change(once, func() { once.Spec.Suspend = false })
		f.ExpectReady(once)
		Expect(tags("web")).To(BeEmpty())
	})

	It("refuses expressions, spans and schedules that are malformed", func() {
		for _, bad := range []struct {
			m     *v1alpha1.RegistryCleanup
			words string
		}{
			{forge.RegistryCleanup("a").Of(website).Names("(", "").Build(), "nameRegexDelete: it must be a regular expression in RE2 syntax"},
			{forge.RegistryCleanup("b").Of(website).Names(".*", "a(?!b)").Build(), "nameRegexKeep: it must be"},
			{forge.RegistryCleanup("c").Of(website).OlderThan("a while").Build(), "olderThan: it must be numbers with units"},
			{forge.RegistryCleanup("d").Of(website).At("0 0 30 2 *", "").Build(), "never comes"},
			{forge.RegistryCleanup("e").Of(website).At("@daily", "Mars/Olympus").Build(), "time zone"},
		} {
			f.Create(bad.m)
			f.ExpectStalled(bad.m, v1alpha1.ReasonInvalid, bad.words)
		}
		at := forge.RegistryCleanup("f").Of(website).Build()
		at.Spec.TimeZone = "UTC"
		f.ExpectRefused(at, "timeZone needs a schedule")
		f.ExpectRefused(forge.RegistryCleanup("g").Of(website).At("@daily", "").For(time.Hour).Build(), "exclude each other")
		f.ExpectRefused(forge.RegistryCleanup("h").Of(website).In("a/b/c").Build(), "repository must be")
		f.ExpectRefused(forge.RegistryCleanup("i").Of(website).KeepN(-1).Build(), "keepN")
	})

	It("says that its repository does not exist", func() {
		f.Run()
		m := forge.RegistryCleanup("typo").Of(website).In("wbe").Build()
		f.Create(m)
		f.ExpectSettled(m, v1alpha1.ReasonReferenceNotFound, "no container repository wbe")
	})

	It("that a killed server has not released deletes nothing, and is deleted when its time is over", func() {
		store("web", 1)
		f.Run()
		m := forge.RegistryCleanup("old").Of(website).For(24 * time.Hour).Suspended().Build()
		f.CreateOverREST(m)
		declared := forge.RegistryCleanup("declared").Of(website).For(24 * time.Hour).Suspended().Build()
		f.Create(declared)
		f.ExpectSettled(m, v1alpha1.ReasonSuspended)
		f.ExpectSettled(declared, v1alpha1.ReasonSuspended)
		pass(m, time.Since(f.Clock.Now())+25*time.Hour) // the API server has its own clock
		f.ExpectGone(m)
		pass(declared, time.Hour)
		f.ExpectSettled(declared, v1alpha1.ReasonSuspended)
	})

	It("is deleted when its time is over, unless it is declared", func() {
		store("web", 1)
		f.Run()
		m := forge.RegistryCleanup("old").Of(website).For(24 * time.Hour).Build()
		f.CreateOverREST(m)
		f.ExpectReady(m)
		declared := forge.RegistryCleanup("declared").Of(website).DryRun().For(time.Hour).Build()
		f.Create(declared)
		reaches(declared, 1, v1alpha1.RegistryCleanupFinished)
		pass(m, 23*time.Hour)
		f.ExpectReady(m)
		f.Change(website, func() { website.Spec.Archived = true })
		f.ExpectSettled(m, v1alpha1.ReasonSuspended)
		pass(m, 2*time.Hour)
		f.ExpectGone(m)
		pass(declared, time.Hour)
		f.ExpectRestartWritesNothing()
		f.ExpectSettled(declared, v1alpha1.ReasonSuspended)
	})

	It("deletes nothing of an archived project", func() {
		store("web", 3)
		f.Change(website, func() { website.Spec.Archived = true })
		f.Run()
		m := forge.RegistryCleanup("old").Of(website).Build()
		f.Create(m)
		f.ExpectSettled(m, v1alpha1.ReasonSuspended, "the project is archived")
		f.Change(website, func() { website.Spec.Archived = false })
		f.ExpectReady(m)
		Expect(tags("web")).To(BeEmpty())
	})
})

var _ = Describe("A cleanup that runs", func() {
	var m *v1alpha1.RegistryCleanup
	BeforeEach(func() { install(forge.Options{}) })

	// blocked begins a run that stops in the middle.
	blocked := func() *forge.Running {
		GinkgoHelper()
		store("web", 250)
		storage.removals.Store(120)
		storage.limited.Store(true)
		running := f.Run()
		m = forge.RegistryCleanup("old").Of(website).In("web").KeepN(10).Build()
		f.Create(m)
		f.Eventually(m).Should(HaveField("Status.LastRun", And(Not(BeNil()), HaveField("Deleted", BeNumerically(">=", 100)))))
		Expect(m.Status.LastRun.State).To(Equal(v1alpha1.RegistryCleanupRunning))
		Expect(m.Status.LastRun.Selected).To(BeEquivalentTo(240))
		return running
	}
	release := func() { storage.limited.Store(false) }

	It("shows its progress, and goes on in another process", func() {
		running := blocked()
		f.ExpectWaiting(m, v1alpha1.ReasonProgressing, "100 of 240 tags are deleted so far")
		running.Stop()
		Expect(len(tags("web"))).To(And(BeNumerically(">", 10), BeNumerically("<", 250)))
		release()
		f.Run()
		f.ExpectReady(m)
		reaches(m, 1, v1alpha1.RegistryCleanupFinished)
		Expect(*m.Status.LastRun).To(And(HaveField("Selected", int64(240)), HaveField("Deleted", int64(240)), HaveField("Kept", int64(10)), HaveField("Failed", BeZero())))
		Expect(tags("web")).To(HaveLen(10))
	})

	It("stops when it is suspended, and goes on afterwards", func() {
		blocked()
		f.Change(m, func() { m.Spec.Suspend = true })
		f.ExpectSettled(m, v1alpha1.ReasonSuspended)
		Expect(m.Status.LastRun.State).To(Equal(v1alpha1.RegistryCleanupWaiting))
		release()
		left := len(tags("web"))
		Consistently(func() int { return len(tags("web")) }, "500ms").Should(Equal(left))
		f.Change(m, func() { m.Spec.Suspend = false })
		f.ExpectReady(m)
		Expect(m.Status.LastRun).To(And(HaveField("Number", int64(1)), HaveField("Deleted", int64(240))))
	})

	It("stops when what it deletes is changed", func() {
		blocked()
		f.Change(m, func() { m.Spec.NameRegexKeep = "v2.*" })
		release()
		reaches(m, 2, v1alpha1.RegistryCleanupWaiting)
		f.ExpectWaiting(m, v1alpha1.ReasonProgressing, "once an hour")
		left := len(tags("web"))
		Expect(left).To(BeNumerically(">", 50))
		pass(m, time.Hour+2*time.Second)
		reaches(m, 2, v1alpha1.RegistryCleanupFinished)
	})

	It("ends with its object", func() {
		blocked()
		f.Delete(m)
		f.ExpectGone(m)
		release()
		left := len(tags("web"))
		Consistently(func() int { return len(tags("web")) }, "500ms").Should(Equal(left))
	})

	It("ends if the repository is deleted", func() {
		blocked()
		Expect(record.New(db, f.Clock).Removing(GinkgoT().Context(), repository("web").ID, record.DeleteScheduled)).To(Succeed())
		f.Change(m, func() { m.Spec.Suspend = true })
		f.ExpectSettled(m, v1alpha1.ReasonSuspended)
		release()
		f.Change(m, func() { m.Spec.Suspend = false })
		f.ExpectSettled(m, v1alpha1.ReasonReferenceNotFound, "no container repository web")
	})

	It("ends if the project is deleted", func() {
		running := blocked()
		f.Delete(website)
		f.ExpectWaiting(m, v1alpha1.ReasonReferenceNotFound, "projectRef")
		Expect(m.Status.LastRun.State).To(Equal(v1alpha1.RegistryCleanupWaiting))
		release()
		running.ExpectIdle()
	})

	It("goes on when its project is renamed", func() {
		blocked()
		f.Change(website, func() { website.Spec.Path = "shop" })
		f.Eventually(m).Should(HaveField("Status.TargetPath", "acme/shop"))
		release()
		f.Change(m, func() { m.Spec.Suspend = true })
		f.ExpectSettled(m, v1alpha1.ReasonSuspended)
		f.Change(m, func() { m.Spec.Suspend = false })
		f.ExpectReady(m)
		Expect(m.Status.LastRun.Deleted).To(BeEquivalentTo(240))
		Expect(tags("web")).To(HaveLen(10))
	})

	It("tries again while the storage does not answer, says so, and then ends", func() {
		store("web", 250)
		f.Run()
		storage.down.Store(true)
		m = forge.RegistryCleanup("old").Of(website).In("web").Build()
		f.Create(m)
		f.ExpectWaiting(m, v1alpha1.ReasonRegistryUnavailable, "the images cannot be read or changed at the moment; the next attempt is at")
		Expect(m.Status.LastError).NotTo(ContainSubstring("/srv/images"), "where images are is not for tenants")
		Expect(m.Status.Attempts).To(BeEquivalentTo(1))
		pass(m, time.Minute)
		f.Eventually(m).Should(HaveField("Status.Attempts", BeEquivalentTo(2)))
		storage.down.Store(false)
		pass(m, time.Minute)
		f.ExpectReady(m)
		Expect(m.Status.LastError).To(BeEmpty())
		Expect(m.Status.LastRun.Deleted).To(BeEquivalentTo(250))
	})
})

var _ = Describe("Cleanups", func() {
	It("are audited", func() {
		lines := audittest.Open(GinkgoTB())
		install(forge.Options{Audit: lines.Log})
		store("web", 3)
		f.Run()
		m := forge.RegistryCleanup("old").Of(website).KeepN(1).Build()
		f.Create(m)
		f.ExpectReady(m)
		told := slices.DeleteFunc(lines.Events(), func(e audit.Event) bool { return e.Action != "cleanup" })
		Expect(told).To(HaveLen(1))
		Expect(told[0]).To(And(HaveField("Door", audit.Controller), HaveField("Controller", "RegistryCleanup"), HaveField("About.Name", "old")))
		Expect(told[0].Objects).To(ConsistOf(
			audit.Object{Verb: "delete", Kind: audit.ContainerTag, Name: "acme/website/web:v000"}, audit.Object{Verb: "delete", Kind: audit.ContainerTag, Name: "acme/website/web:v001"},
		))
	})

	It("are counted", func() {
		metrics := prometheus.NewRegistry()
		install(forge.Options{Metrics: metrics})
		store("web", 5)
		f.Run()
		m := forge.RegistryCleanup("old").Of(website).KeepN(2).Build()
		f.Create(m)
		f.ExpectReady(m)
		all, err := metrics.Gather()
		Expect(err).NotTo(HaveOccurred())
		counts := map[string]float64{}
		for _, family := range all {
			if c := family.GetMetric()[0].GetCounter(); c != nil {
				counts[family.GetName()] = c.GetValue()
			}
		}
		Expect(counts).To(And(HaveKeyWithValue("forgeplane_registry_cleanups_total", 1.0), HaveKeyWithValue("forgeplane_registry_cleanup_deleted_tags_total", 3.0)))
	})

	It("wait without a registry", func() {
		f = forge.New(cluster, forge.Options{})
		f.NewStorage("shard")
		acme = forge.Group("acme").In(f.NewNamespace()).Build()
		website = forge.Project("website").In(acme).Build()
		f.Create(acme, website)
		m := forge.RegistryCleanup("old").Of(website).Build()
		f.Create(m)
		f.ExpectStalled(m, v1alpha1.ReasonRegistryUnavailable, "is off")
		Expect(m.Status.Conditions).To(ContainElement(HaveField("Status", metav1.ConditionFalse)))
	})
})
