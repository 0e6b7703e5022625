package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

var _ = throughEachDoor("Resource state events", func(d *door) {
	It("of issues are listed, the oldest first, and read", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		is, c := newItems(team), d.as(guest).ResourceStateEvents
		listed, r, err := c.ListIssueStateEvents(team.project.PathWithNamespace, is.issue.IID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.TotalItems).To(BeEquivalentTo(2))
		Expect(listed).To(HaveExactElements(HaveField("State", gitlab.ClosedEventType), HaveField("State", gitlab.ReopenedEventType)))
		for _, e := range listed {
			Expect(e.User).To(And(HaveField("ID", maintainer.id), HaveField("Username", "maintainer")))
			Expect(e.CreatedAt).To(HaveValue(BeTemporally("==", is.made)))
			Expect(e.ResourceType).To(Equal("Issue"))
			Expect(e.ResourceID).To(Equal(is.issue.ID))
			got, _, err := c.GetIssueStateEvent(team.project.ID, is.issue.IID, e.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(e))
		}
		second, _, err := c.ListIssueStateEvents(team.project.ID, is.issue.IID, &gitlab.ListStateEventsOptions{ListOptions: gitlab.ListOptions{Page: 2, PerPage: 1}})
		Expect(err).NotTo(HaveOccurred())
		Expect(second).To(HaveExactElements(Equal(listed[1])))
		_, r, err = c.GetIssueStateEvent(team.project.ID, is.issue.IID, 9999)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(`404 {"message":"404 Not found"}`))
	})

	It("of epics are listed, the oldest first, and read", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		is := newItems(team)
		var listed []gitlab.StateEvent
		path := is.epicPath() + "/resource_state_events"
		Expect(json.Unmarshal([]byte(send(d.as(guest), "GET "+path, "").Body.(*kept).text), &listed)).To(Succeed())
		Expect(listed).To(HaveExactElements(HaveField("State", gitlab.ClosedEventType), HaveField("State", gitlab.ReopenedEventType)))
		Expect(listed[0]).To(And(HaveField("ResourceType", "Epic"), HaveField("ResourceID", is.epic.ID)))
		var got gitlab.StateEvent
		Expect(json.Unmarshal([]byte(send(d.as(guest), fmt.Sprintf("GET %s/%d", path, listed[1].ID), "").Body.(*kept).text), &got)).To(Succeed())
		Expect(got).To(Equal(listed[1]))
	})

	It("need a token even if the project is public, and are hidden with it", d.again(), func() {
		open, hidden := d.newTeam(gitlab.PublicVisibility), d.newTeam(gitlab.PrivateVisibility)
		shown, secret := newItems(open), newItems(hidden)
		seen := fmt.Sprintf("projects/%d/issues/%d/resource_state_events", open.project.ID, shown.issue.IID)
		unseen := fmt.Sprintf("projects/%d/issues/%d/resource_state_events", hidden.project.ID, secret.issue.IID)
		for _, path := range []string{seen, seen + "/1", unseen, shown.epicPath() + "/resource_state_events"} {
			Expect(answered(d.get(path))).To(Equal(`401 {"message":"401 Unauthorized"}`), path)
		}
		Expect(send(d.as(outsider), "GET "+seen, "").StatusCode).To(Equal(http.StatusOK))
		Expect(answered(send(d.as(outsider), "GET "+unseen, ""))).To(Equal(`404 {"message":"404 Project Not Found"}`))
	})
})
