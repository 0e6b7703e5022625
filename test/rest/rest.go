// Package rest calls the REST API as its clients do, through whichever door.
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
	// timeout ends a request that hangs; kube-apiserver ends those that it passes on after a minute.
	timeout = 70 * time.Second
	// idle is how many connections a client keeps for what it asks next.
	idle = 16
)

// Client is somebody who calls the API. Its methods may be called by several goroutines.
type Client struct {
	base  string
	token string
	http  *http.Client
}

// WithToken returns a client of the forge at an address, such as http://127.0.0.1:8080, who shows an access token, or none
// when it is empty.
func WithToken(address, token string) Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = idle
	return Client{base: address + "/api/v4", token: token, http: &http.Client{Timeout: timeout, Transport: transport}}
}

// ThroughKubernetes returns a client with a Kubernetes identity, who reaches the forge through kube-apiserver.
func ThroughKubernetes(identity *kubernetes.Config) Client {
	GinkgoHelper()
	client, err := kubernetes.HTTPClientFor(identity)
	Expect(err).NotTo(HaveOccurred())
	client.Timeout = timeout
	return Client{base: identity.Host + "/apis/rest.forgeplane.dev/v4", http: client}
}

// Answer is what a client is told.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// String is the answer as messages show it.
func (a Answer) String() string { return fmt.Sprintf("%d %s", a.Status, a.Body) }

// Try sends a request, as "GET /projects/17", with a JSON body unless it is empty. It fails when there is no answer.
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

// Call is Try that must have an answer.
func (c Client) Call(request, body string) Answer {
	GinkgoHelper()
	a, err := c.Try(request, body)
	Expect(err).NotTo(HaveOccurred(), request)
	return a
}

// Status is Call for the status code alone.
func (c Client) Status(request string) int {
	GinkgoHelper()
	return c.Call(request, "").Status
}

// Must is Call that must be answered with a status code; it returns what the body says.
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
