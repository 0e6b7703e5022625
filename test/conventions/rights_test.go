package conventions_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

var update = flag.Bool("update", false, "write the tables of docs/rights.md anew")

// rightsTable returns the table of the permissions of an account and the code that needs each of them.
func rightsTable(needs map[string][]string) string {
	type row struct{ where, resource, name string }
	verbs, code := map[row][]string{}, map[row][]string{}
	for permission, packages := range needs {
		parts := strings.SplitN(strings.TrimPrefix(permission, "in "), " ", 5)
		r := row{where: parts[0], resource: strings.TrimSuffix(parts[2]+"."+parts[1], "."), name: parts[3]}
		verbs[r] = append(verbs[r], parts[4])
		code[r] = append(code[r], packages...)
	}
	var table strings.Builder
	table.WriteString("| where | resource | names | verbs | code |\n|---|---|---|---|---|\n")
	for _, r := range slices.SortedFunc(maps.Keys(verbs), func(a, b row) int {
		return strings.Compare(a.where+" "+a.resource+" "+a.name, b.where+" "+b.resource+" "+b.name)
	}) {
		where, name := "everywhere", "any"
		if r.where != "" {
			where = "`" + r.where + "`"
		}
		if r.name != "any" {
			name = "`" + r.name + "`"
		}
		fmt.Fprintf(&table, "| %s | `%s` | %s | %s | %s |\n", where, r.resource, name, list(verbs[r]), list(code[r]))
	}
	return table.String()
}

func list(all []string) string {
	all = slices.Clone(all)
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

func TestRights_areDocumentedWithTheCodeThatNeedsThem(t *testing.T) {
	g := NewWithT(t)
	const path = "../../docs/rights.md"
	text, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	page := string(text)
	allowed := granted(t)
	for _, account := range accounts {
		needs := needed(t)[account]
		g.Expect(slices.Sorted(maps.Keys(needs))).To(Equal(allowed[account]), "a rule without code that asks for it")
		heading := "## " + account + "\n\n"
		before, rest, found := strings.Cut(page, heading)
		g.Expect(found).To(BeTrue(), heading)
		start := strings.Index(rest, "| where |")
		g.Expect(start).To(BeNumerically(">=", 0), heading)
		end := strings.Index(rest[start:], "\n\n")
		is, after := rest[start:], ""
		if end >= 0 {
			is, after = rest[start:start+end+1], rest[start+end+1:]
		}
		want := rightsTable(needs)
		if *update {
			page = before + heading + rest[:start] + want + after
			continue
		}
		g.Expect(is).To(Equal(want), "go test ./test/conventions -update writes it")
	}
	if *update {
		g.Expect(os.WriteFile(path, []byte(page), 0o600)).To(Succeed())
	}
}
