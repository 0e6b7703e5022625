package record_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/registry/record"
)

// tagged is a store with a repository.
type tagged struct {
	*WithT
	t  *testing.T
	s  *record.Store
	id int64
}

func withTags(t *testing.T, test func(s *tagged, c *clocktesting.FakePassiveClock)) {
	t.Helper()
	onEachEngine(t, func(t *testing.T, g *WithT, s *record.Store, c *clocktesting.FakePassiveClock) {
		r, err := s.Ensure(t.Context(), 7, "p", "")
		g.Expect(err).NotTo(HaveOccurred())
		test(&tagged{g, t, s, r.ID}, c)
	})
}

func (s *tagged) begin(tags ...string) int64 {
	s.t.Helper()
	count, err := s.s.Change(s.t.Context(), s.id, tags...)
	s.Expect(err).NotTo(HaveOccurred())
	return count
}

func (s *tagged) end(began int64, tag string, result record.Result) {
	s.t.Helper()
	s.Expect(s.s.Changed(s.t.Context(), s.id, began, []string{tag}, result)).To(Succeed())
}

// known is the result of a push of the tag a.
func known(digest string) record.Result {
	return record.Result{Known: []record.Tag{{Name: "a", Digest: digest, Made: "0000-01-01T00:00:00Z"}}}
}

func (s *tagged) learn(change int64, digest string) {
	s.t.Helper()
	s.Expect(s.s.Learn(s.t.Context(), s.id, []record.Tag{{Name: "a", Change: change, Digest: digest}})).To(Succeed())
}

// expect expects which digests are recorded of the tags.
func (s *tagged) expect(want map[string]string) {
	s.t.Helper()
	page, err := s.s.Tags(s.t.Context(), s.id, "", 9)
	s.Expect(err).NotTo(HaveOccurred())
	digests := map[string]string{}
	for _, t := range page {
		digests[t.Name] = t.Digest
	}
	s.Expect(digests).To(Equal(want))
}

func TestChanged_recordsWhatTagsMean(t *testing.T) {
	withTags(t, func(s *tagged, _ *clocktesting.FakePassiveClock) {
		began := s.begin("a", "b")
		s.expect(map[string]string{"a": "", "b": ""})
		s.end(began, "a", known("d1"))
		s.end(began, "b", record.Result{})
		s.expect(map[string]string{"a": "d1", "b": ""})
		s.Expect(s.s.Tags(s.t.Context(), s.id, "", 1)).To(HaveExactElements(And(HaveField("Name", "a"), HaveField("Made", "0000-01-01T00:00:00Z"))))
		s.Expect(s.s.Tags(s.t.Context(), s.id, "a", 9)).To(HaveExactElements(HaveField("Name", "b")))
		s.end(s.begin("a"), "a", record.Result{Gone: []string{"a"}})
		s.expect(map[string]string{"b": ""})
	})
}

func TestChanged_forgetsSimultaneousChanges(t *testing.T) {
	withTags(t, func(s *tagged, _ *clocktesting.FakePassiveClock) {
		first, second := s.begin("a"), s.begin("a")
		s.end(second, "a", known("d2"))
		s.end(first, "a", known("d1"))
		s.expect(map[string]string{"a": ""})
		first, second = s.begin("a"), s.begin("a")
		s.end(first, "a", record.Result{Gone: []string{"a"}})
		s.end(second, "a", known("d2"))
		s.expect(map[string]string{"a": ""})
	})
}

func TestLearn_recordsWhatHasNotChangedSince(t *testing.T) {
	withTags(t, func(s *tagged, c *clocktesting.FakePassiveClock) {
		s.learn(0, "d1")
		s.expect(map[string]string{"a": "d1"})
		s.learn(0, "d2")
		s.expect(map[string]string{"a": "d1"})
		began := s.begin("a")
		s.learn(0, "d1")
		s.learn(began, "d1")
		s.expect(map[string]string{"a": ""})
		c.SetTime(noon.Add(2 * time.Minute)) // the process that began the change is lost
		s.learn(began-1, "d1")
		s.expect(map[string]string{"a": ""})
		s.learn(began, "d2")
		s.expect(map[string]string{"a": "d2"})
		s.end(began, "a", known("d3"))
		s.expect(map[string]string{"a": "d3"})
	})
}

func TestUnlearn_sparesWhatHasChanged(t *testing.T) {
	withTags(t, func(s *tagged, _ *clocktesting.FakePassiveClock) {
		s.learn(0, "d1")
		page, err := s.s.Tags(s.t.Context(), s.id, "", 9)
		s.Expect(err).NotTo(HaveOccurred())
		s.end(s.begin("a"), "a", known("d2"))
		s.Expect(s.s.Unlearn(s.t.Context(), s.id, page)).To(Succeed())
		s.expect(map[string]string{"a": "d2"})
		page, err = s.s.Tags(s.t.Context(), s.id, "", 9)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(s.s.Unlearn(s.t.Context(), s.id, page)).To(Succeed())
		s.expect(map[string]string{})
	})
}
