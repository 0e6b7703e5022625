package retainedrepository_test

import (
	"encoding/json"
	"net/http"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("A retained repository", func() {
	It("shows in kubectl which project it belonged to, and where it is", func() {
		r, _ := leave("website")
		config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig())
		Expect(err).NotTo(HaveOccurred())
		direct, err := rest.HTTPClientFor(config)
		Expect(err).NotTo(HaveOccurred())
		request, err := http.NewRequestWithContext(GinkgoT().Context(), http.MethodGet,
			config.Host+"/apis/forgeplane.dev/v1alpha1/retainedrepositories?fieldSelector=spec.project.namespace="+namespace, http.NoBody)
		Expect(err).NotTo(HaveOccurred())
		request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
		answer, err := direct.Do(request)
		Expect(err).NotTo(HaveOccurred())
		defer answer.Body.Close()
		var table metav1.Table
		Expect(json.NewDecoder(answer.Body).Decode(&table)).To(Succeed())
		Expect(table.Rows).To(HaveLen(1))
		shown := map[string]any{}
		for i, column := range table.ColumnDefinitions {
			shown[column.Name] = table.Rows[0].Cells[i]
		}
		Expect(shown).To(And(
			HaveKeyWithValue("Name", r.Name), HaveKeyWithValue("Namespace", namespace), HaveKeyWithValue("Project", "website"),
			HaveKeyWithValue("Id", BeNumerically("==", r.Spec.Project.ID)), HaveKeyWithValue("Full path", "acme/website"),
			HaveKeyWithValue("Storage", "shard"), HaveKeyWithValue("Bytes", BeNumerically("==", r.Spec.SizeBytes)),
			HaveKeyWithValue("Ready", "True"), HaveKeyWithValue("Reason", "Ready"), HaveKey("Age"),
		))
		Expect(r.Status.RepositoryPath).To(Equal(repository.PathOfRetained(r)))
	})

	It("says what is wrong with its location", func() {
		r, _ := leave("website")
		back := away()
		f.ExpectWaiting(r, v1alpha1.ReasonStorageUnavailable, "storage shard is not mounted")
		back()
		f.ExpectReady(r)
		Expect(os.Rename(place(r), place(r)+".lost")).To(Succeed())
		f.ExpectFailing(r, v1alpha1.ReasonStorageUnavailable, "restore it to "+repository.PathOfRetained(r), "or delete this object")
		Expect(os.Rename(place(r)+".lost", place(r))).To(Succeed())
		f.ExpectReady(r)
		letGo()
		f.ExpectWaiting(r, v1alpha1.ReasonReferenceNotFound, "storage")
	})
})

var _ = Describe("The deletion of a retained repository", func() {
	It("purges it with the record of its shard, and is audited", func() {
		r, _ := leave("website")
		kept, _ := leave("shop")
		Expect(place(r)).To(BeADirectory())
		Expect(record(r)).To(BeARegularFile())
		uid := r.Spec.Project.UID
		purge(r)
		Expect(place(r)).NotTo(BeAnExistingFile())
		Expect(record(r)).NotTo(BeAnExistingFile())
		Expect(place(kept)).To(BeADirectory())
		f.ExpectReady(kept, shard)
		Expect(retained()).To(HaveLen(1), "nothing brings it back")
		Expect(told.Events()).To(ContainElement(And(
			HaveField("Action", "purge"), HaveField("About.UID", uid), HaveField("Objects", ConsistOf(HaveField("Verb", "delete"))),
		)))
	})

	It("waits for its shard", func() {
		r, _ := leave("website")
		back := away()
		f.Delete(r)
		f.ExpectWaiting(r, v1alpha1.ReasonDeleting, "storage shard is not mounted", "mount it")
		back()
		Expect(place(r)).To(BeADirectory())
		_, err := f.ReconcileOnce(r)
		Expect(err).NotTo(HaveOccurred())
		f.ExpectGone(r)
		Expect(place(r)).NotTo(BeAnExistingFile())
	})

	It("does not change the volume if its shard is no longer declared", func() {
		r, _ := leave("website")
		letGo()
		purge(r)
		Expect(place(r)).To(BeADirectory())
		Expect(record(r)).To(BeARegularFile())
	})

	It("is not audited as a purge if there is nothing to purge", func() {
		r, _ := leave("website")
		Expect(os.RemoveAll(place(r))).To(Succeed())
		purge(r)
		Expect(record(r)).NotTo(BeAnExistingFile())
		Expect(told.Events()).NotTo(ContainElement(HaveField("Action", "purge")))
	})

	It("removes nothing from a project that is adopting it", func() {
		r, commit := leave("website")
		site := forge.Project("site").In(acme).Adopting(r.Name).Build()
		f.Create(site)
		claimedBy(r, site)
		f.ExpectWaiting(r, v1alpha1.ReasonProgressing, "Project "+namespace+"/site is taking the repository over")
		f.Delete(r)
		// The project has no id yet, so its path is not the repository's.
		f.ExpectWaiting(r, v1alpha1.ReasonDeleting, "Project "+namespace+"/site is taking the repository over")
		Expect(place(r)).To(BeADirectory())
		_, err := f.ReconcileOnce(site)
		Expect(err).NotTo(HaveOccurred())
		f.ExpectReady(site)
		Expect(site.Status.HeadCommit).To(Equal(commit))
		_, err = f.ReconcileOnce(r)
		Expect(err).NotTo(HaveOccurred())
		f.ExpectGone(r)
		f.ExpectReady(site, shard)
		Expect(site.Status.HeadCommit).To(Equal(commit))
		Expect(retained()).To(BeEmpty())
		Expect(told.Events()).NotTo(ContainElement(HaveField("Action", "purge")))
	})

	It("removes nothing if the project that was adopting it is gone", func() {
		r, _ := leave("website")
		was := r.Spec.Project
		claimedBy(r, &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ghost", UID: "ghost"}})
		purge(r)
		Expect(place(r)).To(BeADirectory())
		f.ExpectReady(shard)
		Expect(retained()).To(ConsistOf(HaveField("Spec.Project", was)))
	})
})

var _ = Describe("The adoption of a retained repository", func() {
	It("is forgotten if the project that began it is gone", func() {
		r, _ := leave("website")
		claimedBy(r, &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ghost", UID: "ghost"}})
		f.ExpectReady(r)
		Expect(r.Status.AdoptedBy).To(BeNil())
	})

	It("can be given by an administrator to another namespace and another name", func() {
		r, commit := leave("website")
		elsewhere := f.NewNamespace()
		other := forge.Group("other").In(elsewhere).Build()
		f.Create(other)
		f.Run()
		f.Change(r, func() { r.Spec.AdoptBy = &v1alpha1.ProjectName{Namespace: elsewhere, Name: "site"} })
		namesake := forge.Project("site").In(acme).Build()
		f.Create(namesake)
		f.ExpectReady(namesake)
		Expect(namesake.Status.HeadCommit).To(BeEmpty(), "that is one of another namespace")
		site := forge.Project("site").In(other).Build()
		f.Create(site)
		f.ExpectReady(site)
		Expect(site.Status.HeadCommit).To(Equal(commit))
		Expect(site.Spec.ID).To(Equal(r.Spec.Project.ID))
		Eventually(retained).WithPolling(polling).Should(BeEmpty())
		Expect(record(r)).NotTo(BeAnExistingFile())
		f.ExpectRestartWritesNothing()
	})

	It("begins when an administrator gives the repository to a project that waits", func() {
		r, commit := leave("website")
		f.Run()
		site := forge.Project("website").In(acme).Named("site").Build()
		f.Create(site)
		f.ExpectStalled(site, v1alpha1.ReasonRepositoryRetained, r.Name)
		f.Change(r, func() { r.Spec.AdoptBy = &v1alpha1.ProjectName{Namespace: namespace, Name: "site"} })
		f.ExpectReady(site)
		Expect(site.Status.HeadCommit).To(Equal(commit))
	})

	It("does not begin while several repositories are given to one project", func() {
		first, commit := leave("website")
		second, _ := leave("shop")
		for _, r := range []*v1alpha1.RetainedRepository{first, second} {
			f.Change(r, func() { r.Spec.AdoptBy = &v1alpha1.ProjectName{Namespace: namespace, Name: "site"} })
		}
		site := forge.Project("site").In(acme).Build()
		f.Create(site)
		f.ExpectStalled(site, v1alpha1.ReasonRepositoryRetained, "several retained repositories name this project in adoptBy", first.Name, second.Name)
		f.Change(second, func() { second.Spec.AdoptBy = nil })
		_, err := f.ReconcileOnce(site)
		Expect(err).NotTo(HaveOccurred())
		f.Refresh(site)
		Expect(site.Status.HeadCommit).To(Equal(commit))
		Expect(site.Spec.ID).To(Equal(first.Spec.Project.ID))
	})
})
