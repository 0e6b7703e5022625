package tokenuse_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/tokenuse"
)

// reader is a Reader that does what it is.
type reader func(context.Context) (map[types.UID]time.Time, error)

func (r reader) LastUsed(ctx context.Context, _ string, _ ...types.UID) (map[types.UID]time.Time, error) {
	return r(ctx)
}

func TestKnown_waitsOnlyBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := reader(func(ctx context.Context) (map[types.UID]time.Time, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		began := time.Now()
		used := tokenuse.Known(t.Context(), silent, tokenuse.KindAccessToken, &metav1.ObjectMeta{UID: "a"})
		if took := time.Since(began); used != nil || took > 2*time.Second {
			t.Errorf("got %v after %s", used, took)
		}
	})
}

func TestKnown_isEmptyIfDatabaseFails(t *testing.T) {
	broken := reader(func(context.Context) (map[types.UID]time.Time, error) { return nil, errors.New("broken") })
	if used := tokenuse.Known(t.Context(), broken, tokenuse.KindAccessToken, &metav1.ObjectMeta{UID: "a"}); used != nil {
		t.Errorf("got %v", used)
	}
	noon := map[types.UID]time.Time{"a": time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)}
	whole := reader(func(context.Context) (map[types.UID]time.Time, error) { return noon, nil })
	if used := tokenuse.Known(t.Context(), whole, tokenuse.KindAccessToken, &metav1.ObjectMeta{UID: "a"}); !used["a"].Equal(noon["a"]) {
		t.Errorf("got %v", used)
	}
}
