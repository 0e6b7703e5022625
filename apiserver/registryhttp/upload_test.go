package registryhttp_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/opencontainers/go-digest"

	"github.com/forgeplane/forgeplane/apiserver/registryhttp"
	"github.com/forgeplane/forgeplane/test/patience"
)

// stream is a request whose body the test sends bit by bit.
type stream struct {
	*io.PipeWriter
	ended chan answer
}

type answer struct {
	status   int
	location string
	body     string
}

// stream begins a request that continues an upload, and waits until the registry opens the upload.
func (r *repository) stream(location string) stream {
	r.t.Helper()
	reader, writer := io.Pipe()
	s := stream{writer, make(chan answer, 1)}
	opened := r.meets("Writer")
	go func() {
		status, header, body := r.do(r.t, r.bearer, http.MethodPatch, location, reader, http.Header{"Content-Type": {binary}})
		s.ended <- answer{status, header.Get("Location"), body}
	}()
	r.g.Eventually(opened).WithTimeout(patience.Wait).Should(Receive())
	return s
}

// send sends a part of the body, and waits until the registry writes it.
func (r *repository) send(s stream, part string) {
	r.t.Helper()
	written := r.meets("Write")
	_, err := s.Write([]byte(part))
	r.g.Expect(err).NotTo(HaveOccurred())
	r.g.Eventually(written).WithTimeout(patience.Wait).Should(Receive())
}

// meets says when an operation of the storage on an upload begins.
func (r *repository) meets(operation string) <-chan struct{} {
	met := make(chan struct{}, 1)
	r.storage.Before(func(_ context.Context, o, path string) error {
		if o == operation && strings.Contains(path, "/_uploads/") {
			select {
			case met <- struct{}{}:
			default:
			}
		}
		return nil
	})
	return met
}

// end ends the body, and returns the answer.
func (s stream) end(g *WithT, last string) answer {
	// The server may have answered already, and read no more.
	_, _ = s.Write([]byte(last))
	g.Expect(s.Close()).To(Succeed())
	return <-s.ended
}

// commit ends an upload with its last part.
func (r *repository) commit(status int, host, location, last, all string) string {
	r.t.Helper()
	_, body := r.must(status, http.MethodPut, r.at(host, with(location, "digest="+digest.FromString(all).String())), binary, last)
	return body
}

// at returns the same location at another host.
func (r *repository) at(host, location string) string {
	r.t.Helper()
	target, err := url.Parse(location)
	r.g.Expect(err).NotTo(HaveOccurred())
	return host + target.RequestURI()
}

// onProcesses runs a test with the URL of the same process, and with that of another one.
func onProcesses(t *testing.T, test func(r *repository, host string)) {
	t.Helper()
	for name, host := range map[string]func(t *testing.T, r *repository) string{
		"the same process": func(_ *testing.T, r *repository) string { return r.server.URL },
		"another process": func(t *testing.T, r *repository) string {
			t.Helper()
			return r.another(t, registryhttp.Options{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t, "acme/app/oci")
			test(r, host(t, r))
		})
	}
}

func TestUpload_isNotCommittedWhileAnotherRequestWrites(t *testing.T) {
	onProcesses(t, func(r *repository, host string) {
		started, _ := r.must(http.StatusAccepted, http.MethodPost, "/blobs/uploads/", "", "")
		s := r.stream(started.Get("Location"))
		r.send(s, "12345")
		body := r.commit(http.StatusServiceUnavailable, host, started.Get("Location"), "abcdefgh", "abcdefgh")
		r.g.Expect(body).To(ContainSubstring("another request is writing to this upload"))
		ended := s.end(r.g, "678")
		r.g.Expect(ended.status).To(Equal(http.StatusAccepted), ended.body)
		r.commit(http.StatusCreated, host, ended.location, "", "12345678")
		_, body = r.must(http.StatusOK, http.MethodGet, "/blobs/"+digest.FromString("12345678").String(), "", "")
		r.g.Expect(body).To(Equal("12345678"))
	})
}

func TestUpload_isNotChangedAfterItsCommit(t *testing.T) {
	onProcesses(t, func(r *repository, host string) {
		started, _ := r.must(http.StatusAccepted, http.MethodPost, "/blobs/uploads/", "", "")
		s := r.stream(started.Get("Location"))
		r.commit(http.StatusCreated, host, started.Get("Location"), "abcdefgh", "abcdefgh")
		ended := s.end(r.g, "12345678")
		r.g.Expect(ended.status).To(Equal(http.StatusNotFound), ended.body)
		r.g.Expect(ended.body).To(ContainSubstring("another request has ended this upload"))
		_, body := r.must(http.StatusOK, http.MethodGet, "/blobs/"+digest.FromString("abcdefgh").String(), "", "")
		r.g.Expect(body).To(Equal("abcdefgh"))
	})
}

func TestUpload_goesOnOnlyWhereItHasEnded(t *testing.T) {
	onProcesses(t, func(r *repository, host string) {
		started, _ := r.must(http.StatusAccepted, http.MethodPost, "/blobs/uploads/", "", "")
		s := r.stream(started.Get("Location"))
		next, _ := r.must(http.StatusAccepted, http.MethodPatch, r.at(host, started.Get("Location")), binary, "abcdefgh")
		ended := s.end(r.g, "12345")
		r.g.Expect(ended.status).To(Equal(http.StatusServiceUnavailable), ended.body)
		r.commit(http.StatusCreated, host, next.Get("Location"), "", "abcdefgh")
		_, body := r.must(http.StatusOK, http.MethodGet, "/blobs/"+digest.FromString("abcdefgh").String(), "", "")
		r.g.Expect(body).To(Equal("abcdefgh"))
	})
}
