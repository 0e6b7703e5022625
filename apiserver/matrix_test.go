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
	"sync"
	"testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/endpoint/endpointtest"
)

var update = flag.Bool("update", false, "write testdata/authorization.txt again; check every changed row")

// TestEndpoint_answersEachCallerAsTableSays compares the answers of all endpoints with testdata/authorization.txt. It tests all authorization
// over REST. Families only test behavior that the table cannot express.
func TestEndpoint_answersEachCallerAsTableSays(t *testing.T) {
	if !*update {
		t.Parallel() // the test of the ClusterRoles reads what an update writes
	}
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
		t.Errorf("%s: %s is not a request of requests_test.go", path, key)
	}
}

// table holds the answers to all callers.
type table struct {
	callers []caller
	rows    []row
}

// anonymous is the index of the caller without a token.
const anonymous = 0

// row holds the answers to one sample, if the project and its groups have the visibility.
type row struct {
	sample     string
	visibility string
	codes      []int
}

func (r row) key() string { return r.sample + " " + r.visibility }

// measure sends the request of every cell. The worlds of the visibilities are asked at the same time.
func measure(t *testing.T) *table {
	t.Helper()
	m := &table{callers: callers()}
	visibilities := []v1alpha1.Visibility{v1alpha1.VisibilityPrivate, v1alpha1.VisibilityInternal, v1alpha1.VisibilityPublic}
	var asked []*asker
	for _, v := range visibilities {
		asked = append(asked, newAsker(t, v))
	}
	all := samples(asked[0].world.handler)
	rows := make([][]row, len(all))
	for n, s := range all {
		rows[n] = make([]row, len(visibilities))
		if s.subject() == "instance" {
			rows[n] = make([]row, 1)
		}
	}
	var work sync.WaitGroup
	for i, a := range asked {
		work.Go(func() {
			for n, s := range all {
				if i < len(rows[n]) {
					rows[n][i] = a.row(s, m.callers, visibilities[i])
				}
			}
		})
	}
	work.Wait()
	served := map[string]bool{}
	for n, s := range all {
		m.rows = append(m.rows, rows[n]...)
		for _, r := range rows[n] {
			if r.codes == nil {
				t.FailNow() // the world of the row has failed
			}
			served[s.endpoint.String()] = served[s.endpoint.String()] || r.codes[anonymous] < 300
		}
	}
	for e := range asked[0].world.handler.Endpoints() {
		own := slices.ContainsFunc(variants[e.String()], func(s sample) bool { return s.own != nil })
		if rule, _ := e.Rule(); rule != "" && !own {
			t.Errorf("%s: has the rule %s: add a sample that names an object of the caller in requests_test.go", e, rule)
		}
		published := e.ForAnonymous() == endpoint.Served || !e.TakesCredential(endpoint.AccessToken) && !idle[e.String()]
		if served[e.String()] != published {
			t.Errorf("%s: serves callers without a token: %t; the table of the family says %t", e, served[e.String()], published)
		}
	}
	return m
}

// asker sends requests to a world, which it resets after each write.
type asker struct {
	t        *testing.T
	world    *world
	contract *endpointtest.Contract
}

func newAsker(t *testing.T, v v1alpha1.Visibility) *asker {
	t.Helper()
	w := newWorld(t, v)
	return &asker{t: t, world: w, contract: contractOf(t, w.handler)}
}

// contracts are the contracts that were read, by their documents. All worlds serve the same document, and reading it takes seconds.
var contracts struct {
	sync.Mutex
	of map[string]*endpointtest.Contract
}

// contractOf returns the contract of a handler.
func contractOf(t *testing.T, h *endpoint.Handler) *endpointtest.Contract {
	t.Helper()
	contracts.Lock()
	defer contracts.Unlock()
	text := string(h.OpenAPI())
	if contracts.of[text] == nil {
		contracts.of = map[string]*endpointtest.Contract{text: endpointtest.Of(t, h)}
	}
	return contracts.of[text]
}

// row sends the request of a sample for all callers.
func (a *asker) row(s sample, callers []caller, v v1alpha1.Visibility) row {
	r := row{sample: s.String(), visibility: strings.ToLower(string(v))}
	if s.subject() == "instance" {
		r.visibility = "any"
	}
	for _, c := range callers {
		r.codes = append(r.codes, a.ask(s, c))
	}
	if changed := a.world.store.changes(); len(changed) > 0 {
		a.t.Fatalf("%s: changed objects of the cache in place: %v", s, changed)
	}
	if succeeds := slices.ContainsFunc(r.codes, func(code int) bool { return code < 300 }); succeeds == s.refused {
		a.t.Errorf("%s: succeeds for a caller: %t; correct its sample in requests_test.go", s, succeeds)
	}
	return r
}

// ask returns the status of the answer, and checks the rest of it.
func (a *asker) ask(s sample, c caller) int {
	answer := a.send(s, c)
	switch code := answer.Code; {
	case code < 300 && !changes(s.endpoint):
	case code < 300:
		a.world.reset()
	case a.world.writes() > 0:
		a.t.Errorf("%s for %s: got %d, and something was written", s, c, code)
		a.world.reset()
	case code == http.StatusNotModified: // it has no body
	default:
		a.judge(s, c, answer)
	}
	return answer.Code
}

func (a *asker) send(s sample, c caller) *httptest.ResponseRecorder {
	user := c.user(s.subject())
	target := s.target(user)
	answer := a.world.send(c, s.subject(), s.endpoint.Method(), target, s.text(user))
	path, _, _ := strings.Cut(target, "?")
	if err := a.contract.Check(s.endpoint.Method(), path, answer.Code, answer.Header(), answer.Body.Bytes()); err != nil {
		a.t.Errorf("%s for %s: %v", s, c, err)
	}
	return answer
}

// judge checks a refusal: it has one of the forms that clients expect, and does not reveal whether a hidden object exists.
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
		a.t.Errorf("%s for %s: the refusal does not have the usual form: %d %s", s, c, answer.Code, answer.Body)
	}
	if answer.Code != http.StatusNotFound || s.subject() == "instance" || s.own != nil {
		return
	}
	other := a.send(s.absent(), c)
	if other.Code != answer.Code || other.Body.String() != answer.Body.String() {
		a.t.Errorf("%s for %s: %d %s, but an object that does not exist gets %d %s",
			s, c, answer.Code, answer.Body, other.Code, other.Body)
	}
}

const preamble = `# The status with which each endpoint of the REST API answers each kind of caller. The requests are valid; apiserver/requests_test.go has them.
# The rows below an endpoint are visibilities of its project or group, and of all groups above.
# "go test ./apiserver -run TestEndpoint_answers -update" writes this table. Check every changed row.
#
# Direct members have their role in the group if the request is about a group, and otherwise in the project. RBAC admits the Kubernetes
# identities: one has no User, one is the User of a direct Maintainer, and one is an administrator of the cluster without a User. With sudo,
# an administrator acts as a direct Reporter. "via share" is a Maintainer of a group that the project and its group are shared with as
# Developers. The external user and the auditor have no role. One bot is a Maintainer of the project or group, and the other one is an Owner
# of another project in the same group.
`

// String returns the table in the format of testdata/authorization.txt.
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

// line returns a line with a cell for each caller, and borders between groups of callers.
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

// groups returns the line above the names of the callers.
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

// parseTable returns the codes by sample and visibility.
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
