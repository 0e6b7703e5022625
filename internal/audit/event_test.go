package audit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"
)

func TestEvent_isOneLineWhateverItsTextsAre(t *testing.T) {
	for _, hostile := range []string{
		"a\nb", "a\r\n{\"door\":\"rest\"}", "\x1b[2J\x1b]0;title\x07", "\x00", "\u009b31m", "a\u2028b\u2029c", "\u202egnp.exe", "\u2066x\u2069",
		"\xff\xfe", "\ufeff", "\u200b", "\u061c", `","result":"done`, "\x7f", "</script>", "\u0085",
	} {
		lines := Event{Door: Git, Action: hostile, Target: hostile, Refs: []Ref{{Name: hostile}}, User: &User{Username: hostile}}.lines()
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

func TestEvent_isBounded(t *testing.T) {
	long := strings.Repeat("\x01é", 50_000)
	r := &Record{}
	for range 60 {
		r.Refs(Ref{Name: long, Reason: long, Old: strings.Repeat("0", 64), New: strings.Repeat("0", 64)})
	}
	r.Result(Refused, long)
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

func TestEvent_ofManyRefsNamesAllOfThem(t *testing.T) {
	r := &Record{event: Event{Request: "one"}}
	for i := range maxListed*2 + 1 {
		r.Refs(Ref{Name: fmt.Sprint("refs/heads/", i), Result: Done})
	}
	seen := map[string]bool{}
	for i, line := range r.event.lines() {
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if e.Part != i+1 || e.Request != "one" {
			t.Errorf("%s", line)
		}
		for _, ref := range e.Refs {
			seen[ref.Name] = true
		}
	}
	if len(seen) != maxListed*2+1 {
		t.Errorf("%d refs", len(seen))
	}
}

func TestClip_cutsBetweenCharacters(t *testing.T) {
	for text, want := range map[string]string{"short": "short", "exactly10!": "exactly10!", "eleven char": "eleven …", "ääääää": "äää…"} {
		if got := clip(text, 10); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
