package containers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/opencontainers/go-digest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/containers"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/internal/registry/registrytest"
)

// world is a forge with the private project acme/app (20), whose container repositories are "" (1) and "web" (2), and acme/off (21), whose
// registry is off.
type world struct {
	*familytest.Forge
	storage *registrytest.Storage
}

func newWorld(t *testing.T, more ...client.Object) *world {
	t.Helper()
	g := NewWithT(t)
	project := func(name string, id int64, images v1alpha1.FeatureAccess) *v1alpha1.Project {
		p := familytest.Project("acme", name, id, "acme", v1alpha1.VisibilityPrivate)
		p.Spec.Features.ContainerRegistry = images
		return p
	}
	w := &world{Forge: familytest.New(t, append([]client.Object{
		familytest.User("root", 1, familytest.Admin), familytest.User("mary", 2), familytest.User("dan", 3), familytest.User("gus", 4), familytest.User("sue", 5),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPrivate), project("app", 20, v1alpha1.FeatureEnabled), project("off", 21, v1alpha1.FeatureDisabled),
		familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleMaintainer), familytest.InGroup("acme", "acme", "dan", v1alpha1.RoleDeveloper),
		familytest.InGroup("acme", "acme", "gus", v1alpha1.RoleGuest),
	}, more...)...)}
	directory, err := registry.OpenDirectory(t.TempDir())
	g.Expect(err).NotTo(HaveOccurred())
	w.storage = registrytest.NewStorage(directory)
	w.Images = registrytest.NewIn(t, w.storage, w.Catalog, databasetest.Open(t, databasetest.SQLite(t), record.Migrations()), w.Clock)
	var p v1alpha1.Project
	for _, image := range []struct{ project, name string }{{"app", ""}, {"app", "web"}, {"off", ""}} {
		g.Expect(w.Client.Get(t.Context(), client.ObjectKey{Namespace: "acme", Name: image.project}, &p)).To(Succeed())
		_, err := w.Images.Records.Ensure(t.Context(), p.RESTID(), p.UID, image.name)
		g.Expect(err).NotTo(HaveOccurred())
	}
	w.ImagesHost = "registry.example:5000"
	w.Serve(containers.New(w.Kit).Table())
	return w
}

// push pushes an image with a tag to acme/app/web.
func (w *world) push(t *testing.T, tag, config string) digest.Digest {
	t.Helper()
	return registrytest.Push(t, w.Images, "acme/app/web", tag, config)
}

func TestList_showsRepositoriesOfProjectAndGroup(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.push(t, "1.0", "{}")
	const first = `{"id":1,"name":"","path":"acme/app","project_id":20,"location":"registry.example:5000/acme/app","created_at":"2026-06-15T12:00:00.000Z","cleanup_policy_started_at":null,"status":null`
	const second = `{"id":2,"name":"web","path":"acme/app/web","project_id":20,"location":"registry.example:5000/acme/app/web","created_at":"2026-06-15T12:00:00.000Z","cleanup_policy_started_at":null,"status":null`
	const tag = `{"name":"1.0","path":"acme/app/web:1.0","location":"registry.example:5000/acme/app/web:1.0"}`
	for request, want := range map[string]string{
		"GET /projects/20/registry/repositories":                                             "[" + first + "}," + second + "}]",
		"GET /projects/20/registry/repositories?tags_count=true":                             "[" + first + `,"tags_count":0},` + second + `,"tags_count":1}]`,
		"GET /projects/20/registry/repositories?tags=true&tags_count=true&page=2&per_page=1": "[" + second + `,"tags_count":1,"tags":[` + tag + "]}]",
		"GET /groups/10/registry/repositories?tags=true":                                     "[" + first + "}," + second + "}]",
		"GET /registry/repositories/2?tags=true":                                             second + `,"tags":[` + tag + "]}",
	} {
		answer := w.As("dan", request, "")
		g.Expect(answer.Code).To(Equal(http.StatusOK), answer.Body)
		g.Expect(answer.Body).To(MatchJSON(want), request)
	}
	for request, status := range map[string]int{"GET /projects/20/registry/repositories": http.StatusOK, "GET /groups/10/registry/repositories": http.StatusForbidden} {
		g.Expect(w.As("gus", request, "").Code).To(Equal(status), request)
	}
	answer := w.As("mary", "GET /registry/repositories/2", "")
	g.Expect(answer.Body).To(MatchJSON(second + `,"delete_api_path":"/api/v4/projects/20/registry/repositories/2"}`))
}

func TestGet_knowsSizeInWhichLayersCountOnce(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	size := func() float64 {
		var shown map[string]any
		g.Expect(json.Unmarshal([]byte(w.As("dan", "GET /registry/repositories/2?size=true", "").Body), &shown)).To(Succeed())
		return shown["size"].(float64)
	}
	g.Expect(size()).To(BeZero())
	w.push(t, "one", "{}")
	one := size()
	g.Expect(one).To(BeNumerically(">", 100+3+2))
	w.push(t, "two", "{}")
	g.Expect(size()).To(Equal(2*one - 100 - 2))
}

func TestTags_areSortedAndPaged(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	for tag, year := range map[string]int{"b": 2021, "c": 2020, "a": 2019} {
		w.push(t, tag, fmt.Sprintf(`{"created":"%d-01-01T00:00:00Z"}`, year))
	}
	answer := w.As("gus", "GET /projects/20/registry/repositories/2/tags?per_page=2", "")
	g.Expect(answer.Code).To(Equal(http.StatusOK))
	g.Expect(answer.Body).To(MatchJSON(`[{"name":"b","path":"acme/app/web:b","location":"registry.example:5000/acme/app/web:b"},` +
		`{"name":"c","path":"acme/app/web:c","location":"registry.example:5000/acme/app/web:c"}]`))
	g.Expect(answer.Header.Get("X-Total")).To(Equal("3"))
}

func TestTag_showsImage(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	const config = `{"created":"2026-01-02T03:04:05.678Z"}`
	d := w.push(t, "v1.0", config)
	revision := digest.FromString(config).Encoded()
	answer := w.As("gus", "GET /projects/20/registry/repositories/2/tags/v1.0", "")
	g.Expect(answer.Body).To(MatchJSON(fmt.Sprintf(`{"name":"v1.0","path":"acme/app/web:v1.0","location":"registry.example:5000/acme/app/web:v1.0",`+
		`"revision":%q,"short_revision":%q,"digest":%q,"created_at":"2026-01-02T03:04:05.678Z","total_size":%d}`, revision, revision[:9], d, len(config)+104)))
	w.push(t, "undated", "{}")
	answer = w.As("gus", "GET /projects/20/registry/repositories/2/tags/undated", "")
	g.Expect(answer.Body).To(ContainSubstring(`"created_at":null`))
	answer = w.As("gus", "GET /projects/20/registry/repositories/2/tags/none", "")
	g.Expect(answer.String()).To(Equal(`404 {"message":"404 Tag Not Found"}`))
}

func TestRemoveTag_keepsImage(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.push(t, "1.0", "{}")
	w.push(t, "2.0", "{}")
	g.Expect(w.As("dan", "DELETE /projects/20/registry/repositories/2/tags/1.0", "").String()).To(Equal("200 200"))
	g.Expect(w.As("dan", "DELETE /projects/20/registry/repositories/2/tags/1.0", "").String()).To(Equal(`404 {"message":"404 Tag Not Found"}`))
	g.Expect(w.As("dan", "GET /projects/20/registry/repositories/2/tags", "").Body).To(And(ContainSubstring(`"2.0"`), Not(ContainSubstring(`"1.0"`))))
}

func TestRemoveTag_saysIfItFails(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.push(t, "1.0", "{}")
	w.storage.Before(func(_ context.Context, operation, _ string) error {
		if operation == "Delete" {
			return errors.New("the disk is full of errors")
		}
		return nil
	})
	g.Expect(w.As("dan", "DELETE /projects/20/registry/repositories/2/tags/1.0", "").String()).To(Equal(`400 {"message":"400 Bad request - the tag cannot be deleted at the moment"}`))
}

func TestRemove_deletesRepositoryInBackground(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.push(t, "1.0", "{}")
	for range 2 { // the second one changes nothing
		g.Expect(w.As("mary", "DELETE /projects/20/registry/repositories/2", "").String()).To(Equal("202 202"))
		g.Expect(w.As("mary", "GET /registry/repositories/2", "").Body).To(ContainSubstring(`"status":"delete_scheduled"`))
	}
	g.Expect(w.As("dan", "DELETE /projects/20/registry/repositories/2/tags/1.0", "").Code).To(Equal(http.StatusBadRequest))
	g.Expect(w.Tasks).To(HaveLen(2))
	g.Expect(w.Tasks[0]).To(Equal(w.Tasks[1]))
	for range 2 { // a task may run again
		g.Expect(w.Images.Delete(t.Context(), job.Attempt{Task: w.Tasks[0]}, nil)).To(Succeed())
	}
	g.Expect(w.As("mary", "GET /registry/repositories/2", "").String()).To(Equal(`404 {"message":"404 Not found"}`))
	left, err := w.Images.Storage().List(t.Context(), "/docker/registry/v2/repositories/repositories")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left).To(BeEmpty())
}

func TestFamily_deletesNothingOfArchivedProject(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.push(t, "1.0", "{}")
	var p v1alpha1.Project
	g.Expect(w.Client.Get(t.Context(), client.ObjectKey{Namespace: "acme", Name: "app"}, &p)).To(Succeed())
	p.Spec.Archived = true
	g.Expect(w.Client.Update(t.Context(), &p)).To(Succeed())
	for _, what := range []string{"", "/tags/1.0", "/tags?name_regex_delete=.*"} {
		g.Expect(w.As("mary", "DELETE /projects/20/registry/repositories/2"+what, "").Code).To(Equal(http.StatusForbidden), what)
	}
	g.Expect(w.As("mary", "GET /projects/20/registry/repositories/2/tags", "").Body).To(ContainSubstring(`"1.0"`))
}

func TestFamily_servesOnlyProjectOfPath(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	for request, want := range map[string]string{
		"GET /projects/20/registry/repositories/3/tags":  `404 {"message":"404 Not found"}`,
		"GET /projects/20/registry/repositories/99/tags": `404 {"message":"404 Not found"}`,
		"GET /projects/21/registry/repositories":         `403 {"message":"403 Forbidden"}`,
		"GET /registry/repositories/3":                   `403 {"message":"403 Forbidden"}`,
		"GET /registry/repositories/99":                  `404 {"message":"404 Not found"}`,
	} {
		g.Expect(w.As("mary", request, "").String()).To(Equal(want), request)
	}
	g.Expect(w.As("sue", "GET /registry/repositories/1", "").String()).To(Equal(`404 {"message":"404 Not found"}`))
	g.Expect(w.As("", "GET /registry/repositories/1", "").Code).To(Equal(http.StatusUnauthorized))
}

func TestFamily_hidesImagesOfFormerProject(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	var p v1alpha1.Project
	g.Expect(w.Client.Get(t.Context(), client.ObjectKey{Namespace: "acme", Name: "app"}, &p)).To(Succeed())
	g.Expect(w.Client.Delete(t.Context(), &p)).To(Succeed())
	again := familytest.Project("acme", "app", 20, "acme", v1alpha1.VisibilityPrivate)
	again.Spec.Features.ContainerRegistry = v1alpha1.FeatureEnabled
	g.Expect(w.Client.Create(t.Context(), again)).To(Succeed())
	g.Expect(w.As("mary", "GET /projects/20/registry/repositories", "").String()).To(Equal("200 []"))
	g.Expect(w.As("mary", "GET /registry/repositories/1", "").Code).To(Equal(http.StatusNotFound))
	g.Expect(w.As("mary", "GET /projects/20/registry/repositories/1/tags", "").Code).To(Equal(http.StatusNotFound))
}

func TestFamily_listsNothingWithoutRegistry(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.Images = nil
	w.Serve(containers.New(w.Kit).Table())
	g.Expect(w.As("mary", "GET /projects/20/registry/repositories?tags=true", "").String()).To(Equal("200 []"))
	g.Expect(w.As("mary", "GET /groups/10/registry/repositories", "").String()).To(Equal("200 []"))
	g.Expect(w.As("mary", "GET /registry/repositories/1", "").Code).To(Equal(http.StatusNotFound))
}
