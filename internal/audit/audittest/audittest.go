// Package audittest has an audit log that tests can read.
package audittest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr/testr"

	"github.com/forgeplane/forgeplane/internal/audit"
)

// Lines is a log that a test can read.
type Lines struct {
	*audit.Log
	t    testing.TB
	path string
}

// Open returns a log in a new file. The test closes it at its end.
func Open(t testing.TB) *Lines {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.log")
	o := audit.Options{Path: path}
	if tt, ok := t.(*testing.T); ok {
		o.Log = testr.New(tt)
	}
	l, err := audit.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return &Lines{Log: l, t: t, path: path}
}

// Text closes the log and returns its whole content.
func (l *Lines) Text() []byte {
	l.t.Helper()
	if err := l.Close(); err != nil {
		l.t.Fatal(err)
	}
	text, err := os.ReadFile(l.path)
	if err != nil {
		l.t.Fatal(err)
	}
	return text
}

// Events closes the log and returns its lines, each of which must be JSON.
func (l *Lines) Events() []audit.Event {
	l.t.Helper()
	return Parse(l.t, l.Text())
}

// Parse reads lines, each of which must be JSON.
func Parse(t testing.TB, text []byte) []audit.Event {
	t.Helper()
	var all []audit.Event
	for line := range bytes.Lines(text) {
		var e audit.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, e)
	}
	return all
}
