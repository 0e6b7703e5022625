package endpoint

import (
	"net/http"
	"slices"
)

// Credential is a kind of secret that identifies a caller. The Guard knows which headers and query parameters carry it, and what it
// permits.
type Credential string

// The kinds of credentials. An endpoint takes an AccessToken unless it says otherwise.
const (
	AccessToken       Credential = "access_token"
	JobToken          Credential = "job_token"
	RunnerToken       Credential = "runner_token"
	RegistrationToken Credential = "registration_token"
	TriggerToken      Credential = "trigger_token"
	ClientKey         Credential = "client_key"
)

// maxCarrying is the maximum size of a body that can contain a credential, in bytes. Such a body is read before the caller is known.
const maxCarrying = freeBody

// Takes replaces the kinds of credentials that the endpoint accepts.
func (e *Endpoint) Takes(all ...Credential) *Endpoint {
	e.credentials = all
	return e
}

// TakesWhile adds a kind of credential that the endpoint accepts only while a feature is on. The Guard knows which features exist.
func (e *Endpoint) TakesWhile(feature string, c Credential) *Endpoint {
	e.credentials = append(slices.Clone(e.credentials), c)
	if e.credentialFeatures == nil {
		e.credentialFeatures = map[Credential]string{}
	}
	e.credentialFeatures[c] = feature
	return e
}

// Carries names the parameter of the query or the body in which clients can send a credential that the endpoint takes. The body is then
// limited to 64 KiB. If an endpoint takes files or a raw body, only the query can carry credentials, because the caller must be known
// before the body is read.
func (e *Endpoint) Carries(c Credential, parameter string) *Endpoint {
	e.carried = append(e.carried, carrier{c, parameter})
	if !e.streams() {
		e.maxBody = min(e.maxBody, maxCarrying)
	}
	return e
}

// carrier is a parameter that can contain a credential.
type carrier struct {
	credential Credential
	parameter  string
}

// Credentials returns the kinds of credentials that the endpoint accepts.
func (e *Endpoint) Credentials() []Credential { return e.credentials }

// TakesCredential reports whether the endpoint accepts a kind of credential.
func (e *Endpoint) TakesCredential(c Credential) bool { return slices.Contains(e.credentials, c) }

// CredentialFeature returns the feature that must be on for the endpoint to accept a kind of credential, or "" if it always does.
func (e *Endpoint) CredentialFeature(c Credential) string { return e.credentialFeatures[c] }

// Sent has the parts of a request that the Guard needs and cannot read itself.
type Sent struct {
	// Path has the parameters of the path.
	Path map[string]string
	// Credentials are the credentials that the client sent in parameters, or nil.
	Credentials map[Credential]string
	// Identity has the parameters of the body that every endpoint takes and that identify the caller: private_token, access_token and sudo.
	// It is nil until the body is read.
	Identity map[string]string
}

// carriedIn returns the credentials in the parameters that carry them. The error is a 400 if one is not a text.
func (e *Endpoint) carriedIn(sent parameters) (map[Credential]string, error) {
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

// carried reads the parameters of a request before the Guard is asked, if one of them can contain a credential.
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
	if a.sent, err = readParameters(r, e.maxBody, nil); err != nil {
		return err
	}
	received(w, r)
	a.known.Credentials, err = e.carriedIn(a.sent)
	return err
}
