package endpoint

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

// encoded returns the number of bytes that are sent for a value.
func encoded(t testing.TB, value any) int {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		t.Fatal(err)
	}
	return b.Len()
}

// pieces are the parts of the test's texts: characters of each length in UTF-8, each kind of escape, and invalid UTF-8.
var pieces = []string{
	"a", "Zz09 ~", `"`, `\`, "\n", "\r", "\t", "\b", "\f", "\x00", "\x1f", "\x7f", "<&>", "ü", "語", "\u2028", "\u2029", "\ufffd", "😀",
	"\xff", "\xe2\x80", "\xf0\x9f",
}

func TestSizes_matchTextsInJSON(t *testing.T) {
	var s sizes
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		var text strings.Builder
		some := pieces[:1+random.IntN(len(pieces))]
		for range random.IntN(60) {
			text.WriteString(some[random.IntN(len(some))])
		}
		got, want := s.sizer(reflect.TypeFor[string]()).of(reflect.ValueOf(text.String())), int64(encoded(t, text.String()))
		// The estimate assumes the worst for "\b" and "\f", and for U+FFFD, which have two possible lengths.
		most := want + plain + 4*int64(strings.Count(text.String(), "\b")+strings.Count(text.String(), "\f")+strings.Count(text.String(), "\ufffd"))
		if got < want-3 || got > most {
			t.Fatalf("%q has %d bytes, and %d were counted", text.String(), want, got)
		}
	}
}

func TestSizes_areAtLeastTheSentSize(t *testing.T) {
	type author struct {
		Name  string     `json:"name"`
		Since *time.Time `json:"since,omitempty"`
	}
	type commit struct {
		author
		ID      string            `json:"id"`
		Lines   []int             `json:"lines"`
		Parents []string          `json:"parents"`
		Authors map[string]author `json:"authors"`
		Content []byte            `json:"content"`
		Raw     json.RawMessage   `json:"raw"`
		More    any               `json:"more"`
		Inner   *commit           `json:"inner"`
		Hidden  string            `json:"-"`
	}
	now := time.Date(2026, 6, 15, 12, 0, 0, 123456789, time.FixedZone("", 7200))
	var s sizes
	for _, size := range []int{0, 1, 100, 100_000} {
		long := strings.Repeat("a\n語", size)
		value := commit{
			author{"Ada\x00", &now}, long, make([]int, size), []string{long, ""}, map[string]author{long: {Name: long}}, []byte(long),
			json.RawMessage(`{"a": [1, 2]}`), []any{long, 1.5, true, nil, now}, &commit{ID: long, Raw: json.RawMessage("null")}, long,
		}
		got, want := s.of(&value), int64(encoded(t, &value))
		if got < want || want > 1<<20 && got > 3*want {
			t.Errorf("%d: %d bytes are sent, and %d were counted", size, want, got)
		}
	}
}

func BenchmarkSizes(b *testing.B) {
	var s sizes
	text := strings.Repeat("\tif err != nil {\n\t\treturn fmt.Errorf(\"reading: %w\", err)\n\t}\n", 10_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s.of(text)
	}
}
