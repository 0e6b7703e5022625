package watermark_test

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/watermark"
)

// projects is the name of the kind of projects.
var projects = watermark.KindOf(&v1alpha1.Project{})

// shared is the store that two servers share, and the cache of the second server.
type shared struct {
	mu      sync.Mutex
	written map[string]map[string]int64
	at      map[string]time.Time
	reached int64
	asked   int
	noted   int
	fails   error
	// takes is the duration of a call.
	takes time.Duration
}

// Wrote implements watermark.Store.
func (s *shared) Wrote(_ context.Context, server string, revisions map[string]int64) error {
	<-time.After(s.takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noted++
	s.written[server], s.at[server] = maps.Clone(revisions), time.Now()
	return s.fails
}

// WrittenByOthers implements watermark.Store.
func (s *shared) WrittenByOthers(_ context.Context, server string, while time.Duration) (map[string]int64, error) {
	<-time.After(s.takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	others := map[string]int64{}
	for name, revisions := range s.written {
		if name != server && time.Since(s.at[name]) < while {
			maps.Copy(others, revisions)
		}
	}
	return others, s.fails
}

// Reached implements watermark.Cache.
func (s *shared) Reached(kind string) (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reached, kind == projects
}

func (s *shared) reach(revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reached = revision
}

func project(revision int64) *v1alpha1.Project {
	return &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.FormatInt(revision, 10)}}
}

// bubble runs a test with two servers and a fake clock, which advances when every goroutine waits.
func bubble(t *testing.T, test func(ctx context.Context, g Gomega, s *shared, one, two *watermark.Watermark)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &shared{written: map[string]map[string]int64{}, at: map[string]time.Time{}, reached: 10}
		test(t.Context(), NewWithT(t), s, watermark.New(s, s, logr.Discard()), watermark.New(s, s, logr.Discard()))
		<-time.After(time.Second) // until every goroutine has ended
	})
}

func TestOutdated_waitsForWritesOfOtherServers(t *testing.T) {
	bubble(t, func(ctx context.Context, g Gomega, s *shared, one, two *watermark.Watermark) {
		g.Expect(two.Outdated(ctx)).To(BeFalse(), "nobody has written anything")
		one.Wrote(ctx, project(12), false)
		g.Expect(one.Outdated(ctx)).To(BeFalse(), "a server sees its own writes")
		begun := time.Now()
		time.AfterFunc(time.Second, func() { s.reach(12) })
		g.Expect(two.Outdated(ctx)).To(BeTrue())
		g.Expect(time.Since(begun)).To(BeNumerically("~", time.Second, 10*time.Millisecond))
		begun = time.Now()
		g.Expect(two.Outdated(ctx)).To(BeTrue(), "what came in between may not have been looked at")
		g.Expect(time.Since(begun)).To(BeNumerically("~", time.Duration(0), 10*time.Millisecond))
		one.Wrote(ctx, project(0), true)
		g.Expect(s.written).To(HaveEach(HaveKeyWithValue(projects, int64(12))), "a deletion is where the cache is")
		one.Wrote(ctx, project(11), false)
		g.Expect(s.written).To(HaveEach(HaveKeyWithValue(projects, int64(12))), "a write that is noted late does not hide a newer one")
	})
}

func TestOutdated_saysThatTheCacheIsBehind(t *testing.T) {
	bubble(t, func(ctx context.Context, g Gomega, s *shared, one, two *watermark.Watermark) {
		one.Wrote(ctx, project(1<<40), false)
		begun := time.Now()
		_, err := two.Outdated(ctx)
		g.Expect(err).To(MatchError(watermark.ErrBehind))
		g.Expect(time.Since(begun)).To(Equal(15 * time.Second))
		begun = time.Now()
		_, err = two.Outdated(ctx)
		g.Expect(err).To(MatchError(watermark.ErrBehind), "it still is")
		g.Expect(time.Since(begun)).To(BeNumerically("~", time.Duration(0), 10*time.Millisecond), "nobody waits for that again")
		gone, cancel := context.WithCancel(ctx)
		cancel()
		_, err = two.Outdated(gone)
		g.Expect(err).To(MatchError(watermark.ErrBehind), "nobody knows")
		synctest.Wait()
		<-time.After(9 * time.Minute)
		_, err = two.Outdated(ctx)
		g.Expect(err).To(MatchError(watermark.ErrBehind), "the watch hangs")
		<-time.After(2 * time.Minute)
		g.Expect(two.Outdated(ctx)).To(BeFalse(), "no watch hangs as long as that")
	})
}

func TestOutdated_saysNothingIsMissingWithoutTheStore(t *testing.T) {
	bubble(t, func(ctx context.Context, g Gomega, s *shared, one, two *watermark.Watermark) {
		s.fails = errors.New("the database is away")
		_, err := two.Outdated(ctx)
		g.Expect(err).To(MatchError(watermark.ErrBehind))
		one.Wrote(ctx, project(13), false) // must return
		var none *watermark.Watermark
		none.Wrote(ctx, project(13), false)
		g.Expect(none.Outdated(ctx)).To(BeFalse())
	})
}

func TestOutdated_combinesConcurrentCalls(t *testing.T) {
	bubble(t, func(ctx context.Context, g Gomega, s *shared, one, two *watermark.Watermark) {
		s.takes = time.Millisecond
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() { _, _ = two.Outdated(ctx) })
			all.Go(func() { one.Wrote(ctx, project(5), false) })
		}
		all.Wait()
		g.Expect(s.asked).To(BeNumerically("<=", 3))
		g.Expect(s.noted).To(BeNumerically("<=", 3))
		begun := time.Now()
		for range 100 {
			_, _ = two.Outdated(ctx)
		}
		g.Expect(time.Since(begun)).To(BeNumerically(">=", 490*time.Millisecond), "a flood of them waits for each other")
	})
}
