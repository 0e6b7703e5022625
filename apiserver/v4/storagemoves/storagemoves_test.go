package storagemoves_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/storagemoves"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/storagemove"
)

// world is a forge with two shards, "full" with the projects app (20) and site (21), and "void" without projects.
type world struct {
	*familytest.Forge
}

// run runs a task that was added.
func (w *world) run(t *testing.T, added int, progress func(string)) error {
	t.Helper()
	return w.Work["storage-move-requests"].Run(t.Context(), job.Attempt{Task: w.Tasks[added]}, progress)
}

func newWorld(t *testing.T, more ...client.Object) *world {
	t.Helper()
	shard := func(name string) *v1alpha1.RepositoryStorage {
		return &v1alpha1.RepositoryStorage{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("shard-" + name)},
			Status: v1alpha1.RepositoryStorageStatus{CommonStatus: v1alpha1.CommonStatus{Conditions: []metav1.Condition{{
				Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady,
			}}}},
		}
	}
	project := func(name string, id int64) *v1alpha1.Project {
		p := familytest.Project("acme", name, id, "acme", v1alpha1.VisibilityPrivate)
		p.Status.Storage, p.Status.RefsChecksum = "full", "0"
		return p
	}
	w := &world{Forge: familytest.New(t, append([]client.Object{
		familytest.User("root", 1, familytest.Admin), familytest.User("mary", 2), familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPrivate),
		project("app", 20), project("site", 21), shard("full"), shard("void"),
	}, more...)...)}
	w.Activity.Moves = storagemove.NewHistory(databasetest.Open(t, databasetest.SQLite(t), storagemove.Migrations()))
	w.Serve(storagemoves.New(w.Kit).Table())
	return w
}

func TestCreate_schedulesMove(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	answer := w.As("root", "POST "+"/projects/20/repository_storage_moves", `{"destination_storage_name":"void"}`)
	g.Expect(answer.Code).To(Equal(http.StatusCreated), answer.Body)
	var m map[string]any
	g.Expect(json.Unmarshal([]byte(answer.Body), &m)).To(Succeed())
	g.Expect(m).To(HaveLen(6))
	g.Expect(m).To(And(HaveKeyWithValue("state", "scheduled"), HaveKeyWithValue("source_storage_name", "full"), HaveKeyWithValue("destination_storage_name", "void")))
	g.Expect(m["project"]).To(And(HaveLen(7), HaveKeyWithValue("path_with_namespace", "acme/app")))

	var all v1alpha1.StorageMoveList
	g.Expect(w.Client.List(t.Context(), &all)).To(Succeed())
	g.Expect(all.Items).To(HaveLen(1))
	g.Expect(all.Items[0].Status.State).To(Equal(v1alpha1.StorageMoveScheduled))
	g.Expect(all.Items[0].Spec.TTLAfterFinished.Duration).To(Equal(24 * time.Hour))
	var p v1alpha1.Project
	g.Expect(w.Client.Get(t.Context(), client.ObjectKey{Namespace: all.Items[0].Namespace, Name: "app"}, &p)).To(Succeed())
	g.Expect(p.Status.Move).To(HaveField("UID", string(all.Items[0].UID)))

	again := w.As("root", "POST "+"/projects/20/repository_storage_moves", `{}`)
	g.Expect(again.Code).To(Equal(http.StatusBadRequest))
	g.Expect(again.Body).To(MatchJSON(`{"message":{"project":["is read-only"]}}`))
	g.Expect(w.Client.List(t.Context(), &all)).To(Succeed())
	g.Expect(all.Items).To(HaveLen(1), "the refused one is gone")
}

func TestCreate_choosesAnotherStorage(t *testing.T) {
	for name, body := range map[string]string{"absent": `{}`, "null": `{"destination_storage_name":null}`} {
		t.Run(name, func(t *testing.T) {
			g, w := NewWithT(t), newWorld(t)
			answer := w.As("root", "POST "+"/projects/acme%2Fapp/repository_storage_moves", body)
			g.Expect(answer.Code).To(Equal(http.StatusCreated))
			g.Expect(answer.Body).To(ContainSubstring(`"destination_storage_name":"void"`))
		})
	}
}

func TestCreate_acceptsSameStorage(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	answer := w.As("root", "POST "+"/projects/20/repository_storage_moves", `{"destination_storage_name":"full"}`)
	g.Expect(answer.Code).To(Equal(http.StatusCreated))
	g.Expect(answer.Body).To(And(ContainSubstring(`"source_storage_name":"full"`), ContainSubstring(`"destination_storage_name":"full"`)))
}

func TestCreate_refusesUnknown(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		path, body, answer string
		code               int
	}{
		"destination":         {"/projects/20/repository_storage_moves", `{"destination_storage_name":"none"}`, `{"message":{"destination_storage_name":["is not included in the list"]}}`, 400},
		"project":             {"/projects/99/repository_storage_moves", `{}`, `{"message":"404 Project Not Found"}`, 404},
		"missing source":      {"/project_repository_storage_moves", `{}`, `{"error":"source_storage_name is missing"}`, 400},
		"source":              {"/project_repository_storage_moves", `{"source_storage_name":"none"}`, `{"error":"source_storage_name does not have a valid value"}`, 400},
		"destination of bulk": {"/project_repository_storage_moves", `{"source_storage_name":"full","destination_storage_name":"none"}`, `{"error":"destination_storage_name does not have a valid value"}`, 400},
	} {
		t.Run(name, func(t *testing.T) {
			g, answer := NewWithT(t), w.As("root", "POST "+c.path, c.body)
			g.Expect(answer.Code).To(Equal(c.code))
			g.Expect(answer.Body).To(MatchJSON(c.answer))
		})
	}
}

func TestCreate_refusesStorageThatIsNotReady(t *testing.T) {
	refused := &v1alpha1.RepositoryStorage{ObjectMeta: metav1.ObjectMeta{Name: "alias", UID: "shard-alias"}}
	refused.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonAlreadyExists}}
	g, w := NewWithT(t), newWorld(t, refused)
	answer := w.As("root", "POST "+"/projects/20/repository_storage_moves", `{"destination_storage_name":"alias"}`)
	g.Expect(answer.Code).To(Equal(http.StatusBadRequest))
	g.Expect(answer.Body).To(MatchJSON(`{"message":{"destination_storage_name":["is not ready"]}}`))
	var all v1alpha1.StorageMoveList
	g.Expect(w.Client.List(t.Context(), &all)).To(Succeed())
	g.Expect(all.Items).To(BeEmpty())
}

func TestList_showsNewestFirst(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	noon := time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	var app, site v1alpha1.Project
	g.Expect(w.Client.Get(t.Context(), client.ObjectKey{Namespace: "acme", Name: "app"}, &app)).To(Succeed())
	g.Expect(w.Client.Get(t.Context(), client.ObjectKey{Namespace: "acme", Name: "site"}, &site)).To(Succeed())
	for i, p := range []*v1alpha1.Project{&app, &site, &app} {
		g.Expect(w.Activity.Moves.Record(t.Context(), storagemove.Move{
			ID: int64(30 - i), UID: "m", Created: noon.Add(time.Duration(i) * time.Hour), State: v1alpha1.StorageMoveCleanupFailed, Source: "full", Destination: "void",
			Project: storagemove.Project{UID: p.UID, ID: p.Spec.ID, Name: "as it was"},
		})).To(Succeed())
	}
	g.Expect(w.Activity.Moves.Record(t.Context(), storagemove.Move{
		ID: 40, UID: "m", Created: noon.Add(-time.Hour), State: v1alpha1.StorageMoveFinished, Project: storagemove.Project{UID: "gone", ID: 99, Name: "Gone", Created: noon},
	})).To(Succeed())
	ids := func(path string) (ids []any) {
		var rows []map[string]any
		answer := w.As("root", "GET "+path, "")
		g.Expect(json.Unmarshal([]byte(answer.Body), &rows)).To(Succeed(), answer.Body)
		for _, r := range rows {
			ids = append(ids, r["id"])
		}
		return ids
	}
	g.Expect(ids("/project_repository_storage_moves")).To(Equal([]any{28., 29., 30., 40.}))
	g.Expect(ids("/project_repository_storage_moves?per_page=2&page=2")).To(Equal([]any{30., 40.}))
	g.Expect(ids("/projects/20/repository_storage_moves")).To(Equal([]any{28., 30.}))

	g.Expect(w.As("root", "GET "+"/project_repository_storage_moves/28", "").Body).To(And(
		ContainSubstring(`"state":"cleanup failed"`), ContainSubstring(`"name":"app"`)), "the project as it is now")
	g.Expect(w.As("root", "GET "+"/project_repository_storage_moves/40", "").Body).To(ContainSubstring(`"name":"Gone"`))
	g.Expect(w.As("root", "GET "+"/projects/20/repository_storage_moves/28", "").Code).To(Equal(http.StatusOK))
	for _, path := range []string{"/projects/20/repository_storage_moves/29", "/project_repository_storage_moves/99"} {
		answer := w.As("root", "GET "+path, "")
		g.Expect(answer.Code).To(Equal(http.StatusNotFound), path)
		g.Expect(answer.Body).To(MatchJSON(`{"message":"404 Not found"}`))
	}
}

func TestCreateAll_movesEveryProjectOnce(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	answer := w.As("root", "POST "+"/project_repository_storage_moves", `{"source_storage_name":"full","destination_storage_name":"void"}`)
	g.Expect(answer.Code).To(Equal(http.StatusAccepted))
	g.Expect(answer.Body).To(MatchJSON(`{"message":"202 Accepted"}`))
	g.Expect(w.Tasks).To(HaveLen(1))

	var progress string
	for range 2 { // a task can run again
		g.Expect(w.run(t, 0, func(text string) { progress = text })).To(Succeed())
	}
	g.Expect(progress).To(Equal("2 of 2 moves created"))
	var all v1alpha1.StorageMoveList
	g.Expect(w.Client.List(t.Context(), &all)).To(Succeed())
	g.Expect(all.Items).To(HaveLen(2))
	for _, m := range all.Items {
		g.Expect(m.Spec.Destination).To(Equal("void"))
	}
}

func TestCreateAll_leavesOutProjectsThatMove(t *testing.T) {
	waiting := &v1alpha1.StorageMove{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "waiting", UID: "waiting"},
		Spec:       v1alpha1.StorageMoveSpec{ProjectRef: v1alpha1.Reference{Name: "site"}, Destination: "void"},
		Status:     v1alpha1.StorageMoveStatus{State: v1alpha1.StorageMoveInitial},
	}
	g, w := NewWithT(t), newWorld(t, waiting)
	var app v1alpha1.Project
	g.Expect(w.Client.Get(t.Context(), client.ObjectKey{Namespace: "acme", Name: "app"}, &app)).To(Succeed())
	app.Status.Move = &v1alpha1.ProjectMove{Name: "running", UID: "running", Source: "full", Destination: "void"}
	g.Expect(w.Client.Status().Update(t.Context(), &app)).To(Succeed())
	w.As("root", "POST "+"/project_repository_storage_moves", `{"source_storage_name":"full"}`)
	var progress string
	g.Expect(w.run(t, 0, func(text string) { progress = text })).To(Succeed())
	g.Expect(progress).To(Equal("1 of 2 moves created"))
	var all v1alpha1.StorageMoveList
	g.Expect(w.Client.List(t.Context(), &all)).To(Succeed())
	g.Expect(all.Items).To(HaveLen(2))
	for _, m := range all.Items {
		g.Expect(m.Spec.ProjectRef.Name).To(Equal("site"), "a move that waits does not hold it")
	}

	w.As("root", "POST "+"/project_repository_storage_moves", `{"source_storage_name":"full"}`)
	g.Expect(w.run(t, 1, func(text string) { progress = text })).To(Succeed())
	g.Expect(progress).To(Equal("0 of 2 moves created"), "a second move would bring it back")
}
