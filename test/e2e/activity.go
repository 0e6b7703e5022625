package e2e

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/process"
)

// kubectl reads merge requests, issues, pipelines and jobs through kube-apiserver. These objects are not in etcd.
var _ = Describe("Merge requests and issues in kubectl", Ordered, func() {
	var quay team

	BeforeAll(func() {
		quay = newTeam("quay")
		clone := quay.start()
		clone.Git("checkout", "-b", "feature")
		clone.Commit("feature.txt", "A feature.\n")
		clone.MustPush("feature")
		rest := quay.rest("max")
		project := "/projects/" + quay.name + "%2Fapp"
		Expect(rest.Call("POST "+project+"/merge_requests", `{"title":"Add a feature","source_branch":"feature","target_branch":"main"}`)).To(HaveField("Status", 201))
		for _, title := range []string{"One", "Two", "Three"} {
			Expect(rest.Call("POST "+project+"/issues", `{"title":"`+title+`"}`)).To(HaveField("Status", 201))
		}
		Expect(rest.Call("PUT "+project+"/issues/2", `{"state_event":"close"}`)).To(HaveField("Status", 200))
		admin.Kubectl("wait", "--for=create", "--timeout=60s", "apiservice/v1alpha1.activity.forgeplane.dev")
		admin.Kubectl("wait", "--for=condition=Available", "--timeout=60s", "apiservice/v1alpha1.activity.forgeplane.dev")
	})

	It("are listed as tables, in pages and with field selectors", func() {
		lines := func(args ...string) (all [][]string) {
			for line := range strings.SplitSeq(strings.TrimSpace(quay.kubectl(args...)), "\n") {
				all = append(all, strings.Fields(line))
			}
			return all
		}
		mr := lines("get", "mr")
		Expect(mr).To(HaveLen(2))
		Expect(mr[0]).To(Equal([]string{"NAME", "TITLE", "STATE", "SOURCE", "TARGET", "AGE"}))
		Expect(mr[1][:7]).To(Equal([]string{"app-1", "Add", "a", "feature", "opened", "feature", "main"}))
		names := func(args ...string) string {
			return quay.kubectl(append([]string{"get", "issues", "--output=jsonpath={.items[*].metadata.name}"}, args...)...)
		}
		Expect(names("--chunk-size=1")).To(Equal("app-1 app-2 app-3"))
		Expect(names("--field-selector=status.state=opened")).To(Equal("app-1 app-3"))
		Expect(quay.kubectl("get", "mergerequest", "app-1", "--output=jsonpath={.spec.sourceProject} {.status.iid}")).To(Equal(quay.name + "/app 1"))
		Eventually(func() string { // kube-apiserver collects the documents of aggregated groups by and by
			said, _ := admin.Try("kubectl", "explain", "mergerequest.spec.targetBranch")
			return said
		}).Should(ContainSubstring("the branch of the project into which it is merged"))
	})

	It("are watched", func() {
		log := filepath.Join(GinkgoT().TempDir(), "wait.log")
		binaries, err := controlplane.FindBinaries()
		Expect(err).NotTo(HaveOccurred())
		p, err := process.Start(process.Program{
			Name: "kubectl", Path: binaries.Kubectl, Log: log, Env: admin.Env,
			Args: []string{"wait", "--for=jsonpath={.status.state}=merged", "--timeout=120s", "mr/app-1", "--namespace=" + quay.name},
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(p.Kill)
		rest := quay.rest("max")
		Eventually(func() any {
			return rest.Call("PUT /projects/"+quay.name+"%2Fapp/merge_requests/1/merge", "").Status
		}).Should(Equal(200))
		Eventually(func() (string, error) {
			text, err := os.ReadFile(log)
			return string(text), err
		}).Should(ContainSubstring("condition met"))
	})

	It("are shown beside pipelines and their jobs", func() {
		rest := quay.rest("max")
		project := "/projects/" + quay.name + "%2Fapp"
		content := `{"branch":"ci","start_branch":"main","commit_message":"Test","actions":[{"action":"create","file_path":".gitlab-ci.yml","content":"test: {script: make, only: [api]}"}]}`
		Expect(rest.Call("POST "+project+"/repository/commits", content)).To(HaveField("Status", 201))
		Expect(rest.Call("POST "+project+"/pipeline", `{"ref":"ci"}`)).To(HaveField("Status", 201))
		Expect(quay.kubectl("wait", "--for=jsonpath={.status.state}=pending", "--timeout=60s", "pipeline/app-1")).To(ContainSubstring("condition met"))
		Expect(quay.kubectl("get", "cijob", "--output=jsonpath={.items[*].spec.pipeline} {.items[*].spec.title} {.items[*].status.state}")).To(Equal("app-1 test pending"))
		id := quay.kubectl("get", "pipeline", "app-1", "--output=jsonpath={.status.id}")
		Expect(rest.Call("POST "+project+"/pipelines/"+id+"/cancel", "")).To(HaveField("Status", 200))
		Expect(quay.kubectl("wait", "--for=jsonpath={.status.state}=canceled", "--timeout=60s", "pipeline/app-1")).To(ContainSubstring("condition met"))
	})

	It("are refused if RBAC does not allow the request, whatever the role of the caller in the forge", func() {
		_, err := admin.Try("kubectl", "get", "mr", "--namespace="+quay.name, "--as="+quay.user("max"))
		Expect(err).To(HaveOccurred())
		admin.Kubectl("create", "rolebinding", "viewer", "--clusterrole=view", "--user=viewer@example.com", "--namespace="+quay.name)
		Eventually(func() (string, error) {
			return admin.Try("kubectl", "get", "mr,issues", "--namespace="+quay.name, "--as=viewer@example.com", "--output=name")
		}).Should(ContainSubstring("mergerequest.activity.forgeplane.dev/app-1"))
		screen, err := admin.Try("kubectl", "get", "mr", "--all-namespaces", "--as=viewer@example.com")
		Expect(err).To(HaveOccurred())
		Expect(screen).To(ContainSubstring("Forbidden"))
	})
})
