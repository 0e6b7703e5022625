package ids_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/ids"
	"github.com/forgeplane/forgeplane/internal/index"
)

const namespace = "platform"

// world is an API server in memory.
type world struct {
	*WithT
	client client.Client
	lock   sync.Mutex
	writes int
	// refuse is the error of every write, if it is set.
	refuse error
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{WithT: NewWithT(t)}
	scheme := runtime.NewScheme()
	w.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	w.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	w.Expect(index.Add(t.Context(), indexer{builder})).To(Succeed())
	w.client = builder.WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := w.write(); err != nil {
				return err
			}
			return c.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if err := w.write(); err != nil {
				return err
			}
			return c.Update(ctx, obj, opts...)
		},
	}).Build()
	return w
}

func (w *world) write() error {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.writes++
	return w.refuse
}

func (w *world) allocator(within ids.Range) *ids.Allocator {
	return ids.New(w.client, w.client, w.client, namespace, within)
}

// indexer gives the client in memory the indexes of the cache.
type indexer struct{ builder *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, obj client.Object, field string, values client.IndexerFunc) error {
	i.builder.WithIndex(obj, field, values)
	return nil
}

func allocate(g Gomega, a *ids.Allocator, obj v1alpha1.Identified, n int) (all []int64) {
	for range n {
		id, err := a.Allocate(context.Background(), obj)
		g.Expect(err).NotTo(HaveOccurred())
		all = append(all, id)
	}
	return all
}

func counters(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ids.ConfigMap}, Data: data}
}

// user returns user n, who is a second younger than user n-1.
func user(n int, id int64) *v1alpha1.User {
	return &v1alpha1.User{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("user-", n), UID: types.UID(fmt.Sprint(n)),
			CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC)),
		},
		Spec: v1alpha1.UserSpec{ID: id},
	}
}

func TestAllocator_countsFromOneForEachKind(t *testing.T) {
	w := newWorld(t)
	a := w.allocator(ids.Range{})
	w.Expect(allocate(w, a, &v1alpha1.User{}, 5)).To(Equal([]int64{1, 2, 3, 4, 5}))
	w.Expect(allocate(w, a, &v1alpha1.Group{}, 2)).To(Equal([]int64{1, 2}))
	w.Expect(allocate(w, a, &v1alpha1.User{}, 1)).To(Equal([]int64{6}))
}

func TestBlocks_growWithDemand(t *testing.T) {
	w := newWorld(t)
	a := w.allocator(ids.Range{})
	for _, demand := range []struct{ allocated, writes int }{{1, 1}, {3, 2}, {7, 3}, {511, 9}, {511 + 256, 10}, {511 + 3*256, 12}} {
		var last int64
		for last < int64(demand.allocated) {
			last = allocate(w, a, &v1alpha1.User{}, 1)[0]
		}
		w.Expect(w.writes).To(Equal(demand.writes), "writes after %d ids", demand.allocated)
	}
}

func TestAllocator_continuesAfterPreviousAllocator(t *testing.T) {
	w := newWorld(t)
	before := allocate(w, w.allocator(ids.Range{}), &v1alpha1.User{}, 1000)
	next := allocate(w, w.allocator(ids.Range{}), &v1alpha1.User{}, 1)[0]
	w.Expect(next).To(BeNumerically(">", before[len(before)-1]))
	w.Expect(next).To(BeNumerically("<=", before[len(before)-1]+256), "at most a block is lost")
}

func TestIDs_areUniqueAcrossReplicas(t *testing.T) {
	w := newWorld(t)
	a, b := w.allocator(ids.Range{}), w.allocator(ids.Range{})
	var lock sync.Mutex
	seen := map[int64]bool{}
	var workers sync.WaitGroup
	for i := range 8 {
		workers.Go(func() {
			for range 100 {
				id, err := []*ids.Allocator{a, b}[i%2].Allocate(context.Background(), &v1alpha1.User{})
				lock.Lock()
				if err != nil || seen[id] {
					t.Errorf("got the id %d, which was seen: %t (%v)", id, seen[id], err)
				}
				seen[id] = true
				lock.Unlock()
			}
		})
	}
	workers.Wait()
	w.Expect(seen).To(HaveLen(800))
}

func TestPinnedIDs_areSkipped(t *testing.T) {
	w := newWorld(t, user(1, 1), user(2, 3), user(3, 4), user(4, 1000))
	w.Expect(allocate(w, w.allocator(ids.Range{}), &v1alpha1.User{}, 3)).To(Equal([]int64{2, 5, 6}))
}

func TestRange_isKept(t *testing.T) {
	tests := map[string]struct {
		within  ids.Range
		counter string
		want    []int64
		end     string
	}{
		"from its first to its last":       {ids.Range{First: 100, Last: 104}, "", []int64{100, 101, 102, 103, 104}, "all ids of kind User up to 104 have been used"},
		"of a single id":                   {ids.Range{First: 7, Last: 7}, "", []int64{7}, "all ids of kind User up to 7 have been used"},
		"up to what JSON can hold":         {ids.Range{}, "9007199254740990", []int64{ids.MaxID - 1, ids.MaxID}, "all ids of kind User up to 9007199254740991 have been used"},
		"when no id is left":               {ids.Range{First: 1, Last: 5}, "6", nil, "all ids of kind User up to 5 have been used"},
		"when the range was moved upwards": {ids.Range{First: 100}, "7", nil, `the counter User in ConfigMap platform/forgeplane-ids is "7", not a number from 100 on`},
		"when the counter is a word":       {ids.Range{}, "many", nil, `the counter User in ConfigMap platform/forgeplane-ids is "many", not a number from 1 on`},
		"when the counter is zero":         {ids.Range{}, "0", nil, "not a number from 1 on"},
		"when the counter is huge":         {ids.Range{}, "99999999999999999999", nil, "not a number from 1 on"},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			w := newWorld(t)
			if tt.counter != "" {
				w.Expect(w.client.Create(t.Context(), counters(map[string]string{"User": tt.counter, "Group": "12"}))).To(Succeed())
			}
			a := w.allocator(tt.within)
			w.Expect(allocate(w, a, &v1alpha1.User{}, len(tt.want))).To(Equal(tt.want))
			_, err := a.Allocate(t.Context(), &v1alpha1.User{})
			w.Expect(err).To(MatchError(ContainSubstring(tt.end)))
			if tt.counter != "" {
				stored := counters(nil)
				w.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(stored), stored)).To(Succeed())
				w.Expect(stored.Data).To(HaveKeyWithValue("Group", "12"), "the counters of other kinds")
			}
		})
	}
}

func TestReservation_costsNoIDIfRefused(t *testing.T) {
	w := newWorld(t)
	a := w.allocator(ids.Range{})
	w.refuse = errors.New("the API server is away")
	_, err := a.Allocate(t.Context(), &v1alpha1.User{})
	w.Expect(err).To(MatchError("reserving ids: the API server is away"))
	w.refuse = nil
	w.Expect(allocate(w, a, &v1alpha1.User{}, 2)).To(Equal([]int64{1, 2}))
}

func TestHolder(t *testing.T) {
	tests := map[string]struct {
		objects []client.Object
		asking  *v1alpha1.User
		id      int64
		want    string
	}{
		"of an id that nobody has":          {nil, user(5, 0), 7, ""},
		"is nobody else for the only one":   {[]client.Object{user(5, 7)}, user(5, 7), 7, ""},
		"is the older one":                  {[]client.Object{user(2, 7), user(5, 7)}, user(5, 7), 7, "user-2"},
		"is the oldest of several":          {[]client.Object{user(3, 7), user(2, 7), user(4, 7), user(5, 7)}, user(5, 7), 7, "user-2"},
		"is not a younger one":              {[]client.Object{user(5, 7), user(8, 7)}, user(5, 7), 7, ""},
		"is not one of another id":          {[]client.Object{user(2, 8), user(5, 7)}, user(5, 7), 7, ""},
		"is not one of another kind":        {[]client.Object{&v1alpha1.Group{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b"}, Spec: v1alpha1.GroupSpec{ID: 7}}}, user(5, 7), 7, ""},
		"counts one that is not yet cached": {[]client.Object{user(8, 7)}, user(5, 7), 7, ""},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			w := newWorld(t, tt.objects...)
			holder, err := w.allocator(ids.Range{}).Holder(t.Context(), tt.asking, tt.id)
			w.Expect(err).NotTo(HaveOccurred())
			if tt.want == "" {
				w.Expect(holder).To(BeNil())
				return
			}
			w.Expect(holder.GetName()).To(Equal(tt.want))
		})
	}
}

func TestAllocate_skipsIDsThatWereUsed(t *testing.T) {
	w := newWorld(t)
	a := w.allocator(ids.Range{})
	a.Spare("StorageMove", func(_ context.Context, id int64) (bool, error) { return id < 3, nil })
	w.Expect(a.Allocate(t.Context(), &v1alpha1.StorageMove{})).To(BeEquivalentTo(3))
	w.Expect(a.Allocate(t.Context(), &v1alpha1.Label{})).To(BeEquivalentTo(1), "of another kind")

	unanswered := errors.New("no answer")
	a.Spare("StorageMove", func(context.Context, int64) (bool, error) { return false, unanswered })
	_, err := a.Allocate(t.Context(), &v1alpha1.StorageMove{})
	w.Expect(err).To(MatchError(unanswered))
}
