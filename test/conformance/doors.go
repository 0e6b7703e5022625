package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
	"k8s.io/client-go/rest"

	"github.com/forgeplane/forgeplane/apiserver/endpoint/endpointtest"
	"github.com/forgeplane/forgeplane/test/soak"
	"github.com/forgeplane/forgeplane/test/suite"
)

// door is a door together with a way to identify the caller.
type door struct {
	name string
	// url is the base URL for clients.
	url string
	// through is the transport of a person.
	through func(p *person) http.RoundTripper
	// tokens reports that people send their tokens. Otherwise only their Kubernetes identity identifies them.
	tokens bool

	contract *endpointtest.Contract
	coverage *coverage
}

var (
	own        = &door{name: "at Forgeplane's own address", tokens: true}
	kubernetes = &door{name: "through kube-apiserver", tokens: true}
	identities = &door{name: "through kube-apiserver, by Kubernetes identities"}
)

// each returns the doors of most specs. "make test" sends tokens through kube-apiserver only where tokens matter, "make soak" everywhere. All specs
// run at Forgeplane's own address, and at the others those that call an endpoint which no other spec calls, or that depend on the door.
func each() []*door {
	if soak.Running() {
		return []*door{own, kubernetes, identities}
	}
	return []*door{own, identities}
}

// again labels the other specs of throughEachDoor, which only "make soak" runs at every door.
func (d *door) again() Labels {
	if d == own {
		return nil
	}
	return suite.Soak
}

// throughEachDoor declares specs for each of the doors.
func throughEachDoor(text string, specs func(d *door)) bool {
	return throughDoors(text, specs, each()...)
}

// withTokens declares specs for the doors at which people send tokens.
func withTokens(text string, specs func(d *door)) bool {
	return throughDoors(text, specs, own, kubernetes)
}

func throughDoors(text string, specs func(d *door), doors ...*door) bool {
	return Describe(text, func() { describe(specs, doors...) })
}

func describe(specs func(d *door), doors ...*door) {
	for _, d := range doors {
		Describe(d.name, func() { specs(d) })
	}
}

// openDoors sets the addresses of the doors, and reads the document of the API at each.
func openDoors(url string) {
	GinkgoHelper()
	// A token identifies the caller, whichever identity kube-apiserver has admitted.
	anybody := through(nobody)
	own.url, own.through = url, func(*person) http.RoundTripper { return http.DefaultTransport }
	kubernetes.url = controlPlane.URL() + "/apis/rest.forgeplane.dev/v4"
	kubernetes.through = func(*person) http.RoundTripper { return anybody }
	identities.url, identities.through = kubernetes.url, through
	contracts := map[string]*endpointtest.Contract{} // reading a document takes long, and both doors of kube-apiserver have the same one
	for _, d := range []*door{own, kubernetes, identities} {
		document := d.get("openapi.json")
		Expect(document.StatusCode).To(Equal(http.StatusOK), answered(document))
		text := document.Body.(*kept).text
		if contracts[text] == nil {
			var err error
			contracts[text], err = endpointtest.Load([]byte(text))
			Expect(err).NotTo(HaveOccurred())
		}
		d.contract = contracts[text]
		d.coverage = newCoverage([]byte(text), d.contract)
		d.coverage.add(http.MethodGet, "/openapi.json")
	}
}

// through is the transport of a person's Kubernetes identity.
func through(p *person) http.RoundTripper {
	transport, err := rest.TransportFor(p.identity)
	Expect(err).NotTo(HaveOccurred())
	return transport
}

// as returns a client of a person. It does not retry failed requests.
func (d *door) as(p *person) *gitlab.Client {
	GinkgoHelper()
	token := p.token
	if !d.tokens {
		token = ""
	}
	return d.client(p, token)
}

// with returns a client that sends a token.
func (d *door) with(token string) *gitlab.Client {
	GinkgoHelper()
	return d.client(nobody, token)
}

func (d *door) client(p *person, token string) *gitlab.Client {
	GinkgoHelper()
	c, err := gitlab.NewClient(token, gitlab.WithBaseURL(d.url), gitlab.WithoutRetries(),
		gitlab.WithHTTPClient(&http.Client{Transport: recorder{door: d, by: p, next: d.through(p)}}))
	Expect(err).NotTo(HaveOccurred())
	return c
}

// get reads a path without credentials.
func (d *door) get(path string, options ...gitlab.RequestOptionFunc) *gitlab.Response {
	GinkgoHelper()
	return send(d.as(nobody), "GET "+path, "", options...)
}

// send sends a request such as "GET projects/17?simple=true" in the way of a client. The body is JSON, or absent if it is empty.
func send(c *gitlab.Client, request, body string, options ...gitlab.RequestOptionFunc) *gitlab.Response {
	GinkgoHelper()
	method, path, _ := strings.Cut(request, " ")
	path, query, _ := strings.Cut(path, "?")
	r, err := c.NewRequest(method, path, nil, options)
	Expect(err).NotTo(HaveOccurred())
	r.URL.RawQuery = query
	if body != "" {
		Expect(r.SetBody([]byte(body))).To(Succeed())
	}
	answer, err := c.Do(r, nil)
	var refused *gitlab.ErrorResponse
	if !errors.As(err, &refused) && !errors.Is(err, gitlab.ErrNotFound) {
		Expect(err).NotTo(HaveOccurred())
	}
	return answer
}

// answered returns the status and the body of the response.
func answered(r *gitlab.Response) string {
	GinkgoHelper()
	Expect(r).NotTo(BeNil())
	return strings.TrimSpace(fmt.Sprintf("%d %s", r.StatusCode, endpointtest.Undescribed(r.Body.(*kept).text)))
}

// kept is the body of an answer, which remains available after the client has read it.
type kept struct {
	*bytes.Reader
	text string
}

func (*kept) Close() error { return nil }

// recorder keeps the answers of a door, compares them with the document of the API, records which endpoints have succeeded, and collects what the
// audit log must contain.
type recorder struct {
	door *door
	by   *person
	next http.RoundTripper
}

// prefix is the part of the path that the client puts between the base URL and the path of an endpoint.
const prefix = "/api/v4"

func (r recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	sent, err := sentBody(q)
	if err != nil {
		return nil, err
	}
	answer, err := r.next.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	answer.Body = &kept{Reader: bytes.NewReader(text), text: string(text)}
	told.add(r.door, r.by, q, sent, answer, text)
	_, path, _ := strings.Cut(q.URL.EscapedPath(), prefix)
	if r.door.contract == nil {
		return answer, nil
	}
	// kube-apiserver refuses in its own words what RBAC does not allow.
	if answer.StatusCode == http.StatusForbidden && r.door != own && strings.Contains(string(text), `"kind":"Status"`) {
		return answer, nil
	}
	if err := r.door.contract.Check(q.Method, path, answer.StatusCode, answer.Header, text); err != nil {
		return nil, fmt.Errorf("%s %s: %w", q.Method, path, err)
	}
	if answer.StatusCode < http.StatusMultipleChoices {
		r.door.coverage.add(q.Method, path)
	}
	return answer, nil
}

// sentBody is the body of a request that has yet to be sent.
func sentBody(q *http.Request) ([]byte, error) {
	if q.GetBody == nil {
		return nil, nil
	}
	body, err := q.GetBody()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(body)
}
