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

// Door is the way by which a write came.
type Door string

// The doors.
const (
	// REST is the REST API on Forgeplane's own listener.
	REST Door = "rest"
	// Kubernetes is the REST API behind kube-apiserver.
	Kubernetes Door = "kubernetes"
	// Git is a push.
	Git Door = "git"
	// Registry is a push or a deletion of images.
	Registry Door = "registry"
	// Controller is Forgeplane itself, which acts on what is declared.
	Controller Door = "controller"
)

// Result says in a word how a write ended.
type Result string

// The results.
const (
	// Done is a write that was carried out.
	Done Result = "done"
	// Refused is a write that the caller was not allowed, or that made no sense.
	Refused Result = "refused"
	// Failed is a write that the server could not carry out; a part of it may have been.
	Failed Result = "failed"
)

// Event is one write, or the refusal of one. Its texts are clipped when they are too long.
type Event struct {
	// Time is when the write ended, in UTC.
	Time time.Time `json:"time"`
	Door Door      `json:"door"`
	// Controller is the kind whose controller did it, where Forgeplane itself did.
	Controller string `json:"controller,omitempty"`
	// Action is the endpoint, as in "POST /projects/{id}/labels", or a word such as "push".
	Action string `json:"action"`
	// Target is the path that was asked for, escaped and without a query; for an import or a mirror the URL of the other side, without
	// credentials.
	Target string `json:"target,omitempty"`
	Result Result `json:"result"`
	// Status is the HTTP status of the answer; 0 if there was none.
	Status int `json:"status,omitempty"`
	// Reason says why a push was refused, or why a controller acted.
	Reason string `json:"reason,omitempty"`
	// Interrupted is true when the client went away before it had its answer, or the handler broke down.
	Interrupted bool `json:"interrupted,omitempty"`
	// Request is the id of the request, as in the X-Request-Id of its answer.
	Request string `json:"request,omitempty"`
	// Address is the client's; Peer is who was on the connection where that was a proxy.
	Address string `json:"address,omitempty"`
	Peer    string `json:"peer,omitempty"`

	// User is the user as whom the caller acted.
	User *User `json:"user,omitempty"`
	// Sudo is the administrator who acted as User by sudo.
	Sudo *User `json:"sudo,omitempty"`
	// Token is the id of the presented access token, whether or not it was accepted.
	Token int64 `json:"token,omitempty"`
	// Identity is the name of the caller in the cluster.
	Identity string `json:"kubernetes,omitempty"`

	// About is the project or group that the write was about.
	About *Object `json:"about,omitempty"`
	// Objects are those that were written.
	Objects []Object `json:"objects,omitempty"`
	// Refs are the refs that a push, a change of files over REST, an import or a mirror requested to update.
	Refs []Ref `json:"refs,omitempty"`
	// Rest stands for the refs that are too many to be named; nil where all are.
	Rest *Rest `json:"rest,omitempty"`
	// Part counts the lines of a write that is too long for one; they have the same request id. 0 is a write with one line.
	Part int `json:"part,omitempty"`
}

// User is a user by the names that Forgeplane knows them by.
type User struct {
	ID       int64  `json:"id"`
	Username string `json:"username"`
	UID      string `json:"uid,omitempty"`
	Admin    bool   `json:"admin,omitempty"`
}

// UserOf describes a user; nil gives nil.
func UserOf(u *v1alpha1.User) *User {
	if u == nil {
		return nil
	}
	return &User{ID: u.RESTID(), Username: clip(u.Spec.Username, maxName), UID: string(u.UID), Admin: u.Spec.Admin}
}

// Object is an object of the cluster.
type Object struct {
	// Verb is what was done to it: "create", "update" or "delete", or what somebody did about it, such as "subscribe"; empty for what
	// a write was only about.
	Verb      string `json:"verb,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// ID is the id in the REST API; 0 if there is none.
	ID  int64  `json:"id,omitempty"`
	UID string `json:"uid,omitempty"`
	// Path is the full path of a project or group.
	Path string `json:"path,omitempty"`
	// Failed is true for a write that the API server did not take.
	Failed bool `json:"failed,omitempty"`
}

// ObjectOf describes an object; path is its full path where it has one.
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

// How long texts are at most, in bytes, and how many objects and refs a line has. A line so has at most 256 KiB, whatever is in it.
const (
	maxName   = 256
	maxTarget = 2048
	maxPath   = 4096
	maxRef    = 512
	maxReason = 1024
	maxListed = 25
	maxLine   = 256 << 10
)

// clip shortens a text between two characters, and shows that it did.
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

// caller is whose lines these are, for the share of the log that one caller has.
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

// lines are the event as JSON, each with an end of line and none within.
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
	if err != nil { // a struct of texts and numbers always has one
		text = []byte(`{"result":"failed"}`)
	}
	return append(escape(text), '\n')
}

// escape writes as escapes of JSON what it allows in a text, and a terminal or a person who reads along may take for something
// else: the controls beyond ASCII, and those that change the direction of a text.
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
