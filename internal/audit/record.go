package audit

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/endpoints/responsewriter" // keeps what a ResponseWriter can do when it is wrapped
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/git/update"
)

// Record collects the event of a request while the request is served. A nil Record collects nothing. It is safe for use by several
// goroutines.
type Record struct {
	mu      sync.Mutex
	event   Event
	skipped bool
	// read says that the request has a line only if it is refused because of the restriction.
	read        bool
	restriction *restriction
}

type recordKey struct{}

// From returns the record of the request of ctx. It is nil for reads, except those that At.Reads selects.
func From(ctx context.Context) *Record {
	r, _ := ctx.Value(recordKey{}).(*Record)
	return r
}

// with changes the event.
func (r *Record) with(change func(e *Event)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.event)
}

// Action sets the action, which is an endpoint or a word, and the requested path.
func (r *Record) Action(action, target string) {
	r.with(func(e *Event) { e.Action, e.Target = action, target })
}

// Identity sets the Kubernetes username of the caller.
func (r *Record) Identity(name string) {
	r.with(func(e *Event) { e.Identity = name })
}

// Token sets the presented access token, whether or not it is accepted.
func (r *Record) Token(t v1alpha1.Identified) {
	r.with(func(e *Event) { e.Token = t.RESTID() })
}

// Job sets the job whose token was presented, whether or not it is accepted.
func (r *Record) Job(id int64) {
	r.with(func(e *Event) { e.Job = id })
}

// User sets the user of the caller, unless it is set: a caller can be authenticated again.
func (r *Record) User(u *v1alpha1.User) {
	r.with(func(e *Event) {
		if e.User == nil {
			e.User = UserOf(u)
		}
	})
}

// Sudo sets the user as whom the caller acts, unless it is set: a request can be admitted again.
func (r *Record) Sudo(as *v1alpha1.User) {
	r.with(func(e *Event) {
		if e.Sudo == nil {
			e.Sudo, e.User = e.User, UserOf(as)
		}
	})
}

// About sets the project or group of the write with its full path, unless it is set.
func (r *Record) About(obj client.Object, path string) {
	r.with(func(e *Event) {
		if e.About == nil {
			about := ObjectOf(obj, path)
			e.About = &about
		}
	})
}

// maxGathered is the maximum number of objects in a record.
const maxGathered = 10_000

// Wrote adds the write of an object, which failed if err is not nil. The last of several attempts counts.
func (r *Record) Wrote(verb string, obj client.Object, err error) {
	r.with(func(e *Event) {
		o := ObjectOf(obj, "")
		o.Verb, o.Failed = verb, err != nil
		e.Objects = slices.DeleteFunc(e.Objects, func(b Object) bool {
			return b.Failed && b.Verb == o.Verb && b.Kind == o.Kind && b.Namespace == o.Namespace && b.Name == o.Name
		})
		if len(e.Objects) < maxGathered {
			e.Objects = append(e.Objects, o)
		}
	})
}

// Kinds of objects outside the cluster.
const (
	// ContainerRepository is a repository of images.
	ContainerRepository = "ContainerRepository"
	// ContainerTag is a tag of such a repository.
	ContainerTag = "ContainerTag"
	// ContainerImage is a manifest of such a repository.
	ContainerImage = "ContainerImage"
	// Milestone is a milestone of a project or group.
	Milestone = "Milestone"
	// Epic is an epic of a group.
	Epic = "Epic"
	// Reaction is an emoji reaction to an item, such as an issue.
	Reaction = "Reaction"
	// Note is a note on an item, such as an issue.
	Note = "Note"
	// DraftNote is a note on a merge request that its author has not published yet.
	DraftNote = "DraftNote"
	// Issue is an issue of a project.
	Issue = "Issue"
	// MergeRequest is a merge request of a project.
	MergeRequest = "MergeRequest"
	// ApprovalRule is an approval rule of a merge request.
	ApprovalRule = "ApprovalRule"
	// Pipeline is a pipeline of a project.
	Pipeline = "Pipeline"
	// Job is a job of a pipeline.
	Job = "Job"
	// Artifacts are the artifacts of a job, or of all jobs of a project.
	Artifacts = "Artifacts"
	// Schedule is a schedule that creates pipelines.
	Schedule = "PipelineSchedule"
	// Runner is the kind of runners.
	Runner = "Runner"
)

// Did adds a write outside the cluster, such as of a tag of an image. The id is 0 for objects without an id.
func (r *Record) Did(verb, kind, name string, id int64) {
	r.with(func(e *Event) {
		if len(e.Objects) < maxGathered {
			e.Objects = append(e.Objects, Object{Verb: verb, Kind: kind, Name: clip(name, maxPath), ID: id})
		}
	})
}

// Result sets the result and its reason, if the status does not determine them.
func (r *Record) Result(result Result, reason string) {
	r.with(func(e *Event) { e.Result, e.Reason = result, reason })
}

// Otherwise is Result, unless the result is set.
func (r *Record) Otherwise(result Result, reason string) {
	r.with(func(e *Event) {
		if e.Result == "" {
			e.Result, e.Reason = result, reason
		}
	})
}

// Updates adds the requested updates of refs, which all have the same result. reasons has the reasons of a refusal, by ref.
func (r *Record) Updates(updates []update.Ref, result Result, reasons map[string]string) {
	r.with(func(e *Event) {
		for _, u := range updates {
			ref := Ref{Ref: u, Result: result, Reason: reasons[u.Name]}
			if len(reasons) > 0 && ref.Reason == "" {
				ref.Reason = "another update of this write was refused"
			}
			e.Add(ref)
		}
	})
}

// RefFailed marks the update of a ref as failed, with a reason.
func (r *Record) RefFailed(name, reason string) {
	r.with(func(e *Event) {
		e.Result = Failed
		if i := slices.IndexFunc(e.Refs, func(ref Ref) bool { return ref.Name == name }); i >= 0 {
			e.Refs[i].Result, e.Refs[i].Reason = Failed, reason
		} else if e.Rest != nil {
			e.Rest.Done--
		}
	})
}

// Again discards the result of a refused attempt, because the request is served again. Completed writes remain recorded.
func (r *Record) Again() {
	r.with(func(e *Event) {
		e.Result, e.Reason = "", ""
		e.Objects = slices.DeleteFunc(e.Objects, func(o Object) bool { return o.Failed })
		if e.Refs = slices.DeleteFunc(e.Refs, func(ref Ref) bool { return ref.Result != Done }); len(e.Refs) == 0 {
			e.Rest = nil
		}
	})
}

// Skip discards the event, because the request writes nothing.
func (r *Record) Skip() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skipped = true
}

// At describes the requests of a door.
type At struct {
	Door Door
	// Address returns the address of the sender of a request.
	Address func(*http.Request) string
	// Writes reports whether a request can be a write. The default depends on the method.
	Writes func(*http.Request) bool
	// Reads selects the reads whose refusals Record.Restrict can explain. If it is nil, reads have no record.
	Reads func(*http.Request) bool
}

// Handler calls next, and records each write after it has ended, even if it failed or panicked. Reads have no cost, unless At.Reads selects
// them: then a refusal because of Record.Restrict is recorded.
func (l *Log) Handler(at At, next http.Handler) http.Handler {
	if l == nil {
		return next
	}
	writes := at.Writes
	if writes == nil {
		writes = changes
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		read := !writes(r)
		if read && (at.Reads == nil || !at.Reads(r)) {
			next.ServeHTTP(w, r)
			return
		}
		record := &Record{read: read, event: Event{Door: at.Door, Action: clip(r.Method, maxName) + " (no such endpoint)", Address: at.Address(r)}}
		if peer, _, ok := strings.Cut(r.RemoteAddr, "]"); ok {
			record.event.Peer = strings.TrimPrefix(peer, "[")
		} else {
			record.event.Peer, _, _ = strings.Cut(r.RemoteAddr, ":")
		}
		answer := &answer{ResponseWriter: w}
		r = r.WithContext(context.WithValue(r.Context(), recordKey{}, record))
		returned := false
		defer func() {
			if e, write := record.end(answer, returned && r.Context().Err() == nil); write {
				l.Write(e)
			}
		}()
		next.ServeHTTP(responsewriter.WrapForHTTP1Or2(answer), r)
		returned = true
	})
}

func changes(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return false
	default:
		return true
	}
}

// end returns the event of a request after its complete or partial response.
func (r *Record) end(a *answer, whole bool) (Event, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.event
	e.Time, e.Status, e.Interrupted = time.Now(), a.status, !whole
	if e.Peer == e.Address {
		e.Peer = ""
	}
	for _, name := range []string{"X-Request-Id", "Audit-Id"} {
		if e.Request == "" {
			e.Request = a.Header().Get(name)
		}
	}
	if r.restriction.refuses(a.status) {
		r.restriction.explain(&e)
	}
	if e.Result == "" {
		e.Result = resultOf(a.status)
	}
	return e, !r.skipped && (!r.read || e.Result == Refused && e.Reason != "")
}

func resultOf(status int) Result {
	switch {
	case status >= 500 || status == 0:
		return Failed
	case status >= 400:
		return Refused
	default:
		return Done
	}
}

// answer records the status of the response.
type answer struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter. It ignores provisional statuses.
func (a *answer) WriteHeader(status int) {
	if a.status < http.StatusOK {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	if a.status < http.StatusOK {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
