package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/forgeplane/forgeplane/internal/git/update"
)

func TestEvent_isOneLineDespiteHostileTexts(t *testing.T) {
	for _, hostile := range []string{
		"a\nb", "a\r\n{\"door\":\"rest\"}", "\x1b[2J\x1b]0;title\x07", "\x00", "\u009b31m", "a\u2028b\u2029c", "\u202egnp.exe", "\u2066x\u2069",
		"\xff\xfe", "\ufeff", "\u200b", "\u061c", `","result":"done`, "\x7f", "</script>", "\u0085",
	} {
		lines := Event{Door: Git, Action: hostile, Target: hostile, Refs: []Ref{{Ref: update.Ref{Name: hostile}}}, User: &User{Username: hostile}}.lines()
		if len(lines) != 1 {
			t.Fatalf("%q: %d lines", hostile, len(lines))
		}
		text := string(lines[0])
		inner, ended := strings.CutSuffix(text, "\n")
		if !ended || strings.ContainsFunc(inner, func(r rune) bool {
			return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r)
		}) {
			t.Errorf("%q: %q", hostile, text)
		}
		var e Event
		if err := json.Unmarshal(lines[0], &e); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if want := strings.ToValidUTF8(hostile, "\ufffd"); e.Result != "" || e.Target != want && strings.ReplaceAll(e.Target, "\ufffd", "") != strings.ReplaceAll(want, "\ufffd", "") {
			t.Errorf("%q became %q", hostile, e.Target)
		}
	}
}

func TestEvent_limitsLengthOfLines(t *testing.T) {
	long := strings.Repeat("\x01é", 50_000)
	r := &Record{}
	for range 60 {
		r.Updates([]update.Ref{{Name: long, Old: strings.Repeat("0", 64), New: strings.Repeat("0", 64)}}, "", map[string]string{long: long})
	}
	r.Result(Failed, long)
	r.Action(long, long)
	r.Identity(long)
	e := r.event
	e.Request, e.Address, e.Peer, e.User = long, long, long, &User{Username: clip(long, maxName)}
	lines := e.lines()
	if len(lines) != 3 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, line := range lines {
		if len(line) > maxLine {
			t.Errorf("a line has %d bytes", len(line))
		}
	}
}

func TestEvent_splitsManyRefsIntoParts(t *testing.T) {
	r := &Record{event: Event{Request: "one"}}
	for i := range maxListed*2 + 1 {
		r.Updates([]update.Ref{{Name: fmt.Sprint("refs/heads/", i)}}, Done, nil)
	}
	seen := map[string]bool{}
	for i, e := range parsed(t, r.event) {
		if e.Part != i+1 || e.Request != "one" || e.Rest != nil {
			t.Errorf("%+v", e)
		}
		for _, ref := range e.Refs {
			seen[ref.Name] = true
		}
	}
	if len(seen) != maxListed*2+1 {
		t.Errorf("%d refs", len(seen))
	}
}

// parsed returns the lines of an event, parsed again.
func parsed(t *testing.T, e Event) []Event {
	t.Helper()
	var all []Event
	for _, line := range e.lines() {
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// The client of a push decides how many refs it updates and, up to a limit, how long their names are.
func TestEvent_summarizesVeryManyRefs(t *testing.T) {
	const many = 10_000
	refs, digest := make([]Ref, many), sha256.New()
	for i := range refs {
		refs[i] = Ref{
			Ref:    update.Ref{Name: fmt.Sprintf("refs/heads/%0*d", 600, i), Old: strings.Repeat("0", 40), New: strings.Repeat("1", 40)},
			Reason: strings.Repeat("x", 500),
		}
		fmt.Fprintln(digest, refs[i].Old, refs[i].New, refs[i].Name)
	}
	for result, want := range map[Result]struct{ named, bytes int }{Done: {100, 128 << 10}, Failed: {100, 128 << 10}, Refused: {25, 32 << 10}} {
		for i := range refs {
			refs[i].Result = result
		}
		gathered := &Record{event: Event{Result: result}}
		gathered.event.Add(refs[:50]...)
		gathered.event.Add(refs[50:]...)
		for way, e := range map[string]Event{"gathered": gathered.event, "at once": {Result: result, Refs: refs}} {
			bytes, named := 0, 0
			for _, line := range e.lines() {
				bytes += len(line)
			}
			for _, e := range parsed(t, e) {
				named += len(e.Refs)
				rest := Rest{Refs: many - want.named, SHA256: hex.EncodeToString(digest.Sum(nil))}
				if result == Done {
					rest.Done = rest.Refs
				}
				if e.Rest == nil || *e.Rest != rest {
					t.Errorf("%s, %s: the rest is %+v, want %+v", result, way, e.Rest, rest)
				}
			}
			if named != want.named || bytes > want.bytes {
				t.Errorf("%s, %s: %d refs are named in %d bytes, want %d in %d", result, way, named, bytes, want.named, want.bytes)
			}
		}
	}
}

func TestRecord_countsFailuresOfUnlistedRefs(t *testing.T) {
	r := &Record{}
	for i := range maxRefs + 3 {
		r.Updates([]update.Ref{{Name: fmt.Sprint(i)}}, Done, nil)
	}
	r.RefFailed("1", "somebody else was faster")
	r.RefFailed(fmt.Sprint(maxRefs+1), "somebody else was faster")
	all := parsed(t, r.event)
	if e := all[0]; e.Result != Failed || e.Refs[0].Result != Done || e.Refs[1].Result != Failed || e.Rest.Refs != 3 || e.Rest.Done != 2 {
		t.Errorf("got %+v, %+v", e, e.Rest)
	}
}

func TestClip_cutsBetweenCharacters(t *testing.T) {
	for text, want := range map[string]string{"short": "short", "exactly10!": "exactly10!", "eleven char": "eleven …", "ääääää": "äää…"} {
		if got := clip(text, 10); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
