package conformance

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/activity"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/epic"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/note"
	"github.com/forgeplane/forgeplane/internal/stateevent"
)

// items are an issue of a team's project and an epic of its group, each with a note by the maintainer, who has closed the issue and the epic, and
// reopened them.
type items struct {
	issue           issue.Issue
	epic            epic.Epic
	onIssue, onEpic note.Note
	// made is the time of the events.
	made time.Time
}

// newItems adds the items of a team to the activity database.
func newItems(t team) *items {
	GinkgoHelper()
	ctx := context.Background()
	stores, err := activity.Open(ctx, activityDatabase, clock.RealClock{})
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(stores.Database.Close()).To(Succeed()) }()
	project, above := database.Subject{Kind: database.KindProject, ID: t.project.ID}, group(t)
	var projects v1alpha1.ProjectList
	Expect(api.List(ctx, &projects, client.InNamespace(above.Namespace))).To(Succeed())
	for _, p := range projects.Items {
		if p.RESTID() == project.ID {
			project.UID = p.UID
		}
	}
	Expect(project.UID).NotTo(BeEmpty())
	var u v1alpha1.User
	Expect(api.Get(ctx, client.ObjectKey{Name: maintainer.name}, &u)).To(Succeed())
	author, in := database.User{ID: maintainer.id, UID: u.UID}, database.Subject{Kind: database.KindGroup, ID: t.group.ID, UID: above.UID}

	all := &items{made: time.Now().UTC().Truncate(time.Millisecond)}
	all.issue = issue.Issue{In: project, Title: "Broken", Type: "issue", Author: author}
	Expect(stores.Issues.Create(ctx, &all.issue)).To(Succeed())
	all.onIssue = note.Note{In: project, On: all.issue.Item(), Discussion: "on the issue", Body: "Hello", Author: author}
	Expect(stores.Notes.Create(ctx, &all.onIssue)).To(Succeed())
	all.epic = epic.Epic{In: in, Title: "Big", Author: author}
	Expect(stores.Epics.Create(ctx, &all.epic)).To(Succeed())
	all.onEpic = note.Note{In: in, On: all.epic.Item(), Discussion: "on the epic", Body: "Hello", Author: author}
	Expect(stores.Notes.Create(ctx, &all.onEpic)).To(Succeed())
	for _, s := range []stateevent.State{stateevent.Closed, stateevent.Reopened} {
		ofEpic := stateevent.Event{In: in, Of: all.epic.Item(), State: s, User: author, Created: all.made}
		Expect(stores.StateEvents.Add(ctx, &ofEpic)).To(Succeed())
		ofIssue := stateevent.Event{In: project, Of: all.issue.Item(), State: s, User: author, Created: all.made}
		Expect(stores.StateEvents.Add(ctx, &ofIssue)).To(Succeed())
	}
	return all
}

// epicPath is the path of the epic.
func (i *items) epicPath() string { return fmt.Sprintf("groups/%d/epics/%d", i.epic.In.ID, i.epic.ID) }
