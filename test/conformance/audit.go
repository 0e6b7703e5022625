package conformance

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/audit"
)

// account collects what the audit log of a server must and must not contain about the requests of the whole run.
type account struct {
	// path is the path of the log.
	path string

	lock    sync.Mutex
	writes  map[string]written
	reads   map[string]string
	secrets map[string]bool
	// shown are the ids in answers to writes, each after the last part of the path.
	shown map[string]bool
	// tokens maps the value of each access token to its holder.
	tokens map[string]bearer
}

// bearer is the holder of an access token.
type bearer struct{ user, token int64 }

// written is a write that was answered.
type written struct {
	request string
	at      *door
	by      *person
	value   string
	status  int
	// made is the id in the answer, or 0 if there is none.
	made int64
	// again reports that an earlier answer has shown the same object, so that this write may have changed nothing.
	again bool
}

func newAccount(log string) *account {
	return &account{
		path: log, writes: map[string]written{}, reads: map[string]string{}, secrets: map[string]bool{}, shown: map[string]bool{}, tokens: map[string]bearer{},
	}
}

// introduce records the holder of a token.
func (a *account) introduce(value string, b bearer) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.tokens[value] = b
}

// add records a request, its answer, and the secrets in both.
func (a *account) add(d *door, by *person, q *http.Request, sent []byte, answer *http.Response, text []byte) {
	a.lock.Lock()
	defer a.lock.Unlock()
	var said struct {
		ID     int64  `json:"id"`
		UserID int64  `json:"user_id"`
		Token  string `json:"token"`
	}
	_ = json.Unmarshal(text, &said) // a list, or text that is not JSON, has no such fields
	if len(said.Token) >= shortest {
		a.secrets[said.Token] = true
		if said.UserID != 0 {
			a.tokens[said.Token] = bearer{said.UserID, said.ID}
		}
	}
	a.hide(sent)
	value := q.Header.Get("Private-Token")
	if value == "" {
		value = cmp.Or(strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer "), q.Header.Get("Job-Token"))
	}
	if len(value) >= shortest {
		a.secrets[value] = true
	}
	id, request := answer.Header.Get("X-Request-Id"), q.Method+" "+q.URL.EscapedPath()
	switch {
	case id == "": // kube-apiserver has refused it itself
	case q.Method == http.MethodGet && q.Header.Get("Job-Token") != "" && answer.StatusCode >= http.StatusBadRequest: // has a line if the scope refuses it
	case q.Method == http.MethodGet || q.Method == http.MethodHead, changesNothing(q.URL.Path, answer.StatusCode):
		a.reads[id] = request
	default:
		shown := fmt.Sprint(path.Base(q.URL.Path), " ", said.ID)
		a.writes[id] = written{request: request, at: d, by: by, value: value, status: answer.StatusCode, made: said.ID, again: said.ID != 0 && a.shown[shown]}
		a.shown[shown] = true
	}
}

// changesNothing reports whether a request of a runner has succeeded without a change.
func changesNothing(at string, status int) bool {
	return status < http.StatusBadRequest && (strings.HasSuffix(at, "/runners/verify") || strings.HasSuffix(at, "/runners/managers") ||
		strings.HasSuffix(at, "/trace") || strings.Contains(at, "/v4/jobs/") && strings.HasSuffix(at, "/artifacts") || strings.HasSuffix(at, "/jobs/request") && status == http.StatusNoContent)
}

// shortest is the minimum length of a text that is treated as a secret.
const shortest = 6

// hide records the secrets in the body of a request.
func (a *account) hide(body []byte) {
	var said struct{ Password, Token, URL string }
	_ = json.Unmarshal(body, &said)
	secrets := []string{said.Password, said.Token}
	if u, err := url.Parse(said.URL); err == nil {
		password, _ := u.User.Password()
		secrets = append(secrets, password)
	}
	for _, s := range secrets {
		if len(s) >= shortest {
			a.secrets[s] = true
		}
	}
}

// linesOf reads an audit log.
func linesOf(file string) (text []byte, all []audit.Event) {
	GinkgoHelper()
	text, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	for line := range bytes.Lines(text) {
		var e audit.Event
		Expect(json.Unmarshal(line, &e)).To(Succeed(), string(line))
		all = append(all, e)
	}
	return text, all
}

// check compares the log, which is complete, with the requests that were sent.
func (a *account) check() {
	GinkgoHelper()
	text, all := linesOf(a.path)
	lines := map[string][]audit.Event{}
	for _, e := range all {
		if e.Part <= 1 {
			lines[e.Request] = append(lines[e.Request], e)
		} else { // more objects and refs of the same request
			last := &lines[e.Request][len(lines[e.Request])-1]
			last.Objects, last.Refs = append(last.Objects, e.Objects...), append(last.Refs, e.Refs...)
		}
	}
	var wrong []string
	for id, w := range a.writes {
		if len(lines[id]) != 1 {
			wrong = append(wrong, fmt.Sprintf("%s: %d: it has %d lines", w.request, w.status, len(lines[id])))
			continue
		}
		for _, failure := range InterceptGomegaFailures(func() { a.compare(w, lines[id][0]) }) {
			wrong = append(wrong, fmt.Sprintf("%s: %d: %s", w.request, w.status, failure))
		}
	}
	for id, request := range a.reads {
		if len(lines[id]) > 0 {
			wrong = append(wrong, request+": a read has a line")
		}
	}
	Expect(wrong).To(BeEmpty())
	a.hides(text)
	Expect(a.writes).NotTo(BeEmpty())
	Expect(a.reads).NotTo(BeEmpty())
	Expect(a.secrets).NotTo(BeEmpty())
	AddReportEntry("audit", map[string]int{"writes": len(a.writes), "reads": len(a.reads), "secrets": len(a.secrets)})
}

// hides checks that the log contains none of the secrets.
func (a *account) hides(text []byte) {
	GinkgoHelper()
	for secret := range a.secrets {
		Expect(bytes.Contains(text, []byte(secret))).To(BeFalse(), "the audit log holds a secret")
	}
}

// compare compares a line with its write.
func (a *account) compare(w written, e audit.Event) {
	GinkgoHelper()
	at, result := audit.REST, audit.Done
	if w.at != own {
		at = audit.Kubernetes
		identity := nobody // unless the request has a token
		if w.at == identities {
			identity = w.by
		}
		Expect(e.Identity).To(Equal(identity.kubernetes()))
	}
	switch {
	case w.status >= http.StatusInternalServerError:
		result = audit.Failed
	case w.status >= http.StatusBadRequest:
		result = audit.Refused
	}
	Expect(e).To(And(HaveField("Door", at), HaveField("Status", w.status), HaveField("Result", result), HaveField("Address", "127.0.0.1")))
	if !strings.HasSuffix(e.Action, noEndpoint) && !ownCredential[e.Action] { // without an endpoint, the server does not identify the caller
		a.compareCaller(w, e)
	}
	if w.again {
		return
	}
	if w.status == http.StatusCreated || w.status == http.StatusNoContent || w.status == http.StatusAccepted {
		Expect(len(e.Objects)+len(e.Refs) > 0 || idle[e.Action]).To(BeTrue(), "%s was done to nothing", e.Action)
	}
	if w.status == http.StatusCreated && w.made != 0 && !parts[e.Action] {
		// A member is shown with the id of the user, and has no id of its own.
		Expect(slices.ContainsFunc(e.Objects, func(o audit.Object) bool { return (o.ID == w.made || o.ID == 0) && !o.Failed })).To(BeTrue(), "%+v", e.Objects)
	}
}

// parts are the actions that add a part to a declared object. The part has an id of its own.
var parts = map[string]bool{"POST /projects/{id}/approval_rules": true}

// idle are the actions that need not change an object or a ref: they compute something, maintain a repository, or find nothing to do.
var idle = map[string]bool{
	"POST /projects/{id}/merge_requests/{merge_request_iid}/draft_notes/bulk_publish": true,
	"POST /project_repository_storage_moves":                                          true, // the moves follow later
	"POST /markdown":                                                                  true, "POST /projects/{id}/housekeeping": true, "POST /users/{id}/block": true,
}

// ownCredential are the actions of those who present the token of a runner, a job or a trigger.
var ownCredential = map[string]bool{
	"POST /jobs/request": true, "PUT /jobs/{job_id}": true, "POST /runners": true, "DELETE /runners": true, "POST /runners/reset_authentication_token": true,
	"POST /runners/verify": true, "POST /projects/{id}/trigger/pipeline": true, "POST /projects/{id}/ref/{ref}/trigger/pipeline": true,
}

// noEndpoint ends the action of a request whose path belongs to no endpoint.
const noEndpoint = "(no such endpoint)"

// compareCaller compares the user and the token of a line with those of its write.
func (a *account) compareCaller(w written, e audit.Event) {
	GinkgoHelper()
	who := e.User
	if e.Sudo != nil {
		who = e.Sudo
	}
	switch known, ok := a.tokens[w.value]; {
	case ok:
		Expect(e.Token).To(Equal(known.token))
		Expect(who).To(HaveField("ID", known.user))
	case w.at == identities && w.by.id != 0:
		Expect(who).To(HaveField("ID", w.by.id))
	case w.status < http.StatusBadRequest:
		Expect(w.by).To(Equal(operator), "nobody did it")
	}
}
