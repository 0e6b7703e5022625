package frame_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/audit/audittest"
	"github.com/forgeplane/forgeplane/internal/frame"
)

func TestAuditLog_recordsIDsButNotConditions(t *testing.T) {
	w, lines := newWorld(t, func(u *v1alpha1.User) { u.Finalizers = []string{"somebody/else"} }), audittest.Open(t)
	ids := &counter{next: 7}
	f := frame.New(frame.Base{Client: lines.Client(w.client), Events: w.events}, frame.WithIDs[*v1alpha1.User](ids),
		frame.WithFinalizer("forgeplane.dev/test", func(context.Context, *v1alpha1.User) error { return nil }))
	run := func(err error) {
		t.Helper()
		_, _ = w.run(f, ends(err))
	}
	run(frame.Waiting("Reason", "the id is in force"))
	run(frame.Waiting("Other", "nothing but a condition changes"))
	ids.holder = w.user
	run(nil)
	w.Expect(w.user.Status.ID).To(BeZero())
	w.Expect(w.client.Delete(t.Context(), w.user)).To(Succeed())
	run(nil)

	line := func(action, verb, reason string) any {
		return And(HaveField("Controller", "User"), HaveField("Action", action), HaveField("Reason", reason), HaveField("Result", audit.Done),
			HaveField("About", HaveValue(HaveField("UID", "1"))),
			HaveField("Objects", ConsistOf(audit.Object{Verb: verb, Kind: "User", Name: "ada", UID: "1", ID: 7})))
	}
	w.Expect(lines.Events()).To(HaveExactElements(
		line("prepare", "update", ""), line("identify", "update-status", "status.id was 0 and is 7"),
		line("identify", "update-status", "status.id was 7 and is 0"), line("finalize", "update", ""),
	))
}
