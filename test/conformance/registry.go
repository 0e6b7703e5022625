package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	images "github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/feature"
)

// built is the time at which the images of the specs were made.
var built = time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)

// registryHost is the host of the registry for clients.
func registryHost() string { return strings.TrimPrefix(own.url, "http://") }

// newImage returns an image with two layers.
func newImage() v1.Image {
	GinkgoHelper()
	i, err := random.Image(512, 2)
	Expect(err).NotTo(HaveOccurred())
	i, err = mutate.CreatedAt(i, v1.Time{Time: built})
	Expect(err).NotTo(HaveOccurred())
	return i
}

// pushImage pushes a new image as the developer.
func pushImage(reference string) v1.Image {
	GinkgoHelper()
	i := newImage()
	Expect(images.Write(referenceTo(reference), i, signedIn(developer))).To(Succeed())
	return i
}

func digestOf(i v1.Image) v1.Hash {
	GinkgoHelper()
	d, err := i.Digest()
	Expect(err).NotTo(HaveOccurred())
	return d
}

func referenceTo(reference string) name.Reference {
	GinkgoHelper()
	r, err := name.ParseReference(registryHost() + "/" + reference)
	Expect(err).NotTo(HaveOccurred())
	return r
}

func signedIn(p *person) images.Option {
	return images.WithAuth(&authn.Basic{Username: p.name, Password: p.token})
}

// repositoriesOf lists the container repositories of a project.
func (d *door) repositoriesOf(p *person, project any) []*gitlab.RegistryRepository {
	GinkgoHelper()
	all, _, err := d.as(p).ContainerRegistry.ListProjectRegistryRepositories(project, nil)
	Expect(err).NotTo(HaveOccurred())
	return all
}

var _ = throughEachDoor("The container registry", func(d *door) {
	It("lists the repositories of projects and groups", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		path := team.project.PathWithNamespace
		Expect(d.repositoriesOf(guest, team.project.ID)).To(BeEmpty())
		pushImage(path + ":1.0")
		pushImage(path + "/web/debug:a")
		pushImage(path + "/web/debug:b")
		other := d.newProject(team.group.ID, gitlab.PrivateVisibility)
		pushImage(other.PathWithNamespace + ":1.0")

		c := d.as(guest).ContainerRegistry
		for _, id := range []any{team.project.ID, path} {
			all, r, err := c.ListProjectRegistryRepositories(id, &gitlab.ListProjectRegistryRepositoriesOptions{Tags: gitlab.Ptr(true), TagsCount: gitlab.Ptr(true)})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(200))
			Expect(all).To(HaveLen(2))
			Expect(all[0]).To(And(HaveField("Name", ""), HaveField("Path", path), HaveField("ProjectID", team.project.ID), HaveField("Location", registryHost()+"/"+path),
				HaveField("CreatedAt", HaveValue(BeTemporally("~", time.Now(), time.Hour))), HaveField("CleanupPolicyStartedAt", BeNil()), HaveField("Status", BeNil()),
				HaveField("TagsCount", int64(1))))
			tagged := path + "/web/debug:b"
			Expect(all[1]).To(And(HaveField("Name", "web/debug"), HaveField("Path", path+"/web/debug"), HaveField("TagsCount", int64(2)),
				HaveField("Tags", HaveExactElements(HaveField("Name", "a"), HaveValue(Equal(gitlab.RegistryRepositoryTag{Name: "b", Path: tagged, Location: registryHost() + "/" + tagged}))))))
		}
		_, r, err := c.ListProjectRegistryRepositories(team.project.ID, &gitlab.ListProjectRegistryRepositoriesOptions{ListOptions: gitlab.ListOptions{PerPage: 1}})
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(And(ContainSubstring(`"cleanup_policy_started_at":null`), ContainSubstring(`"status":null`),
			Not(ContainSubstring("tags")), Not(ContainSubstring("delete_api_path"))))
		Expect(r.TotalItems).To(BeEquivalentTo(2))
		_, r, err = d.as(maintainer).ContainerRegistry.ListProjectRegistryRepositories(team.project.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		first := d.repositoriesOf(guest, team.project.ID)[0]
		Expect(answered(r)).To(ContainSubstring(fmt.Sprintf(`"delete_api_path":"/api/v4/projects/%d/registry/repositories/%d"`, team.project.ID, first.ID)))

		ofGroup, r, err := d.as(developer).ContainerRegistry.ListGroupRegistryRepositories(team.group.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(ofGroup).To(HaveLen(3))
		Expect(answered(r)).NotTo(ContainSubstring("tags"))
		one, _, err := c.GetSingleRegistryRepository(first.ID, &gitlab.GetSingleRegistryRepositoryOptions{Tags: gitlab.Ptr(true), TagsCount: gitlab.Ptr(true)})
		Expect(err).NotTo(HaveOccurred())
		Expect(one).To(And(HaveField("ID", first.ID), HaveField("TagsCount", int64(1)), HaveField("Tags", HaveLen(1))))
		Expect(answered(send(d.as(guest), fmt.Sprintf("GET registry/repositories/%d?size=true", first.ID), ""))).To(MatchRegexp(`"size":[1-9]\d+`))
	})

	It("lists tags by the time of their images, and shows what they mean", d.again(), func() {
		team := d.newTeam(gitlab.PublicVisibility)
		path := team.project.PathWithNamespace
		for n, tag := range []string{"c", "a", "b"} {
			older, err := mutate.CreatedAt(newImage(), v1.Time{Time: built.Add(-time.Duration(n+1) * time.Hour)})
			Expect(err).NotTo(HaveOccurred())
			Expect(images.Write(referenceTo(path+":"+tag), older, signedIn(developer))).To(Succeed())
		}
		i := pushImage(path + ":d")
		id := d.repositoriesOf(nobody, team.project.ID)[0].ID
		c := d.as(nobody).ContainerRegistry
		var names []string
		o := &gitlab.ListRegistryRepositoryTagsOptions{ListOptions: gitlab.ListOptions{PerPage: 3}}
		for {
			tags, r, err := c.ListRegistryRepositoryTags(path, id, o)
			Expect(err).NotTo(HaveOccurred())
			Expect(r.TotalItems).To(BeEquivalentTo(4))
			for _, tag := range tags {
				names = append(names, tag.Name)
			}
			if r.NextPage == 0 {
				break
			}
			o.Page = r.NextPage
		}
		Expect(names).To(Equal([]string{"d", "c", "a", "b"}))

		tag, _, err := c.GetRegistryRepositoryTagDetail(path, id, "d")
		Expect(err).NotTo(HaveOccurred())
		config, err := i.ConfigName()
		Expect(err).NotTo(HaveOccurred())
		m, err := i.Manifest()
		Expect(err).NotTo(HaveOccurred())
		size := m.Config.Size
		for _, l := range m.Layers {
			size += l.Size
		}
		Expect(tag).To(HaveValue(Equal(gitlab.RegistryRepositoryTag{
			Name: "d", Path: path + ":d", Location: registryHost() + "/" + path + ":d", Revision: config.Hex, ShortRevision: config.Hex[:9],
			Digest: digestOf(i).String(), CreatedAt: &built, TotalSize: size,
		})))
		inner := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: i})
		outer := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: inner})
		Expect(images.WriteIndex(referenceTo(path+":nested"), outer, signedIn(developer))).To(Succeed())
		_, r, err := c.GetRegistryRepositoryTagDetail(path, id, "nested")
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(And(ContainSubstring(`"created_at":null`), ContainSubstring(`"total_size":null`)))
		_, r, err = c.GetRegistryRepositoryTagDetail(path, id, "none")
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(`404 {"message":"404 Tag Not Found"}`))
	})

	It("deletes tags for Developers and repositories for Maintainers", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		path := team.project.PathWithNamespace
		pushImage(path + "/web:1.0")
		i := pushImage(path + "/web:2.0")
		id := d.repositoriesOf(guest, team.project.ID)[0].ID
		r, err := d.as(guest).ContainerRegistry.DeleteRegistryRepositoryTag(team.project.ID, id, "1.0")
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`))
		for _, tag := range []string{"1.0", "2.0"} {
			r, err = d.as(developer).ContainerRegistry.DeleteRegistryRepositoryTag(path, id, tag)
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(Equal("200 200"))
			r, err = d.as(developer).ContainerRegistry.DeleteRegistryRepositoryTag(path, id, tag)
			Expect(err).To(MatchError(gitlab.ErrNotFound))
			Expect(answered(r)).To(Equal(`404 {"message":"404 Tag Not Found"}`))
		}
		_, err = images.Image(referenceTo(path+"/web@"+digestOf(i).String()), signedIn(guest))
		Expect(err).NotTo(HaveOccurred(), "the image remains available by its digest")

		r, err = d.as(developer).ContainerRegistry.DeleteRegistryRepository(team.project.ID, id)
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`))
		r, err = d.as(maintainer).ContainerRegistry.DeleteRegistryRepository(team.project.ID, id)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("202 202"))
		Eventually(func() string {
			one, r, err := d.as(maintainer).ContainerRegistry.GetSingleRegistryRepository(id, nil)
			if err == nil {
				Expect(one.Status).To(HaveValue(BeElementOf(gitlab.ContainerRegistryStatusDeleteScheduled, gitlab.ContainerRegistryStatusDeleteOngoing)))
			}
			return answered(r)
		}).WithPolling(polling).Should(Equal(`404 {"message":"404 Not found"}`))
		Expect(d.repositoriesOf(maintainer, team.project.ID)).To(BeEmpty())
		pushImage(path + "/web:again")
		Expect(d.repositoriesOf(maintainer, team.project.ID)).To(HaveExactElements(HaveField("ID", BeNumerically(">", id))))
	})

	It("goes with a project that gets another path", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		former := team.project.PathWithNamespace
		pushed := pushImage(former + "/web:1.0")
		id := d.repositoriesOf(guest, team.project.ID)[0].ID
		expectAt := func(path string) {
			GinkgoHelper()
			Expect(d.repositoriesOf(guest, path)).To(HaveExactElements(And(HaveField("ID", id), HaveField("Path", path+"/web"))))
			pulled, err := images.Image(referenceTo(path+"/web:1.0"), signedIn(guest))
			Expect(err).NotTo(HaveOccurred())
			Expect(pulled.Digest()).To(Equal(digestOf(pushed)))
			Expect(images.Write(referenceTo(path+"/web:2.0"), pushed, signedIn(developer))).To(Succeed())
		}
		renamed, _, err := d.as(owner).Projects.EditProject(team.project.ID, &gitlab.EditProjectOptions{Path: gitlab.Ptr(team.project.Path + "-renamed")})
		Expect(err).NotTo(HaveOccurred())
		expectAt(renamed.PathWithNamespace)
		below := d.newGroup(owner, team.group, gitlab.PrivateVisibility)
		moved, _, err := d.as(owner).Projects.TransferProject(team.project.ID, &gitlab.TransferProjectOptions{Namespace: below.ID})
		Expect(err).NotTo(HaveOccurred())
		expectAt(moved.PathWithNamespace)

		_, _, err = d.as(owner).Projects.CreateProject(&gitlab.CreateProjectOptions{Path: &team.project.Path, NamespaceID: &team.group.ID})
		Expect(err).NotTo(HaveOccurred())
		Expect(d.repositoriesOf(owner, former)).To(BeEmpty())
		Expect(images.Image(referenceTo(former+"/web:1.0"), signedIn(owner))).Error().To(MatchError(ContainSubstring("NAME_UNKNOWN")))
	})

	It("follows the access level of the project", func() {
		team := d.newTeam(gitlab.PublicVisibility)
		path := team.project.PathWithNamespace
		pushImage(path + ":1.0")
		id := d.repositoriesOf(nobody, team.project.ID)[0].ID
		level := func(to gitlab.AccessControlValue) {
			p, _, err := d.as(maintainer).Projects.EditProject(team.project.ID, &gitlab.EditProjectOptions{ContainerRegistryAccessLevel: &to})
			Expect(err).NotTo(HaveOccurred())
			Expect(p.ContainerRegistryAccessLevel).To(Equal(to))
		}
		reads := []string{
			fmt.Sprintf("GET projects/%d/registry/repositories", team.project.ID), fmt.Sprintf("GET projects/%d/registry/repositories/%d/tags", team.project.ID, id),
			fmt.Sprintf("GET projects/%d/registry/repositories/%d/tags/1.0", team.project.ID, id), fmt.Sprintf("GET registry/repositories/%d", id),
		}
		expect := func(status string, people ...*person) {
			GinkgoHelper()
			for _, p := range people {
				for _, read := range reads {
					Expect(answered(send(d.as(p), read, ""))).To(HavePrefix(status), "%s: %s", p.name, read)
				}
			}
		}
		expect("200 ", guest, developer, outsider)
		level(gitlab.PrivateAccessControl)
		expect("403 ", guest, outsider)
		expect("200 ", developer)
		_, _, err := d.as(root).GroupMembers.EditGroupMember(team.group.ID, guest.id, &gitlab.EditGroupMemberOptions{AccessLevel: gitlab.Ptr(gitlab.ReporterPermissions)})
		Expect(err).NotTo(HaveOccurred())
		expect("200 ", guest)
		Expect(answered(send(d.as(outsider), fmt.Sprintf("GET groups/%d/registry/repositories", team.group.ID), ""))).To(Equal(`403 {"message":"403 Forbidden"}`))
		level(gitlab.DisabledAccessControl)
		expect("403 ", guest, developer, maintainer, owner, root, outsider)
		Expect(answered(send(d.as(owner), fmt.Sprintf("GET groups/%d/registry/repositories", team.group.ID), ""))).To(Equal("200 []"))
		_, err = images.List(referenceTo(path).Context(), signedIn(owner))
		Expect(err).To(MatchError(ContainSubstring("UNAUTHORIZED")))
		level(gitlab.EnabledAccessControl)
		expect("200 ", outsider)
		Expect(answered(send(d.as(nobody), reads[3], ""))).To(HavePrefix("401 "))
	})

	It("accepts job tokens for their own project, while a feature is on", func() {
		team, _ := d.newPipelines()
		pushImage(team.project.PathWithNamespace + "/web:1.0")
		id := d.repositoriesOf(developer, team.project.ID)[0].ID
		other := d.newProject(team.group.ID, gitlab.PrivateVisibility)
		job := d.take(team.project)
		told.introduce(job.Token, bearer{user: developer.id})
		ask := func(request string) string {
			GinkgoHelper()
			return answered(send(d.as(nobody), request, "", gitlab.WithHeader("JOB-TOKEN", job.Token)))
		}
		const hidden = `404 {"message":"404 Project Not Found"}`
		list, one := fmt.Sprintf("GET projects/%d/registry/repositories", team.project.ID), fmt.Sprintf("projects/%d/registry/repositories/%d", team.project.ID, id)
		Expect(ask(list)).To(Equal(hidden))
		_, _, err := d.as(root).Features.SetFeatureFlag(feature.JobTokenRegistry, &gitlab.SetFeatureFlagOptions{Value: true})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() {
			_, err := d.as(root).Features.DeleteFeatureFlag(feature.JobTokenRegistry)
			Expect(err).NotTo(HaveOccurred())
		})
		for _, read := range []string{list, fmt.Sprintf("GET registry/repositories/%d", id), "GET " + one + "/tags", "GET " + one + "/tags/1.0"} {
			Expect(ask(read)).To(HavePrefix("200 "), read)
		}
		Expect(ask("DELETE " + one)).To(Equal(`403 {"message":"403 Forbidden"}`))
		Expect(ask("DELETE " + one + "/tags/1.0")).To(Equal("200 200"))
		Expect(ask(fmt.Sprintf("GET projects/%d/registry/repositories", other.ID))).To(Equal(hidden))
		Eventually(func() []audit.Event {
			_, all := linesOf(told.path)
			return slices.DeleteFunc(all, func(e audit.Event) bool { return e.Job != job.ID || e.Result != audit.Refused || e.Status != 404 })
		}).WithPolling(polling).Should(HaveExactElements(And(HaveField("User.Username", developer.name), HaveField("About.ID", other.ID),
			HaveField("Action", "GET /projects/{id}/registry/repositories"), HaveField("Reason", HavePrefix("the job token scope of the project does not allow")))))
	})

	It("is hidden with its project", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		pushImage(team.project.PathWithNamespace + ":1.0")
		id := d.repositoriesOf(guest, team.project.ID)[0].ID
		for _, p := range []*person{nobody, outsider} {
			r := send(d.as(p), fmt.Sprintf("GET projects/%d/registry/repositories/%d/tags", team.project.ID, id), "")
			Expect(answered(r)).To(Equal(`404 {"message":"404 Project Not Found"}`))
		}
		Expect(answered(send(d.as(outsider), fmt.Sprintf("GET registry/repositories/%d", id), ""))).To(Equal(`404 {"message":"404 Not found"}`))
		other := d.newProject(team.group.ID, gitlab.PrivateVisibility)
		r := send(d.as(guest), fmt.Sprintf("GET projects/%d/registry/repositories/%d/tags", other.ID, id), "")
		Expect(answered(r)).To(Equal(`404 {"message":"404 Not found"}`), "it belongs to another project")
	})
})

// The audit log has a line for each push and deletion of a client of the registry.
var _ = Describe("A client of the registry", func() {
	It("appears in the audit log", func() {
		team := own.newTeam(gitlab.PrivateVisibility)
		path := team.project.PathWithNamespace
		i := pushImage(path + "/web:1.0")
		Expect(images.Delete(referenceTo(path+"/web:1.0"), signedIn(maintainer))).To(Succeed())
		Expect(images.Delete(referenceTo(path+"/web@"+digestOf(i).String()), signedIn(developer))).NotTo(Succeed())
		Expect(images.Delete(referenceTo(path+"/web@"+digestOf(i).String()), signedIn(maintainer))).To(Succeed())
		Eventually(func() (lines []string) {
			_, all := linesOf(told.path)
			for _, e := range all {
				if e.Door == "registry" && e.About != nil && e.About.Path == path {
					written := slices.Collect(func(yield func(string) bool) {
						for _, o := range e.Objects {
							yield(o.Verb + " " + o.Kind + " " + o.Name)
						}
					})
					lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %d %s", e.User.Username, e.Action, e.Result, e.Status, strings.Join(written, ", "))))
				}
			}
			return lines
		}).WithPolling(polling).Should(ConsistOf(
			"developer put image done 201 push ContainerImage "+path+"/web@"+digestOf(i).String()+", push ContainerTag "+path+"/web:1.0",
			"maintainer delete image done 202 delete ContainerTag "+path+"/web:1.0",
			"developer delete image refused 401", "developer delete image refused 401", // the client tries again with another token
			"maintainer delete image done 202 delete ContainerImage "+path+"/web@"+digestOf(i).String(),
		))
	})
})
