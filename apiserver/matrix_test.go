package apiserver

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/endpoint/endpointtest"
)

var update = flag.Bool("update", false, "write testdata/authorization.txt anew, for a person to read what has changed")

// TestEveryEndpointAnswersEveryKindOfCallerAsTheTableSays holds the answers of the whole REST API against
// testdata/authorization.txt.
func TestEveryEndpointAnswersEveryKindOfCallerAsTheTableSays(t *testing.T) {
	is := measure(t)
	path := filepath.Join("testdata", "authorization.txt")
	if *update {
		if err := os.WriteFile(path, []byte(is.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := parseTable(t, string(text))
	for _, r := range is.rows {
		codes, ok := want[r.key()]
		if !ok {
			t.Errorf("%s: %s has no row", path, r.key())
			continue
		}
		delete(want, r.key())
		if len(codes) != len(is.callers) {
			t.Errorf("%s: %s has %d columns, and there are %d callers", path, r.key(), len(codes), len(is.callers))
			continue
		}
		for i, c := range is.callers {
			if got := strconv.Itoa(r.codes[i]); got != codes[i] {
				t.Errorf("%s: %s gets %s, and the table says %s", r.key(), c, got, codes[i])
			}
		}
	}
	for key := range want {
		t.Errorf("%s: there is nothing like %s", path, key)
	}
}

// table is what everybody is answered.
type table struct {
	callers []caller
	rows    []row
}

// anonymous is the index of the caller without a token.
const anonymous = 0

// row is the answers of one endpoint, where the project and its groups have one visibility.
type row struct {
	sample     string
	visibility string
	codes      []int
}

func (r row) key() string { return r.sample + " " + r.visibility }

// measure asks for every cell.
func measure(t *testing.T) *table {
	t.Helper()
	m := &table{callers: callers()}
	visibilities := []v1alpha1.Visibility{v1alpha1.VisibilityPrivate, v1alpha1.VisibilityInternal, v1alpha1.VisibilityPublic}
	var asked []*asker
	for _, v := range visibilities {
		asked = append(asked, newAsker(t, v))
	}
	for _, s := range samples(asked[0].world.handler) {
		served := false
		for i, a := range asked {
			r := row{sample: s.String(), visibility: strings.ToLower(string(visibilities[i]))}
			if s.subject() == "instance" {
				r.visibility = "any"
			}
			for _, c := range m.callers {
				r.codes = append(r.codes, a.ask(s, c))
			}
			if changed := a.world.store.changes(); len(changed) > 0 {
				t.Fatalf("%s: what is in the cache was changed in place: %v", s, changed)
			}
			if !slices.ContainsFunc(r.codes, func(code int) bool { return code < 300 }) {
				t.Errorf("%s: nobody succeeds: give it what it needs in requests_test.go", s)
			}
			m.rows = append(m.rows, r)
			served = served || r.codes[anonymous] < 300
			if r.visibility == "any" {
				break
			}
		}
		if served != (s.endpoint.ForAnonymous() == endpoint.Served) {
			t.Errorf("%s: it is published as one that serves callers without a token, or not, and does the opposite", s)
		}
	}
	for e := range asked[0].world.handler.Endpoints() {
		own := slices.ContainsFunc(variants[e.String()], func(s sample) bool { return s.own != nil })
		if rule, _ := e.Rule(); rule != "" && !own {
			t.Errorf("%s: it has the rule %s: ask for something of the caller's own in requests_test.go", e, rule)
		}
	}
	return m
}

// asker asks what stands as it was in the beginning.
type asker struct {
	t        *testing.T
	world    *world
	contract *endpointtest.Contract
}

func newAsker(t *testing.T, v v1alpha1.Visibility) *asker {
	t.Helper()
	w := newWorld(t, v)
	return &asker{t: t, world: w, contract: endpointtest.Of(t, w.handler)}
}

// ask returns the status of the answer, having looked at the rest of it.
func (a *asker) ask(s sample, c caller) int {
	target := s.target(c.user(s.subject()))
	answer := a.send(s, c, target, s.body)
	switch code := answer.Code; {
	case code < 300 && !changes(s.endpoint):
	case code < 300:
		a.world.reset()
	case a.world.writes() > 0:
		a.t.Errorf("%s for %s: %d, and yet something was written", s, c, code)
		a.world.reset()
	default:
		a.judge(s, c, answer)
	}
	return answer.Code
}

func (a *asker) send(s sample, c caller, target, body string) *httptest.ResponseRecorder {
	answer := a.world.send(c, s.subject(), s.endpoint.Method(), target, body)
	path, _, _ := strings.Cut(target, "?")
	if err := a.contract.Check(s.endpoint.Method(), path, answer.Code, answer.Header(), answer.Body.Bytes()); err != nil {
		a.t.Errorf("%s for %s: %v", s, c, err)
	}
	return answer
}

// judge looks at what a refusal says: it is of the form that clients know (API behaviour, section 1.2), and what is hidden
// is not told from what does not exist.
func (a *asker) judge(s sample, c caller, answer *httptest.ResponseRecorder) {
	var said struct {
		Error   string `json:"error"`
		Message any    `json:"message"`
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &said); err != nil {
		a.t.Errorf("%s for %s: %v", s, c, err)
		return
	}
	message := fmt.Sprint(said.Message)
	switch {
	case answer.Code == http.StatusUnauthorized && said.Error == "invalid_token":
	case answer.Code == http.StatusForbidden && c.group == byScope && said.Error == "insufficient_scope":
	case !strings.HasPrefix(message, strconv.Itoa(answer.Code)):
		a.t.Errorf("%s for %s: a refusal is not of the usual form: %d %s", s, c, answer.Code, answer.Body)
	}
	if answer.Code != http.StatusNotFound || s.subject() == "instance" || s.own != nil {
		return
	}
	missing, body := strconv.Itoa(9999), s.body
	for _, id := range []int{projectID, groupID} {
		body = strings.ReplaceAll(body, fmt.Sprintf(`_id":%d}`, id), fmt.Sprintf(`_id":%s}`, missing))
	}
	segments := strings.Split(s.target(c.user(s.subject())), "/")
	if len(segments) > 2 {
		segments[2] = missing
	}
	other := a.send(s, c, strings.Join(segments, "/"), body)
	if other.Code != answer.Code || other.Body.String() != answer.Body.String() {
		a.t.Errorf("%s for %s: %d %s, but what does not exist is %d %s",
			s, c, answer.Code, answer.Body, other.Code, other.Body)
	}
}

const preamble = `# Who gets what: the status that each endpoint of the REST API answers to each kind of caller, with a request that is
# otherwise good. Rows below an endpoint are visibilities of the project or group that it is about, and of all above it.
# "go test ./apiserver -run TestEveryEndpoint -update" writes it anew: read then what has changed.
#
# A direct member is one of the project where it is about a project, and of the group where it is about a group; for what is
# about neither, of the project. A Kubernetes identity has been let through by RBAC: it is without a User, that of a direct
# Maintainer, or of an administrator of the cluster without a User. With sudo an administrator acts as a direct Reporter.
`

// String is the table as a person reads it.
func (m *table) String() string {
	var b strings.Builder
	b.WriteString(preamble + m.groups())
	for half := range 2 {
		b.WriteString(m.line("#", func(i int) string {
			name, more, _ := strings.Cut(m.callers[i].name, "/")
			return []string{name, more}[half]
		}))
	}
	last := ""
	for _, r := range m.rows {
		if r.sample != last {
			b.WriteString("\n" + r.sample + "\n")
			last = r.sample
		}
		b.WriteString(m.line("  "+r.visibility, func(i int) string { return strconv.Itoa(r.codes[i]) }))
	}
	return b.String()
}

// line is a cell for each caller, with borders between their groups.
func (m *table) line(first string, cell func(i int) string) string {
	text := fmt.Sprintf("%-11s", first)
	for i, c := range m.callers {
		if i == 0 || c.group != m.callers[i-1].group {
			text += "| "
		}
		text += fmt.Sprintf("%-5s", cell(i))
	}
	return strings.TrimRight(text, " ") + "\n"
}

// groups is the line above the names of the callers.
func (m *table) groups() string {
	text := fmt.Sprintf("%-11s", "#")
	for i := 0; i < len(m.callers); {
		from := i
		for i < len(m.callers) && m.callers[i].group == m.callers[from].group {
			i++
		}
		text += fmt.Sprintf("| %-*s", 5*(i-from), m.callers[from].group)
	}
	return strings.TrimRight(text, " ") + "\n"
}

// parseTable reads the codes by endpoint and visibility.
func parseTable(t *testing.T, text string) map[string][]string {
	t.Helper()
	rows, sample := map[string][]string{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !strings.HasPrefix(line, " ") {
			sample = line
			continue
		}
		cells := strings.Fields(strings.ReplaceAll(line, "|", " "))
		key := sample + " " + cells[0]
		if _, ok := rows[key]; ok {
			t.Errorf("the table has two rows for %s", key)
		}
		rows[key] = cells[1:]
	}
	return rows
}
