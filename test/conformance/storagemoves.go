package conformance

import (
	"context"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fieldmanager"
)

// newShard declares a shard that takes no projects by weight.
func newShard() *v1alpha1.RepositoryStorage {
	GinkgoHelper()
	s := &v1alpha1.RepositoryStorage{Spec: v1alpha1.RepositoryStorageSpec{Path: GinkgoT().TempDir(), Weight: ptr.To(int32(0))}}
	s.Name = fresh("shard")
	Expect(api.Create(context.Background(), s)).To(Succeed())
	admin.Kubectl("wait", "--for=condition=Ready", "--timeout=60s", "repositorystorage/"+s.Name)
	return s
}

var _ = throughEachDoor("Repository storage moves", func(d *door) {
	schedule := func(project int64, shard string) *gitlab.ProjectRepositoryStorageMove {
		GinkgoHelper()
		m, r, err := d.as(root).ProjectRepositoryStorageMove.ScheduleStorageMoveForProject(project, gitlab.ScheduleStorageMoveForProjectOptions{DestinationStorageName: &shard})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(m.State).To(Equal("scheduled"))
		Expect(m.DestinationStorageName).To(Equal(shard))
		return m
	}

	finished := func(id int64) (m *gitlab.ProjectRepositoryStorageMove) {
		GinkgoHelper()
		Eventually(func() (_ *gitlab.ProjectRepositoryStorageMove, err error) {
			m, _, err = d.as(root).ProjectRepositoryStorageMove.GetStorageMove(id)
			if err == nil && m.State == "failed" {
				return m, StopTrying(admin.Kubectl("get", "storagemoves", "--all-namespaces", "--field-selector=spec.id="+strconv.FormatInt(id, 10),
					"--output=jsonpath={.items[*].status.lastError}"))
			}
			return m, err
		}).WithPolling(polling).Should(HaveField("State", "finished"))
		return m
	}

	// to moves a project, and waits until the move has finished.
	to := func(project int64, shard string) *gitlab.ProjectRepositoryStorageMove {
		GinkgoHelper()
		return finished(schedule(project, shard).ID)
	}

	It("move a project while it is used, and are history afterwards", d.again(), func() {
		shard, team := newShard(), d.newTeam(gitlab.PrivateVisibility)
		c := d.as(root).ProjectRepositoryStorageMove
		there := to(team.project.ID, shard.Name)
		Expect(there.SourceStorageName).To(Equal("default"))
		Expect(there.CreatedAt.IsZero()).To(BeFalse())
		Expect(*there.Project).To(Equal(gitlab.RepositoryProject{
			ID: team.project.ID, Name: team.project.Name, NameWithNamespace: team.project.NameWithNamespace,
			Path: team.project.Path, PathWithNamespace: team.project.PathWithNamespace, CreatedAt: team.project.CreatedAt,
		}))
		_, _, err := d.as(maintainer).RepositoryFiles.CreateFile(team.project.ID, "after.txt", &gitlab.CreateFileOptions{
			Branch: gitlab.Ptr("main"), Content: gitlab.Ptr("After the move.\n"), CommitMessage: gitlab.Ptr("After"),
		})
		Expect(err).NotTo(HaveOccurred(), "the project takes writes at once")

		back := to(team.project.ID, "default")
		text, _, err := d.as(maintainer).RepositoryFiles.GetRawFile(team.project.ID, "after.txt", &gitlab.GetRawFileOptions{Ref: gitlab.Ptr("main")})
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).To(Equal("After the move.\n"))
		same := to(team.project.ID, "default")
		Expect(same.SourceStorageName).To(Equal("default"))

		listed, r, err := c.RetrieveAllStorageMovesForProject(team.project.ID, gitlab.RetrieveAllProjectStorageMovesOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(listed).To(HaveExactElements(same, back, there), "the newest first")
		Expect(r.TotalItems).To(BeEquivalentTo(3))
		every, _, err := c.RetrieveAllStorageMoves(gitlab.RetrieveAllProjectStorageMovesOptions{ListOptions: gitlab.ListOptions{PerPage: 100}})
		Expect(err).NotTo(HaveOccurred())
		Expect(every).To(ContainElements(same, back, there))
		got, _, err := c.GetStorageMoveForProject(team.project.ID, there.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(Equal(there))

		other := d.newTeam(gitlab.PrivateVisibility)
		_, r, err = c.GetStorageMoveForProject(other.project.ID, there.ID)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(`404 {"message":"404 Not found"}`))
		Expect(api.Delete(context.Background(), shard)).To(Succeed())
		admin.Kubectl("wait", "--for=delete", "--timeout=60s", "repositorystorage/"+shard.Name)
	})

	It("move all projects off a shard", func() {
		shard := newShard()
		c := d.as(root).ProjectRepositoryStorageMove
		teams := []team{d.newTeam(gitlab.PrivateVisibility), d.newTeam(gitlab.PrivateVisibility)}
		for _, m := range []*gitlab.ProjectRepositoryStorageMove{schedule(teams[0].project.ID, shard.Name), schedule(teams[1].project.ID, shard.Name)} {
			finished(m.ID)
		}
		r, err := c.ScheduleAllStorageMoves(gitlab.ScheduleAllProjectStorageMovesOptions{SourceStorageName: &shard.Name, DestinationStorageName: gitlab.Ptr("default")})
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal(`202 {"message":"202 Accepted"}`))
		for _, t := range teams {
			Eventually(func() (*gitlab.ProjectRepositoryStorageMove, error) {
				all, _, err := c.RetrieveAllStorageMovesForProject(t.project.ID, gitlab.RetrieveAllProjectStorageMovesOptions{})
				if err != nil || len(all) < 2 {
					return nil, err
				}
				return all[0], nil
			}).WithPolling(polling).Should(And(HaveField("State", "finished"), HaveField("SourceStorageName", shard.Name)))
			all, _, err := c.RetrieveAllStorageMovesForProject(t.project.ID, gitlab.RetrieveAllProjectStorageMovesOptions{})
			Expect(err).NotTo(HaveOccurred())
			got, _, err := c.GetStorageMoveForProject(t.project.ID, all[0].ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(all[0]))
			every, _, err := c.RetrieveAllStorageMoves(gitlab.RetrieveAllProjectStorageMovesOptions{ListOptions: gitlab.ListOptions{PerPage: 100}})
			Expect(err).NotTo(HaveOccurred())
			Expect(every).To(ContainElements(all))
		}
		Expect(api.Delete(context.Background(), shard)).To(Succeed())
		admin.Kubectl("wait", "--for=delete", "--timeout=60s", "repositorystorage/"+shard.Name)
	})

	It("admit one of many at once", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		answers := make(chan string, 12)
		for range cap(answers) {
			go func() {
				defer GinkgoRecover()
				_, r, _ := d.as(root).ProjectRepositoryStorageMove.ScheduleStorageMoveForProject(team.project.ID, gitlab.ScheduleStorageMoveForProjectOptions{
					DestinationStorageName: gitlab.Ptr("default"),
				})
				answers <- answered(r)
			}()
		}
		var refused []string
		for range cap(answers) {
			if answer := <-answers; !strings.HasPrefix(answer, "201 ") {
				refused = append(refused, answer)
			}
		}
		Expect(refused).To(And(Not(BeEmpty()), HaveEach(`400 {"message":{"project":["is read-only"]}}`)))
		Expect(len(refused)).To(BeNumerically("<", cap(answers)))
	})

	It("stay in the history when their objects are deleted after their time", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		project := projectOf(team.project.ID)
		m := &v1alpha1.StorageMove{Spec: v1alpha1.StorageMoveSpec{
			ProjectRef: v1alpha1.Reference{Name: project.Name}, Destination: "default", TTLAfterFinished: &metav1.Duration{},
		}}
		m.Namespace, m.Name = project.Namespace, fresh("move")
		Expect(api.Create(context.Background(), m, client.FieldOwner(fieldmanager.REST))).To(Succeed()) // a declared one would stay
		admin.Kubectl("wait", "--for=delete", "--timeout=60s", "storagemove/"+m.Name, "--namespace="+m.Namespace)
		moves, _, err := d.as(root).ProjectRepositoryStorageMove.RetrieveAllStorageMovesForProject(team.project.ID, gitlab.RetrieveAllProjectStorageMovesOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(moves).To(HaveExactElements(HaveField("State", "finished")))
	})

	It("are refused to everybody except administrators, and in words", d.again(), func() {
		team := d.newTeam(gitlab.PublicVisibility)
		_, r, err := d.as(maintainer).ProjectRepositoryStorageMove.ScheduleStorageMoveForProject(team.project.ID, gitlab.ScheduleStorageMoveForProjectOptions{})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`))
		c := d.as(root).ProjectRepositoryStorageMove
		_, r, err = c.ScheduleStorageMoveForProject(team.project.ID, gitlab.ScheduleStorageMoveForProjectOptions{DestinationStorageName: gitlab.Ptr("nowhere")})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`400 {"message":{"destination_storage_name":["is not included in the list"]}}`))
		r, err = c.ScheduleAllStorageMoves(gitlab.ScheduleAllProjectStorageMovesOptions{})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`400 {"error":"source_storage_name is missing"}`))
		r, err = c.ScheduleAllStorageMoves(gitlab.ScheduleAllProjectStorageMovesOptions{SourceStorageName: gitlab.Ptr("nowhere")})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`400 {"error":"source_storage_name does not have a valid value"}`))
	})
})

// projectOf returns the object of a project.
func projectOf(id int64) v1alpha1.Project {
	GinkgoHelper()
	var all v1alpha1.ProjectList
	Expect(api.List(context.Background(), &all, client.MatchingFields{"spec.id": strconv.FormatInt(id, 10)})).To(Succeed())
	Expect(all.Items).To(HaveLen(1))
	return all.Items[0]
}
