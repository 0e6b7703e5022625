package conformance

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

var _ = throughEachDoor("Pipeline schedules", func(d *door) {
	It("are created, found, changed, played, taken and deleted", func() {
		team, _ := d.newPipelines()
		c := d.as(developer).PipelineSchedules
		made, r, err := c.CreatePipelineSchedule(team.project.ID, &gitlab.CreatePipelineScheduleOptions{
			Description: gitlab.Ptr("Every night"), Ref: gitlab.Ptr("topic"), Cron: gitlab.Ptr("0 3 * * *"), CronTimezone: gitlab.Ptr("Europe/Berlin"),
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(made).To(And(HaveField("Active", true), HaveField("Owner.Username", developer.name), HaveField("NextRunAt", Not(BeNil()))))

		v, r, err := c.CreatePipelineScheduleVariable(team.project.ID, made.ID, &gitlab.CreatePipelineScheduleVariableOptions{Key: gitlab.Ptr("TARGET"), Value: gitlab.Ptr("staging")})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(v).To(And(HaveField("Key", "TARGET"), HaveField("VariableType", gitlab.VariableTypeValue("env_var"))))
		_, _, err = c.EditPipelineScheduleVariable(team.project.ID, made.ID, "TARGET", &gitlab.EditPipelineScheduleVariableOptions{Value: gitlab.Ptr("production")})
		Expect(err).NotTo(HaveOccurred())
		got, _, err := c.GetPipelineSchedule(team.project.ID, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Variables).To(HaveExactElements(And(HaveField("Key", "TARGET"), HaveField("Value", "production"))))
		_, r, err = c.DeletePipelineScheduleVariable(team.project.ID, made.ID, "TARGET")
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(202))

		r, err = c.RunPipelineSchedule(team.project.ID, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		of, _, err := c.ListPipelinesTriggeredBySchedule(team.project.ID, made.ID, &gitlab.ListPipelinesTriggeredByScheduleOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(of).To(HaveExactElements(HaveField("Source", gitlab.PipelineSource("schedule"))))

		changed, _, err := c.EditPipelineSchedule(team.project.ID, made.ID, &gitlab.EditPipelineScheduleOptions{Active: gitlab.Ptr(false)})
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.Active).To(BeFalse())
		taken, _, err := d.as(maintainer).PipelineSchedules.TakeOwnershipOfPipelineSchedule(team.project.ID, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(taken.Owner.Username).To(Equal(maintainer.name))
		r, err = c.DeletePipelineSchedule(team.project.ID, made.ID)
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`))
		some, _, err := c.ListPipelineSchedules(team.project.ID, &gitlab.ListPipelineSchedulesOptions{Scope: gitlab.Ptr(gitlab.PipelineScheduleScopeValue("inactive"))})
		Expect(err).NotTo(HaveOccurred())
		Expect(some).To(HaveExactElements(HaveField("ID", made.ID)))
		r, err = d.as(maintainer).PipelineSchedules.DeletePipelineSchedule(team.project.ID, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
	})
})
