// Package hook connects the pre-receive hook of a push with the server that runs the push, in both directions: the hook
// binary is the client, the Server answers. They talk over a unix socket.
//
// The server knows who pushes to which project, and does not tell the hook. The hook gets a token for one question, and passes on only what
// git tells it. If anything goes wrong between the two, the push is refused.
//
// The package needs only package update and the standard library, so that the hook binary is small and starts fast.
package hook

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/internal/git/update"
)

// The environment variables that receive-pack passes on to the hook: the path of the socket, and the token of the push.
const (
	SocketEnv = "FORGEPLANE_HOOK_SOCKET"
	TokenEnv  = "FORGEPLANE_HOOK_TOKEN"
)

// Limits of a push.
const (
	// MaxUpdates is the maximum number of refs in a push.
	MaxUpdates = 10_000
	maxLine    = 66_000   // more than git itself accepts
	maxBytes   = 16 << 20 // for all lines together
	maxText    = 64 << 10 // of the answer
)

// The times that each side allows the other. The hook is the most patient.
const (
	sendTimeout   = 30 * time.Second
	verifyTimeout = 5 * time.Minute
	answerTimeout = sendTimeout + verifyTimeout + 30*time.Second
)

// greeting is the first line of a question. It changes when the protocol does.
const greeting = "forgeplane-hook 1"

// Push is the input of the hook.
type Push struct {
	// Updates are all ref updates of the push that git has found no fault with.
	Updates []update.Ref
	// Quarantine is the directory that has the objects of the push, empty if it has none.
	Quarantine string
}

// Verdict is the answer to a Push.
type Verdict struct {
	// Accepted lets git make the updates. Otherwise it makes none of them.
	Accepted bool
	// Text is shown on the pusher's terminal. It can have several lines.
	Text string
}

// errMalformed is wrapped by the errors of readPush that no hook of this version causes.
var errMalformed = errors.New("the question of the hook is malformed")

// errTooLarge is returned by readPush for a push beyond the limits, after reading it to its end.
var errTooLarge = fmt.Errorf("a push may change at most %d refs", MaxUpdates)

// writePush writes a question: the greeting, the token, the quarantine, the lines that git writes, and an empty line.
func writePush(w io.Writer, token, quarantine string, updates io.Reader) error {
	for _, s := range []string{token, quarantine} {
		if strings.ContainsAny(s, "\n\x00") {
			return errMalformed
		}
	}
	if _, err := fmt.Fprintf(w, "%s\n%s\n%s\n", greeting, token, quarantine); err != nil {
		return err
	}
	if _, err := io.Copy(w, &lines{updates, '\n'}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// lines is a reader that fails at an empty line, which would end the question: git does not check ref names for line breaks before it calls
// the hook.
type lines struct {
	io.Reader
	last byte
}

func (l *lines) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	for _, b := range p[:n] {
		if b == '\n' && l.last == '\n' {
			return 0, errMalformed
		}
		l.last = b
	}
	return n, err
}

// readPush reads a question to its end.
func readPush(r io.Reader) (token string, push Push, err error) {
	in := bufio.NewReaderSize(io.LimitReader(r, 64*maxBytes), maxLine)
	line := func() (string, error) {
		b, err := in.ReadSlice('\n')
		if err != nil {
			return "", fmt.Errorf("%w: %w", errMalformed, err)
		}
		return string(bytes.TrimSuffix(b, []byte("\n"))), nil
	}
	if first, err := line(); err != nil {
		return "", Push{}, err
	} else if first != greeting {
		return "", Push{}, fmt.Errorf("%w: it begins with %.40q", errMalformed, first)
	}
	if token, err = line(); err != nil {
		return "", Push{}, err
	}
	if push.Quarantine, err = line(); err != nil {
		return "", Push{}, err
	}
	for total := 0; ; {
		text, err := line()
		if err != nil {
			return "", Push{}, err
		}
		switch total += len(text); {
		case text == "" && (total > maxBytes || len(push.Updates) > MaxUpdates):
			return token, Push{}, errTooLarge
		case text == "":
			return token, push, nil
		case total > maxBytes || len(push.Updates) > MaxUpdates:
			continue
		}
		u, err := parseUpdate(text)
		if err != nil {
			return "", Push{}, err
		}
		push.Updates = append(push.Updates, u)
	}
}

func parseUpdate(line string) (update.Ref, error) {
	before, rest, _ := strings.Cut(line, " ")
	after, ref, ok := strings.Cut(rest, " ")
	if !ok || ref == "" || strings.ContainsRune(ref, 0) || !isID(before) || !isID(after) || len(before) != len(after) {
		return update.Ref{}, fmt.Errorf("%w: the line %.200q", errMalformed, line)
	}
	return update.Ref{Name: ref, Old: before, New: after}, nil
}

func isID(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// writeVerdict writes an answer: a line that says what it is, and the text.
func writeVerdict(w io.Writer, v Verdict) error {
	text := v.Text
	if len(text) > maxText {
		text = text[:maxText]
	}
	_, err := fmt.Fprintf(w, "%s\n%s", word(v.Accepted), text)
	return err
}

func word(accepted bool) string {
	if accepted {
		return "accept"
	}
	return "refuse"
}

func readVerdict(r io.Reader) (Verdict, error) {
	answer, err := io.ReadAll(io.LimitReader(r, maxText+16))
	first, text, ok := strings.Cut(string(answer), "\n")
	if ok && (first == word(true) || first == word(false)) {
		return Verdict{Accepted: first == word(true), Text: text}, nil
	}
	if err == nil {
		err = errors.New("the answer is malformed")
	}
	return Verdict{}, err
}
