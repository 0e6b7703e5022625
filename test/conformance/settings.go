package conformance

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

var _ = throughEachDoor("Settings of the installation", func(d *door) {
	It("show what applies, and the limit of new users can change", func() {
		c := d.as(root).Settings
		was, _, err := c.GetSettings()
		Expect(err).NotTo(HaveOccurred())
		Expect(was.DefaultProjectVisibility).To(Equal(gitlab.PrivateVisibility))
		Expect(was.SignupEnabled).To(BeFalse())
		DeferCleanup(func() {
			Expect(answered(send(d.as(root), "PUT application/settings", `{"default_projects_limit":null}`))).To(HavePrefix("200"))
		})
		_, _, err = c.UpdateSettings(&gitlab.UpdateSettingsOptions{DefaultProjectsLimit: gitlab.Ptr(int64(42))})
		Expect(err).NotTo(HaveOccurred())
		is, _, err := c.GetSettings()
		Expect(err).NotTo(HaveOccurred())
		Expect(is.DefaultProjectsLimit).To(BeEquivalentTo(42))
		Expect(d.newUser(fresh("limited")).ProjectsLimit).To(BeEquivalentTo(42))
		_, r, err := c.UpdateSettings(&gitlab.UpdateSettingsOptions{SignupEnabled: gitlab.Ptr(true)})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`400 {"message":{"signup_enabled":["cannot be changed on this server"]}}`))
	})
})
