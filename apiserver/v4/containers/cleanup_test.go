package containers_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/containers"
	"github.com/forgeplane/forgeplane/internal/registry/cleanup"
	"github.com/forgeplane/forgeplane/internal/registry/record"
)

const tagsOfWeb = "DELETE /projects/20/registry/repositories/2/tags"

// cleanups returns the cleanups that are declared.
func (w *world) cleanups(t *testing.T) []v1alpha1.RegistryCleanup {
	t.Helper()
	var all v1alpha1.RegistryCleanupList
	NewWithT(t).Expect(w.Client.List(t.Context(), &all)).To(Succeed())
	return all.Items
}

func TestRemoveTags_declaresCleanup(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	const query = "?name_regex_delete=v.%2B&name_regex_keep=v1%5C.0&keep_n=5&older_than=2+weeks+3+days"
	g.Expect(w.As("mary", tagsOfWeb+query, "").String()).To(Equal("202 202"))
	all := w.cleanups(t)
	g.Expect(all).To(HaveLen(1))
	m := all[0]
	g.Expect(m.Namespace).To(Equal("acme"))
	g.Expect(m.Spec.ProjectRef.Name).To(Equal("app"))
	m.Spec.ProjectRef = v1alpha1.Reference{}
	g.Expect(m.Spec.TTLAfterFinished.Duration).To(Equal(24 * time.Hour))
	m.Spec.TTLAfterFinished = nil
	g.Expect(m.Spec).To(Equal(v1alpha1.RegistryCleanupSpec{
		Repository: "web", NameRegexDelete: "v.+", NameRegexKeep: `v1\.0`, KeepN: 5, OlderThan: "2 weeks 3 days",
	}))
	g.Expect(w.Images.Records.Get(t.Context(), 2)).To(HaveField("Cleanup", w.Clock.Now().UTC()))
	g.Expect(w.Images.Records.Cleanups(t.Context(), cleanup.RunID(m.UID, 1))).To(HaveKey(int64(2)))
	g.Expect(w.As("mary", "GET /registry/repositories/2", "").Body).To(ContainSubstring(`"cleanup_policy_started_at":"2026-06-15T12:00:00.000Z"`))
}

func TestRemoveTags_takesParametersFromBody(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	g.Expect(w.As("mary", "DELETE /projects/20/registry/repositories/1/tags", `{"name_regex":".*","keep_n":-1}`).String()).To(Equal("202 202"))
	g.Expect(w.cleanups(t)[0].Spec).To(And(HaveField("Repository", cleanup.Root), HaveField("NameRegexDelete", ".*"), HaveField("KeepN", BeZero())))
	g.Expect(w.As("mary", tagsOfWeb, `{"name_regex":"a","name_regex_delete":"b"}`).Code).To(Equal(http.StatusAccepted))
	g.Expect(w.cleanups(t)).To(ContainElement(HaveField("Spec.NameRegexDelete", "b")))
}

const again = `400 {"message":"This request has already been made. You can run this at most once an hour for a given container repository"}`

func TestRemoveTags_isAcceptedOnceAnHour(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	request := tagsOfWeb + "?name_regex_delete=.*"
	g.Expect(w.As("mary", request, "").Code).To(Equal(http.StatusAccepted))
	g.Expect(w.As("mary", request, "").String()).To(Equal(again))
	g.Expect(w.cleanups(t)).To(HaveLen(1))
	g.Expect(w.As("mary", strings.Replace(request, "/2/", "/1/", 1), "").Code).To(Equal(http.StatusAccepted), "another repository")
	w.Clock.SetTime(w.Clock.Now().Add(time.Hour - time.Second))
	g.Expect(w.As("mary", request, "").String()).To(Equal(again))
	w.Clock.SetTime(w.Clock.Now().Add(time.Second))
	g.Expect(w.As("mary", request, "").Code).To(Equal(http.StatusAccepted))
}

func TestRemoveTags_isAcceptedOnceOfManyAtOnce(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	codes := make([]string, 8)
	var all sync.WaitGroup
	for i := range codes {
		all.Go(func() { codes[i] = w.As("mary", tagsOfWeb+"?name_regex_delete=.*", "").String() })
	}
	all.Wait()
	count := map[string]int{}
	for _, code := range codes {
		count[code]++
	}
	g.Expect(count).To(Equal(map[string]int{"202 202": 1, again: 7}))
	g.Expect(w.cleanups(t)).To(HaveLen(1), "those that were refused leave nothing")
}

func TestRemoveTags_respectsCleanupsThatAreDeclared(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	_, began, err := w.Images.Records.BeginCleanup(t.Context(), 2, "a declared one", w.Clock.Now(), cleanup.Interval)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(began).To(BeTrue())
	g.Expect(w.As("mary", tagsOfWeb+"?name_regex_delete=.*", "").String()).To(Equal(again))
}

func TestRemoveTags_deletesNothingIfItIsRefused(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.Before = func(verb string, _ client.Object) error {
		if verb == "delete" {
			return errors.New("the API server does not answer")
		}
		_, began, err := w.Images.Records.BeginCleanup(t.Context(), 2, "a faster one", w.Clock.Now(), cleanup.Interval)
		g.Expect(began).To(BeTrue())
		return err
	}
	g.Expect(w.As("mary", tagsOfWeb+"?name_regex_delete=.*", "").String()).To(Equal(again))
	g.Expect(w.cleanups(t)).To(ConsistOf(HaveField("Spec.Suspend", BeTrue())), "it cannot be removed")
}

func TestRemoveTags_refusesMalformedParameters(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	const missing = `400 {"error":"name_regex, name_regex_delete are missing, at least one parameter must be provided"}`
	for query, want := range map[string]string{
		"":                     missing,
		"?keep_n=3":            missing,
		"?name_regex_delete=":  missing,
		"?name_regex_delete=(": `400 {"error":"name_regex_delete is an invalid regexp"}`,
		"?name_regex=*":        `400 {"error":"name_regex is an invalid regexp"}`,
		"?name_regex_delete=.*&name_regex_keep=[":                               `400 {"error":"name_regex_keep is an invalid regexp"}`,
		"?name_regex_delete=(aaa){1000}":                                        `400 {"error":"name_regex_delete is an invalid regexp"}`,
		"?name_regex_delete=a(%3F%3Db)":                                         `400 {"error":"name_regex_delete is an invalid regexp"}`,
		"?name_regex_delete=.*&keep_n=few":                                      `400 {"error":"keep_n is invalid"}`,
		"?name_regex_delete=.*&older_than=long":                                 `400 {"error":"older_than is invalid"}`,
		"?name_regex_delete=" + strings.Repeat("a", 1025):                       `400 {"error":"name_regex_delete is too long (maximum is 1024 characters)"}`,
		"?name_regex_delete=.*&name_regex_keep=" + strings.Repeat("(a%7Cb)", 1): "202 202",
	} {
		g.Expect(w.As("mary", tagsOfWeb+query, "").String()).To(Equal(want), query)
	}
	g.Expect(w.Images.Records.Removing(t.Context(), 1, record.DeleteScheduled)).To(Succeed())
	g.Expect(w.As("mary", "DELETE /projects/20/registry/repositories/1/tags?name_regex_delete=.*", "").Code).To(Equal(http.StatusBadRequest))
	w.Images = nil
	w.Serve(containers.New(w.Kit).Table())
	g.Expect(w.As("mary", tagsOfWeb+"?name_regex_delete=.*", "").String()).To(Equal(`404 {"message":"404 Not found"}`))
}
