package registryhttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	. "github.com/onsi/gomega"
)

// errOutage is the error of a storage that does not answer. Clients must not see it.
var errOutage = errors.New("dial tcp 10.1.2.3:9000: connect: connection refused")

// once are the options of a client that does not repeat requests.
func once(username string) []remote.Option {
	return []remote.Option{as(username), remote.WithRetryStatusCodes(), remote.WithRetryPredicate(func(error) bool { return false }), remote.WithRetryBackoff(remote.Backoff{Steps: 1})}
}

func TestRegistry_saysThatStorageDoesNotAnswer(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	i := w.push(t, "acme/app:1")
	w.storage.Before(func(context.Context, string, string) error { return errOutage })
	bearer, _ := w.bearer(t, "mary", "repository:acme/app:pull,push,delete")
	d := digestOf(t, i)
	for _, request := range []string{
		"GET /v2/acme/app/manifests/1", "GET /v2/acme/app/manifests/" + d, "HEAD /v2/acme/app/manifests/1", "GET /v2/acme/app/blobs/" + d, "HEAD /v2/acme/app/blobs/" + d,
		"POST /v2/acme/app/blobs/uploads/", "DELETE /v2/acme/app/manifests/1", "DELETE /v2/acme/app/manifests/" + d, "GET /v2/acme/app/tags/list", "GET /v2/acme/app/referrers/" + d,
	} {
		method, path, _ := strings.Cut(request, " ")
		status, _, body := w.do(t, bearer, method, path, nil, http.Header{"Accept": {"*/*"}})
		if strings.Contains(path, "/referrers/") {
			g.Expect(status).To(Equal(http.StatusOK), "the image has none, as the database says")
			continue
		}
		g.Expect(status).To(Equal(http.StatusServiceUnavailable), "%s: %s", request, body)
		g.Expect(body).NotTo(ContainSubstring("10.1.2.3"), request)
		if method != http.MethodHead {
			g.Expect(body).To(MatchJSON(`{"errors":[{"code":"UNAVAILABLE","message":"the storage of the images does not answer at the moment: try again later"}]}`), request)
		}
	}
	err := remote.Write(w.ref(t, "acme/app:2"), image(t), once("mary")...)
	g.Expect(err).To(MatchError(ContainSubstring("503 Service Unavailable")))

	w.storage.Before(nil)
	g.Expect(remote.List(w.ref(t, "acme/app").Context(), as("mary"))).To(Equal([]string{"1"}))
	got, err := remote.Image(w.ref(t, "acme/app:1"), as("mary"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(validate.Image(got)).To(Succeed())
	w.push(t, "acme/app:2")
}

// TestPush_recordsNothingThatIsNotStored lets each write of a push fail in turn.
func TestPush_recordsNothingThatIsNotStored(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	failed := 0
	for n := int64(1); ; n++ {
		if n > 200 {
			t.Fatal("a push has more than 200 writes")
		}
		var count atomic.Int64
		w.storage.Before(func(_ context.Context, operation, _ string) error {
			switch operation {
			case "PutContent", "Writer", "Write", "Commit", "Move":
				if count.Add(1) == n {
					return errOutage
				}
			}
			return nil
		})
		reference := w.ref(t, fmt.Sprintf("acme/app/web:%d", n))
		i := image(t)
		err := remote.Write(reference, i, once("dan")...)
		w.storage.Before(nil)
		if count.Load() < n {
			g.Expect(err).NotTo(HaveOccurred())
			break // no write has failed
		}
		failed++
		if err != nil {
			var refused *transport.Error
			g.Expect(errors.As(err, &refused)).To(BeTrue(), "%v", err)
			g.Expect(refused.StatusCode).To(Equal(http.StatusServiceUnavailable), "write %d: %v", n, err)
		}
		if got, err := remote.Image(reference, as("dan")); err != nil {
			g.Expect(err).To(MatchError(Or(ContainSubstring("MANIFEST_UNKNOWN"), ContainSubstring("NAME_UNKNOWN"))), "write %d", n)
		} else {
			g.Expect(validate.Image(got)).To(Succeed(), "write %d", n)
		}
		g.Expect(remote.Write(reference, i, as("dan"))).To(Succeed(), "write %d", n)
		got, err := remote.Image(reference, as("dan"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(validate.Image(got)).To(Succeed(), "write %d", n)
	}
	g.Expect(failed).To(BeNumerically(">", 10))
	t.Logf("%d writes of a push", failed)
}
