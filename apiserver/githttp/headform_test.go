package githttp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

// readHead reads a body as it is passed to git.
func readHead(r io.Reader) ([]byte, error) {
	keep := func(err error) error { return err }
	return io.ReadAll(bufio.NewReaderSize(&head{in: bufio.NewReader(r), failed: keep}, 64<<10))
}

// known matches the lines that git may receive before the first flush. Only the first update can have capabilities.
var known = regexp.MustCompile(`(?s)^(?:(shallow (?:[0-9a-f]{40}|[0-9a-f]{64}))|(?:[0-9a-f]{40} [0-9a-f]{40}|[0-9a-f]{64} [0-9a-f]{64}) [^\x00\n]+(\x00.*)?)\n?$`)

// FuzzHead reads arbitrary input as it is passed to git. git must receive only lines of a known form, and these exactly as they were sent.
func FuzzHead(f *testing.F) {
	const id = "1111111111111111111111111111111111111111"
	update, line := id+" "+id+" refs/heads/x", func(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }
	for _, seed := range []string{
		flush, line(update) + flush + "PACK", line("shallow "+id) + line(update) + flush, line(update+"\x00a b") + line(update) + flush + flush,
		line(update+"\n") + flush, line(update+"\x00a") + line(update+"\x00a") + flush, line(update+"\ny") + flush, line("push-cert") + flush,
		line("push-cert\x00a\n") + flush, line(update), line(update)[:60], "0004" + flush, line(update) + "0001", "fff1", "000x",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		got, err := readHead(bytes.NewReader(sent))
		if slowly, late := readHead(iotest.OneByteReader(bytes.NewReader(sent))); !bytes.Equal(got, slowly) || !errors.Is(late, err) {
			t.Fatalf("got %q, %v, and read slowly %q, %v", got, err, slowly, late)
		}
		if err != nil && !errors.As(err, new(refusal)) || !bytes.HasPrefix(sent, got) || err == nil && len(got) != len(sent) {
			t.Fatalf("got %q, %v", got, err)
		}
		updates := 0
		for rest := string(got); rest != ""; {
			size, wrong := strconv.ParseUint(rest[:4], 16, 16)
			if rest[:4] == flush {
				return
			}
			if wrong != nil || size < 5 || int(size) > len(rest) {
				t.Fatalf("git is given %q", rest)
			}
			line := known.FindStringSubmatch(rest[4:size])
			if line == nil {
				t.Fatalf("git is given the line %q", rest[4:size])
			}
			if line[1] == "" {
				updates++
			}
			if line[2] != "" && updates > 1 {
				t.Fatalf("git is given capabilities twice, in %q", rest)
			}
			rest = rest[size:]
		}
		if err == nil {
			t.Fatalf("git is given a head without an end: %q", got)
		}
	})
}

// endless repeats a text forever.
type endless struct{ text, rest string }

func (e *endless) Read(p []byte) (int, error) {
	if e.rest == "" {
		e.rest = e.text
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func TestHead_refusesEndlessInput(t *testing.T) {
	const id = "1111111111111111111111111111111111111111"
	got, err := readHead(&endless{text: packetLine(id + " " + id + " refs/heads/" + strings.Repeat("x", 60_000))})
	if !errors.Is(err, errLong) || len(got) > maxCommands {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}
