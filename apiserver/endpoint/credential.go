package endpoint

import (
	"net/http"
	"slices"
)

// Credential is a kind of secret by which callers are known. The Guard knows where the headers and the query have them, and what they are
// good for.
type Credential string

// The kinds of credentials. Endpoints take an AccessToken that say nothing else.
const (
	AccessToken  Credential = "access_token"
	JobToken     Credential = "job_token"
	RunnerToken  Credential = "runner_token"
	TriggerToken Credential = "trigger_token"
	ClientKey    Credential = "client_key"
)

// maxCarrying bounds a body that can have a credential: it is read before the caller is known.
const maxCarrying = freeBody

// Takes replaces the kinds of credentials by which callers of the endpoint are known.
func (e *Endpoint) Takes(all ...Credential) *Endpoint {
	e.credentials = all
	return e
}

// Carries names the parameter of the query or the body in which clients can send a credential that the endpoint takes. A body can have
// 64 KiB then. Where an endpoint takes files or a raw body, only the query carries credentials: the caller is known before the body is
// read.
func (e *Endpoint) Carries(c Credential, parameter string) *Endpoint {
	e.carried = append(e.carried, carrier{c, parameter})
	if !e.streams() {
		e.maxBody = min(e.maxBody, maxCarrying)
	}
	return e
}

// carrier is a parameter that may have a credential.
type carrier struct {
	credential Credential
	parameter  string
}

// Credentials are the kinds of credentials by which callers are known.
func (e *Endpoint) Credentials() []Credential { return e.credentials }

// TakesCredential reports whether a kind of credentials is one of them.
func (e *Endpoint) TakesCredential(c Credential) bool { return slices.Contains(e.credentials, c) }

// Sent is what the Guard needs of a request and cannot read itself.
type Sent struct {
	// Path has the parameters of the path.
	Path map[string]string
	// Credentials are those that stood in parameters; nil for none.
	Credentials map[Credential]string
}

// carriedIn takes the credentials out of the parameters that carry them.
func (e *Endpoint) carriedIn(sent tree) (map[Credential]string, error) {
	var all map[Credential]string
	for _, c := range e.carried {
		value, is := sent[c.parameter]
		if !is {
			continue
		}
		text, ok := value.(string)
		if !ok {
			return nil, Parameters(c.parameter + " is invalid")
		}
		if all == nil {
			all = map[Credential]string{}
		}
		all[c.credential] = text
	}
	return all, nil
}

// carried reads the parameters of a request where one of them may have a credential, before the Guard is asked.
func (h *Handler) carried(w http.ResponseWriter, r *http.Request, e *Endpoint, a *answer) (err error) {
	if len(e.carried) == 0 {
		return nil
	}
	if e.streams() {
		query, err := readQuery(r)
		if err != nil {
			return err
		}
		a.known.Credentials, err = e.carriedIn(query)
		return err
	}
	if a.sent, err = readTree(r, e.maxBody, nil); err != nil {
		return err
	}
	received(w, r)
	a.known.Credentials, err = e.carriedIn(a.sent)
	return err
}
