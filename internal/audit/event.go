package audit

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"time"
	"unicode/utf8"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fair"
)

// Door is the interface of a write.
type Door string

// The doors.
const (
	// REST is the REST API on Forgeplane's own listener.
	REST Door = "rest"
	// Kubernetes is the REST API behind kube-apiserver.
	Kubernetes Door = "kubernetes"
	// Git is a push, or the refusal of a fetch.
	Git Door = "git"
	// Registry is a push or a deletion of images, or the refusal of a pull or of a token.
	Registry Door = "registry"
	// Controller is Forgeplane itself, which reconciles declared objects.
	Controller Door = "controller"
)

// Result is the result of a write.
type Result string

// The results.
const (
	// Done means that the write was carried out.
	Done Result = "done"
	// Refused means that the caller did not have the permission, or the request was invalid.
	Refused Result = "refused"
	// Failed means that the server could not carry out the write, or only a part of it.
	Failed Result = "failed"
)

// Event is a write or its refusal. Texts that are too long are clipped.
type Event struct {
	// Time is the time at which the write ended, in UTC.
	Time time.Time `json:"time"`
	Door Door      `json:"door"`
	// Controller is the kind of the controller, for a write of Forgeplane itself.
	Controller string `json:"controller,omitempty"`
	// Action is the endpoint, as in "POST /projects/{id}/labels", or a word such as "push".
	Action string `json:"action"`
	// Target is the requested path, escaped and without a query. For an import or a mirror, it is the URL of the remote repository without
	// credentials.
	Target string `json:"target,omitempty"`
	Result Result `json:"result"`
	// Status is the HTTP status of the response, or 0 without a response.
	Status int `json:"status,omitempty"`
	// Reason is the reason for the refusal of a push or of a job token, or for the action of a controller.
	Reason string `json:"reason,omitempty"`
	// Interrupted is true if the client disconnected before the end of the response, or the handler panicked.
	Interrupted bool `json:"interrupted,omitempty"`
	// Request is the id of the request, as in X-Request-Id of the response.
	Request string `json:"request,omitempty"`
	// Address is the address of the client. Peer is the address of the proxy, if there is one.
	Address string `json:"address,omitempty"`
	Peer    string `json:"peer,omitempty"`

	// User is the user of the caller, or the impersonated user of sudo.
	User *User `json:"user,omitempty"`
	// Sudo is the administrator who acted as User by sudo.
	Sudo *User `json:"sudo,omitempty"`
	// Token is the id of the presented access token, whether or not it was accepted.
	Token int64 `json:"token,omitempty"`
	// Job is the id of the CI job whose token was presented, whether or not it was accepted.
	Job int64 `json:"job,omitempty"`
	// Identity is the Kubernetes username of the caller.
	Identity string `json:"kubernetes,omitempty"`

	// About is the project or group of the write.
	About *Object `json:"about,omitempty"`
	// Objects are the written objects.
	Objects []Object `json:"objects,omitempty"`
	// Refs are the refs that a push, a change of files over REST, an import or a mirror requested to update.
	Refs []Ref `json:"refs,omitempty"`
	// Rest summarizes the refs that Refs omits. It is nil if Refs has all of them.
	Rest *Rest `json:"rest,omitempty"`
	// Part is the number of the line, if a write is split into several lines with the same request id. It is 0 for a write with one line.
	Part int `json:"part,omitempty"`
}

// User identifies a user.
type User struct {
	ID       int64  `json:"id"`
	Username string `json:"username"`
	UID      string `json:"uid,omitempty"`
	Admin    bool   `json:"admin,omitempty"`
}

// UserOf describes a user. It returns nil for nil.
func UserOf(u *v1alpha1.User) *User {
	if u == nil {
		return nil
	}
	return &User{ID: u.RESTID(), Username: clip(u.Spec.Username, maxName), UID: string(u.UID), Admin: u.Spec.Admin}
}

// Object identifies an object of the cluster.
type Object struct {
	// Verb is "create", "update", "delete" or an action such as "subscribe". It is empty for an object that was not written.
	Verb      string `json:"verb,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// ID is the id in the REST API, or 0.
	ID  int64  `json:"id,omitempty"`
	UID string `json:"uid,omitempty"`
	// Path is the full path of a project or group.
	Path string `json:"path,omitempty"`
	// Failed is true if the API server refused the write.
	Failed bool `json:"failed,omitempty"`
}

// ObjectOf describes an object. path is the full path of a project or group, and otherwise empty.
func ObjectOf(obj client.Object, path string) Object {
	o := Object{
		Kind: kind(obj), Namespace: obj.GetNamespace(), Name: clip(obj.GetName(), maxName), UID: string(obj.GetUID()), Path: clip(path, maxPath),
	}
	if identified, ok := obj.(interface{ IDs() (spec, status *int64) }); ok {
		spec, _ := identified.IDs()
		o.ID = *spec
	}
	return o
}

func kind(obj client.Object) string {
	if k := obj.GetObjectKind().GroupVersionKind().Kind; k != "" {
		return k
	}
	t := reflect.TypeOf(obj)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// Maximum sizes of texts in bytes, and maximum numbers of objects and refs in a line. They limit a line to 256 KiB.
const (
	maxName   = 256
	maxTarget = 2048
	maxPath   = 4096
	maxRef    = 512
	maxReason = 1024
	maxListed = 25
	maxLine   = 256 << 10
)

// clip truncates a text between two characters, and marks the truncation.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const more = "…"
	end := limit - len(more)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + more
}

// caller identifies the caller of the event, for the caller's share of the log.
func (e *Event) caller() fair.Key {
	switch {
	case e.Sudo != nil:
		return fair.User(e.Sudo.ID)
	case e.User != nil:
		return fair.User(e.User.ID)
	case e.Identity != "":
		return fair.Identity(e.Identity)
	case e.Door == Controller && e.About != nil && e.About.Namespace != "":
		return fair.Namespace(e.About.Namespace)
	case e.Door == Controller:
		return fair.Key{}
	}
	address, err := netip.ParseAddr(e.Address)
	if err != nil {
		return fair.Address(netip.Addr{})
	}
	return fair.Address(address)
}

// lines returns the event as lines of JSON.
func (e Event) lines() [][]byte {
	e.Time = e.Time.UTC()
	e.Action, e.Target, e.Reason = clip(e.Action, maxName), clip(e.Target, maxTarget), clip(e.Reason, maxReason)
	e.Request, e.Identity = clip(e.Request, maxName), clip(e.Identity, maxName)
	e.Address, e.Peer = clip(e.Address, maxName), clip(e.Peer, maxName)
	e.bound()
	objects, refs := e.Objects, e.Refs
	if len(objects) <= maxListed && len(refs) <= maxListed {
		return [][]byte{e.line()}
	}
	var all [][]byte
	for len(objects) > 0 || len(refs) > 0 {
		e.Part++
		e.Objects, objects = cut(objects)
		e.Refs, refs = cut(refs)
		all = append(all, e.line())
	}
	return all
}

func cut[T any](all []T) (first, rest []T) {
	n := min(len(all), maxListed)
	return all[:n], all[n:]
}

func (e Event) line() []byte {
	text, err := json.Marshal(e)
	if err != nil { // this cannot happen for strings and numbers
		text = []byte(`{"result":"failed"}`)
	}
	return append(escape(text), '\n')
}

// escape escapes characters that JSON allows but that can deceive a terminal or a reader: control characters beyond ASCII, and characters
// that change the direction of text.
func escape(text []byte) []byte {
	var escaped []byte
	from := 0
	for i := 0; i < len(text); {
		if text[i] < 0x7f {
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if deceives(r) {
			escaped = append(escaped, text[from:i]...)
			escaped = append(escaped, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
			from = i + size
		}
		i += size
	}
	if from == 0 {
		return text
	}
	return append(escaped, text[from:]...)
}

const digits = "0123456789abcdef"

func deceives(r rune) bool {
	return 0x7f <= r && r < 0xa0 || // DEL and C1
		0x200b <= r && r <= 0x200f || 0x2028 <= r && r <= 0x202e || 0x2060 <= r && r <= 0x206f || // invisible, and other directions
		r == 0x061c || r == 0xfeff
}
