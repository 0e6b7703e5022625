package conformance

import (
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

var _ = throughEachDoor("Parameters", func(d *door) {
	It("can be in a query, a form or JSON, whatever the method", func() {
		p := d.newTeam(gitlab.PrivateVisibility).project
		base := fmt.Sprintf("projects/%d/protected_branches", p.ID)
		c := d.as(maintainer)
		form := gitlab.WithHeader("Content-Type", "application/x-www-form-urlencoded")
		for i, tt := range []struct {
			query, body string
			options     []gitlab.RequestOptionFunc
		}{
			{query: "?name=a%2B%2F*&push_access_level=30&allow_force_push=1"},
			{body: "name=a%2B%2F*&push_access_level=30&allow_force_push=on", options: []gitlab.RequestOptionFunc{form}},
			{query: "?name=other&allow_force_push=t", body: `{"name":"a+/*","push_access_level":"30"}`},
			{query: "?push_access_level=30", body: "name=a%2B%2F*&allow_force_push=true", options: []gitlab.RequestOptionFunc{form}},
			{body: "name=a%2B%2F*&allowed_to_push[][access_level]=30&allow_force_push=true", options: []gitlab.RequestOptionFunc{form}},
			{query: "?name=a%2B%2F*&allowed_to_push%5B%5D%5Baccess_level%5D=30&allow_force_push=true"},
			{body: `{"name":"a+/*","push_access_level":null,"allowed_to_push":[{"access_level":30,"user_id":null}],"allow_force_push":true,"unknown":[1]}`},
		} {
			r := send(c, "POST "+base+tt.query, tt.body, tt.options...)
			Expect(r.StatusCode).To(Equal(http.StatusCreated), "%d: %s", i, answered(r))
			b, _, err := c.ProtectedBranches.GetProtectedBranch(p.ID, "a+/*")
			Expect(err).NotTo(HaveOccurred())
			Expect(levels(b.PushAccessLevels)).To(Equal(of(developers)), "%d", i)
			Expect(b.AllowForcePush).To(BeTrue(), "%d", i)
			Expect(answered(send(c, "DELETE "+base+"/a%2B%2F%2A", ""))).To(Equal("204"))
		}
	})

	It("of lists can be repeated, or separated by commas", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		for _, query := range []string{"user_ids[]=%d&user_ids[]=%d", "user_ids%%5B%%5D=%d&user_ids%%5B%%5D=%d", "user_ids=%d,%d", "user_ids=%d%%2C%d"} {
			r := d.as(root)
			answer := send(r, "GET groups/"+team.group.Path+"/members?"+fmt.Sprintf(query, guest.id, developer.id), "")
			Expect(answer.TotalItems).To(BeEquivalentTo(2), query)
		}
	})

	It("that are null clear optional values, and absent parameters change nothing", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		path := fmt.Sprintf("groups/%d/members/%d", team.group.ID, guest.id)
		expires := func(body string) string {
			GinkgoHelper()
			r := send(d.as(owner), "PUT "+path, body)
			Expect(r.StatusCode).To(Equal(http.StatusOK), answered(r))
			return answered(r)
		}
		Expect(expires(`{"access_level":10,"expires_at":"2099-12-31"}`)).To(ContainSubstring(`"expires_at":"2099-12-31"`))
		Expect(expires(`{"access_level":20}`)).To(ContainSubstring(`"expires_at":"2099-12-31"`))
		Expect(expires(`{"access_level":10,"expires_at":null}`)).To(ContainSubstring(`"expires_at":null`))
	})
})

var _ = throughEachDoor("Times", func(d *door) {
	It("are in UTC with milliseconds", d.again(), func() {
		p := d.newTeam(gitlab.PrivateVisibility).project
		Expect(answered(send(d.as(root), fmt.Sprintf("GET projects/%d", p.ID), ""))).To(
			MatchRegexp(`"created_at":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`))
	})
})

var _ = Describe("Version 3 of the API", func() {
	It("is not available", func() {
		answer, err := http.Get(own.url + "/api/v3/projects")
		Expect(err).NotTo(HaveOccurred())
		Expect(answer).To(HaveHTTPStatus(http.StatusGone))
		Expect(answer).To(HaveHTTPBody(MatchJSON(`{"error":"API V3 is no longer supported. Use API V4 instead."}`)))
	})
})
