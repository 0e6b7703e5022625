package rights

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/forgeplane/forgeplane/internal/ids"
)

// decision is the annotation with the decision of RBAC.
const decision = "authorization.k8s.io/decision"

// asked are verbs that no request has. Each of them belongs to the annotation with which a policy reports that it has checked the verb.
var asked = map[string]string{"pin.forgeplane.dev/id": "pin", "finalizers.forgeplane.dev/released": "release"}

// Requests are requests that kube-apiserver has seen.
type Requests struct {
	// Refused are the requests that RBAC has refused.
	Refused []string

	seen map[Right]bool
}

// Seen reads the requests of accounts in a namespace from an audit log of kube-apiserver.
func Seen(log io.Reader, namespace string) (*Requests, error) {
	q := &Requests{seen: map[Right]bool{}}
	if err := Each(log, namespace, q.add); err != nil {
		return nil, err
	}
	return q, nil
}

// Each reads the requests of accounts in a namespace from an audit log of kube-apiserver.
func Each(log io.Reader, namespace string, add func(account string, e *auditv1.Event)) error {
	for decoder := json.NewDecoder(log); ; {
		var e auditv1.Event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading the audit log of kube-apiserver: %w", err)
		}
		if account, ours := strings.CutPrefix(e.User.Username, "system:serviceaccount:"+namespace+":"); ours && e.ObjectRef != nil {
			add(account, &e)
		}
	}
}

func (q *Requests) add(role string, e *auditv1.Event) {
	r := Right{
		Role: role, Namespace: e.ObjectRef.Namespace, Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource,
		Name: e.ObjectRef.Name, Verb: e.Verb,
	}
	if e.ObjectRef.Subresource != "" {
		r.Resource += "/" + e.ObjectRef.Subresource
	}
	if e.Annotations[decision] != "allow" {
		q.Refused = append(q.Refused, r.String())
		return
	}
	q.seen[r] = true
	for annotation, verb := range asked {
		if _, needed := e.Annotations[annotation]; needed {
			needs := r
			needs.Verb = verb
			q.seen[needs] = true
		}
	}
	// RBAC has no request for bind: creating a RoleBinding requires it for the Role. Forgeplane binds one Role.
	if r.Resource == "rolebindings" && r.Verb == "create" {
		needs := r
		needs.Resource, needs.Name, needs.Verb = "roles", ids.DeclareRole, "bind"
		q.seen[needs] = true
	}
	// A request that applies a missing object creates it, which requires the verb create in addition to patch.
	if e.Verb == "patch" && e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusCreated {
		r.Verb = "create"
		q.seen[r] = true
	}
}

// Unused returns the rights, as texts, that no request has needed. A request needs one right: the narrowest right that allows it.
func (q *Requests) Unused(granted []Right) []string {
	used := map[Right]bool{}
	for request := range q.seen {
		var by *Right
		for i, r := range granted {
			if r.allows(request) && (by == nil || r.narrow() > by.narrow()) {
				by = &granted[i]
			}
		}
		if by != nil {
			used[*by] = true
		}
	}
	var unused []string
	for _, r := range granted {
		if !used[r] {
			unused = append(unused, r.String())
		}
	}
	return unused
}

// allows reports whether a right is enough for a request.
func (r Right) allows(request Right) bool {
	return r.Role == request.Role && r.Group == request.Group && r.Resource == request.Resource && r.Verb == request.Verb &&
		(r.Namespace == "" || r.Namespace == request.Namespace) && (r.Name == "" || r.Name == request.Name)
}

// narrow returns a number that is higher for a right with more restrictions.
func (r Right) narrow() int {
	n := 0
	if r.Name != "" {
		n++
	}
	if r.Namespace != "" {
		n += 2
	}
	return n
}
