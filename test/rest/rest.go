// Package rest calls the REST API in the way of its clients, through either door.
package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	kubernetes "k8s.io/client-go/rest"
)

const (
	// timeout ends a request that hangs. kube-apiserver ends forwarded requests after a minute.
	timeout = 70 * time.Second
	// idle is the number of connections that a client keeps for later requests.
	idle = 16
)

// Client is a client of the API. Its methods can be called by several goroutines.
type Client struct {
	base  string
	token string
	http  *http.Client
}

// WithToken returns a client of the forge at an address, such as http://127.0.0.1:8080, that sends an access token, or no token if it is empty.
func WithToken(address, token string) Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = idle
	return Client{base: address + "/api/v4", token: token, http: &http.Client{Timeout: timeout, Transport: transport}}
}

// ThroughKubernetes returns a client with a Kubernetes identity, which reaches the forge through kube-apiserver.
func ThroughKubernetes(identity *kubernetes.Config) Client {
	GinkgoHelper()
	client, err := kubernetes.HTTPClientFor(identity)
	Expect(err).NotTo(HaveOccurred())
	client.Timeout = timeout
	return Client{base: identity.Host + "/apis/rest.forgeplane.dev/v4", http: client}
}

// Answer is an answer to a client.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// String returns the answer in the form of messages.
func (a Answer) String() string { return fmt.Sprintf("%d %s", a.Status, a.Body) }

// Try sends a request such as "GET /projects/17", with a JSON body unless it is empty. It returns an error if there is no answer.
func (c Client) Try(request, body string) (Answer, error) {
	method, path, _ := strings.Cut(request, " ")
	r, err := http.NewRequest(method, c.base+path, strings.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		r.Header.Set("PRIVATE-TOKEN", c.token)
	}
	response, err := c.http.Do(r)
	if err != nil {
		return Answer{}, err
	}
	text, err := io.ReadAll(response.Body)
	return Answer{response.StatusCode, response.Header, string(text)}, errors.Join(err, response.Body.Close())
}

// Call is Try for a request that must get an answer.
func (c Client) Call(request, body string) Answer {
	GinkgoHelper()
	a, err := c.Try(request, body)
	Expect(err).NotTo(HaveOccurred(), request)
	return a
}

// Status is Call that returns only the status code.
func (c Client) Status(request string) int {
	GinkgoHelper()
	return c.Call(request, "").Status
}

// Must is Call for a request that must be answered with a status code. It returns the decoded body.
func Must[T any](c Client, status int, request, body string) T {
	GinkgoHelper()
	a := c.Call(request, body)
	Expect(a).To(HaveField("Status", status), "%s: %s", request, a)
	var value T
	if a.Body != "" {
		Expect(json.Unmarshal([]byte(a.Body), &value)).To(Succeed(), a.Body)
	}
	return value
}
