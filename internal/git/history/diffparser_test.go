package history

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
	"testing"
)

const record = ":100644 100644 0123 4567 M\x00%s\x00"

// diffOf returns git's output for changed files, each with a number of lines.
func diffOf(lines map[string]int, names ...string) string {
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, record, n)
	}
	b.WriteString("\x00")
	for _, n := range names {
		fmt.Fprintf(&b, "diff --git a/%[1]s b/%[1]s\nindex 0123..4567 100644\n--- a/%[1]s\n+++ b/%[1]s\n@@ -1 +1 @@\n%[2]s", n, strings.Repeat("+line\n", lines[n]))
	}
	return b.String()
}

func parsed(text string, limits diffLimits) ([]Change, error) {
	p := &diffParser{in: bufio.NewReaderSize(strings.NewReader(text), 64), limits: limits}
	err := p.parse()
	return p.changes, err
}

func TestDiffParser_keepsItsLimits(t *testing.T) {
	text := diffOf(map[string]int{"a": 1, "b": 20, "c": 2}, "a", "b", "c")
	wide := diffLimits{changes: 100, paths: 100, files: 100, text: 1 << 20, lines: 1000, bytes: 1 << 20}
	for name, tt := range map[string]struct {
		change func(*diffLimits)
		// texts are the lengths of the texts of a, b and c, or -1 for a text that is too large; unlisted files have none.
		texts []int
		err   error
	}{
		"none":    {func(*diffLimits) {}, []int{18, 132, 24}, nil},
		"text":    {func(l *diffLimits) { l.text = 100 }, []int{18, -1, 24}, nil},
		"lines":   {func(l *diffLimits) { l.lines = 10 }, []int{18, -1, -1}, errOverflow},
		"bytes":   {func(l *diffLimits) { l.bytes = 155 }, []int{18, 132, -1}, errOverflow},
		"files":   {func(l *diffLimits) { l.files = 1 }, []int{18, -1, -1}, errOverflow},
		"changes": {func(l *diffLimits) { l.changes = 2 }, []int{18, 132}, errOverflow},
		"paths":   {func(l *diffLimits) { l.paths = 5 }, []int{18, 132}, errOverflow},
	} {
		t.Run(name, func(t *testing.T) {
			limits := wide
			tt.change(&limits)
			changes, err := parsed(text, limits)
			if !errors.Is(err, tt.err) {
				t.Errorf("the error is %v", err)
			}
			var got []int
			for _, c := range changes {
				size := len(c.Text)
				if c.TooLarge {
					size = -1 - size
				}
				got = append(got, size)
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.texts) {
				t.Errorf("the texts have %v, want %v", got, tt.texts)
			}
		})
	}
}

func TestDiffParser_refusesDamagedInput(t *testing.T) {
	for _, text := range []string{
		"x", "x\x00", ":100644 100644 0123 4567 M\x00", ":100644 100644 0123 4567 R100\x00a\x00", ":100644 100644 0123\x00a\x00",
		fmt.Sprintf(record, "a"), fmt.Sprintf(record, "a") + "\x00", fmt.Sprintf(record, "a") + "\x00text\n", "\x00diff --git a/a b/a\n",
		diffOf(nil, "a") + "diff --git a/b b/b\n", fmt.Sprintf(record, strings.Repeat("x", 2*maxPath)),
	} {
		if changes, err := parsed(text, diffBounds); !errors.Is(err, errDiff) && !errors.Is(err, errOverflow) {
			t.Errorf("%.100q: %v, %v", text, changes, err)
		}
	}
}

func FuzzParseDiff(f *testing.F) {
	f.Add(diffOf(map[string]int{"a": 1, "b": 20}, "a", "b"), 10, 100)
	f.Add(":100644 120000 0123 4567 T\x00a\x00\x00diff --git a/a b/a\nBinary files a and b\ndiff --git a/a b/a\n@@ -1 +1 @@\n\\ No newline", 3, 3)
	f.Add(":100644 100644 0123 4567 R100\x00a\x00b\x00\x00diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\n", 3, 3)
	f.Fuzz(func(t *testing.T, text string, lines, bytes int) {
		limits := diffLimits{changes: 5, paths: 100, files: 3, text: 20, lines: lines, bytes: bytes}
		changes, err := parsed(text, limits)
		var kept, listed int
		for _, c := range changes {
			kept += len(c.Text)
			listed++
			if c.OldPath == "" || c.NewPath == "" || c.OldMode == "" && c.NewMode == "" {
				t.Errorf("%+v is not whole (%v)", c, err)
			}
			if c.TooLarge && c.Text != "" || len(c.Text) > limits.text || !strings.Contains(text, c.Text) {
				t.Errorf("%+v has a text that it should not have", c)
			}
		}
		if listed > limits.changes || kept > max(bytes, 0) {
			t.Errorf("%d changes with %d bytes are kept", listed, kept)
		}
	})
}
