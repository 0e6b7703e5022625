package project_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/audit/audittest"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("The audit log", func() {
	var lines *audittest.Lines
	BeforeEach(func() {
		lines = audittest.Open(GinkgoTB())
		f = forge.New(cluster, forge.Options{AllowFileImport: true, Audit: lines.Log})
		f.Run()
	})

	It("records what an import has written, what became of HEAD, and that the repository was deleted with its project", func() {
		o := newOrigin()
		tools := forge.Project("tools").In(acme).ImportedFrom("file://" + o.root + "/tools.git").Discarded().Build()
		f.Create(tools)
		o.imported(tools)
		f.Change(tools, func() { tools.Spec.DefaultBranch = "topic" })
		f.Eventually(tools).Should(HaveField("Status.DefaultBranch", "topic"))
		f.Delete(tools)
		f.ExpectGone(tools)
		Expect(repositoryActions(lines.Events())).To(HaveExactElements(
			And(HaveField("Action", "import"), HaveField("Target", HaveSuffix("/tools.git")), HaveField("Refs", ConsistOf(
				audit.Ref{Ref: update.Ref{Name: "refs/heads/topic", New: o.commit}, Result: audit.Done},
				audit.Ref{Ref: update.Ref{Name: "refs/heads/trunk", New: o.commit}, Result: audit.Done},
				HaveField("Name", "refs/tags/v1"),
			))),
			And(HaveField("Action", "set-head"), HaveField("Refs", ConsistOf(audit.Ref{Ref: update.Ref{Name: "HEAD", New: "refs/heads/topic"}, Result: audit.Done}))),
			And(HaveField("Action", "destroy"), HaveField("Reason", "deletionPolicy: Delete")),
		))
		for _, e := range repositoryActions(lines.Events()) {
			Expect(e).To(And(HaveField("Door", audit.Controller), HaveField("Controller", "Project"), HaveField("Result", audit.Done)))
			Expect(*e.About).To(Equal(audit.Object{
				Kind: "Project", Namespace: tools.Namespace, Name: "tools", ID: tools.Spec.ID, UID: string(tools.UID), Path: "acme/tools",
			}))
		}
	})

	It("records an import that fails, and not its credentials", func() {
		o := newOrigin()
		f.Create(secret("origin", o.URL, map[string]string{"username": "somebody", "password": "not-the-right-one"}))
		tools := forge.Project("tools").In(acme).ImportedFrom(o.URL + "/private/tools.git").ImportSecret("origin").Build()
		f.Create(tools)
		f.ExpectWaiting(tools, "ImportFailed")
		Expect(repositoryActions(lines.Events())).To(ContainElement(And(
			HaveField("Action", "import"), HaveField("Result", audit.Failed), HaveField("Target", o.URL+"/private/tools.git"), HaveField("Refs", BeEmpty()),
		)))
		Expect(string(lines.Text())).NotTo(ContainSubstring("not-the-right-one"))
	})
})

// repositoryActions returns the events about repositories.
func repositoryActions(all []audit.Event) []audit.Event {
	const actions = " init import set-head destroy move "
	var found []audit.Event
	for _, e := range all {
		if strings.Contains(actions, " "+e.Action+" ") {
			found = append(found, e)
		}
	}
	return found
}
