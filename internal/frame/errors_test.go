package frame_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/frame"
)

func TestSanitise(t *testing.T) {
	long := strings.Repeat("a", 999)
	tests := map[string]struct{ text, want string }{
		"leaves text alone":               {"fetching https://example.org/a.git: 404", "fetching https://example.org/a.git: 404"},
		"leaves email addresses alone":    {"mail ada@example.org", "mail ada@example.org"},
		"leaves an @ in a path alone":     {"https://example.org/a@v1", "https://example.org/a@v1"},
		"cuts a user and password":        {"at https://ada:secret@example.org/a.git", "at https://example.org/a.git"},
		"cuts a token":                    {"https://fpat-123@example.org", "https://example.org"},
		"cuts a password with an @ in it": {"https://ada:se@cr@et@example.org/a", "https://example.org/a"},
		"cuts an empty user":              {"https://@example.org", "https://example.org"},
		"cuts in every URL":               {"http://a:b@c ssh+git://d:e@f", "http://c ssh+git://f"},
		"cuts in a quoted URL":            {`fatal: unable to access 'https://a:b@c/': no`, `fatal: unable to access 'https://c/': no`},
		"hides what a temporary file is called": {
			"write /mnt/a/.projects/c1/.new-173606543: no space left on device", "write /mnt/a/.projects/c1/.new-*: no space left on device",
		},
		"hides each temporary file": {
			"open /a/b.git.new/.new-17/git/HEAD: no; removing /a/b.git.trash/.new-4: no", "open /a/b.git.new/.new-*/git/HEAD: no; removing /a/b.git.trash/.new-*: no",
		},
		"hides the quarantine of a push": {
			"unable to write ./objects/tmp_objdir-incoming-aXf3k2/pack/tmp_pack_Qz81aB", "unable to write ./objects/tmp_objdir-incoming-*/pack/tmp_pack_*",
		},
		"hides a new object of Git":      {"unable to create temporary file objects/3f/tmp_obj_a1B2c3", "unable to create temporary file objects/3f/tmp_obj_*"},
		"keeps names that people choose": {"kubectl label secret known-hosts-github; project web.new-shop", "kubectl label secret known-hosts-github; project web.new-shop"},
		"hides the process that repacks": {"objects/pack/.tmp-4711-pack-3f: no space left", "objects/pack/.tmp-*-pack-3f: no space left"},
		"hides a new file of the registry": {
			"open /srv/registry/link.1b4e28ba-2fa1-41d2-883f-b9a761bde3fb.tmp: no space left", "open /srv/registry/link.*: no space left",
		},
		"leaves other files alone":         {"/mnt/a/new-123 and tmp_file_123", "/mnt/a/new-123 and tmp_file_123"},
		"keeps text of the maximum length": {long + "b", long + "b"},
		"shortens longer text":             {long + "bc", long + "b…"},
		"does not split a character":       {long + "äb", long + "…"},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			g := NewWithT(t)
			got := frame.Sanitise(tt.text)
			g.Expect(got).To(Equal(tt.want))
			g.Expect(utf8.ValidString(got)).To(BeTrue())
			g.Expect(len(got)).To(BeNumerically("<=", 1024), "the limit of an event")
		})
	}
}

func TestIsWaiting(t *testing.T) {
	tests := map[string]struct {
		err  error
		want bool
	}{
		"nothing":            {nil, false},
		"any error":          {errors.New("no"), false},
		"waiting":            {frame.Waiting("Reason", "why"), true},
		"waiting for a time": {frame.WaitingFor(time.Second, "Reason", "why"), true},
		"wrapped":            {fmt.Errorf("in a wrapper: %w", frame.Waiting("Reason", "why")), true},
		"progressing":        {frame.Progressing(0, "Reason", "why"), true},
		"settled":            {frame.Settled("Reason", "why"), false},
		"stalled":            {frame.Stalled("Reason", "why"), false},
		"failed":             {frame.Failed("Reason", "why"), false},
		"again":              {frame.RequeueAfter(time.Second), false},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			NewWithT(t).Expect(frame.IsWaiting(tt.err)).To(Equal(tt.want))
		})
	}
}

func TestOutcomes_keepTheirCause(t *testing.T) {
	g := NewWithT(t)
	cause := errors.New("the cause")
	for _, err := range []error{
		frame.Stalled("Reason", "a: %w", cause), frame.Waiting("Reason", "a: %w", cause),
		frame.WaitingFor(time.Second, "Reason", "a: %w", cause), frame.Failed("Reason", "a: %w", cause),
	} {
		g.Expect(err).To(MatchError(cause))
		g.Expect(err).To(MatchError("a: the cause"))
	}
}
