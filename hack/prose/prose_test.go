package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestRules_findTheirExamples(t *testing.T) {
	for _, r := range rules {
		for _, wrong := range r.wrong {
			found := check(message(wrong))
			if len(found) == 0 || found[0].instead != r.instead {
				t.Errorf("%q must find %q: %v", r.pattern, wrong, found)
			}
		}
		for _, right := range r.right {
			if found := check(message(right)); len(found) > 0 {
				t.Errorf("%q must pass, and %q is found", right, found[0].phrase)
			}
		}
	}
}

func TestRules_haveExamples(t *testing.T) {
	for _, r := range rules {
		if len(r.wrong) == 0 || len(r.right) == 0 || r.instead == "" {
			t.Errorf("%q needs an example that is wrong, one that is right, and what to write instead", r.pattern)
		}
	}
}

func message(text string) *passage {
	p := &passage{area: messages}
	p.add(1, text)
	return p
}

func TestCheck_reportsThePhraseAndItsLine(t *testing.T) {
	g := NewWithT(t)
	p := &passage{area: docs}
	p.add(3, "A path is")
	p.add(4, "  not to   end in a slash.")
	found := check(p)
	g.Expect(found).To(HaveLen(1))
	g.Expect(found[0].line).To(Equal(3))
	g.Expect(found[0].phrase).To(Equal("is not to end"))
	g.Expect(found[0].area).To(Equal(docs))
}

func TestCheck_countsOverlappingPhrasesOnce(t *testing.T) {
	g := NewWithT(t)
	found := check(message("The color is to be had."))
	g.Expect(found).To(HaveLen(1))
	g.Expect(found[0].phrase).To(Equal("to be had"))
}

func TestSentences_endAtAFullStopBeforeACapital(t *testing.T) {
	var texts []string
	for _, s := range message("It ends (soon). The next one, e.g. this, ends at 1.5 s! Now?").sentences() {
		texts = append(texts, s.text)
	}
	NewWithT(t).Expect(texts).To(Equal([]string{"It ends (soon).", "The next one, e.g. this, ends at 1.5 s!", "Now?"}))
}

// found returns the phrases in a file, with their lines and areas.
func found(t *testing.T, file, text string) []finding {
	t.Helper()
	passages, err := reader(file)(file, []byte(text))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var all []finding
	for _, p := range passages {
		for _, f := range check(p) {
			all = append(all, finding{area: f.area, line: f.line, phrase: f.phrase})
		}
	}
	return all
}

func TestMarkdown(t *testing.T) {
	NewWithT(t).Expect(found(t, "docs/a.md", "# What it is\n\n"+
		"A name that\nis none, `is none` and\n\"is none\".\n\n"+
		"```sh\n# is none\n```\n\n"+
		"| what | made `|` anew |\n|---|---|\n| [x](anew.md) | y |\n\n"+
		"- First\n- What\n  follows.\n")).To(Equal([]finding{
		{area: docs, line: 4, phrase: "is none"},
		{area: docs, line: 11, phrase: "anew"},
		{area: docs, line: 16, phrase: "What follows."},
	}))
}

const program = `package p

import _ "is/none"

// Read is none.
//
//	code is none
//
// - What is here.
//
//nolint:none // is none
func Read() {
	const is = "a " + "name " + x +
		"is none"
	_ = fmt.Sprintf("%s is none, %q is to be one", "anew")
}

type Parameters struct {
	Name string ` + "`json:\"name\" doc:\"A name that is to be unique.\"`" + `
}
`

func TestGo_readsCommentsAndMessages(t *testing.T) {
	NewWithT(t).Expect(found(t, "internal/p/p.go", program)).To(ConsistOf(
		finding{area: comments, line: 5, phrase: "is none"},
		finding{area: comments, line: 9, phrase: "What is here."},
		finding{area: messages, line: 14, phrase: "is none"},
		finding{area: messages, line: 15, phrase: "is none"},
		finding{area: messages, line: 15, phrase: "is to be"},
		finding{area: messages, line: 15, phrase: "anew"},
		finding{area: messages, line: 19, phrase: "is to be"},
	))
}

func TestGo_readsMarkersOfTheAPI(t *testing.T) {
	NewWithT(t).Expect(found(t, "api/v1/p.go", "package v1\n\n// Name is none.\n"+
		"// +kubebuilder:validation:XValidation:rule=\"is none\",message=\"name is not to end\"\ntype Name string\n")).To(ConsistOf(
		finding{area: descriptions, line: 3, phrase: "is none"},
		finding{area: descriptions, line: 4, phrase: "is not to end"},
	))
}

func TestGo_readsNamesOfTests(t *testing.T) {
	NewWithT(t).Expect(found(t, "p_test.go", "package p\n\nfunc TestARawFileIsNoPage(t *testing.T) {\n"+
		"\tt.Run(\"is none\", nil)\n\tIt(\"is to be one\")\n\tExpect(\"is none\")\n}\n\nfunc helperIsNone() {}\n")).To(ConsistOf(
		finding{area: testNames, line: 3, phrase: "TestARawFileIsNoPage"},
		finding{area: testNames, line: 3, phrase: "Is No Page"},
		finding{area: testNames, line: 4, phrase: "is none"},
		finding{area: testNames, line: 5, phrase: "is to be"},
	))
}

func TestGo_readsSubjectAndConditionOfTests(t *testing.T) {
	for name, right := range map[string]bool{
		"TestParse":                true,
		"TestParseRemoteURL":       true,
		"TestURL_keepsItsUserName": true,
		"TestURLKeepsItsUserName":  false,
		"BenchmarkListOfAllRefs":   false,
	} {
		names := found(t, "p_test.go", "package p\n\nfunc "+name+"(t *testing.T) {}\n")
		if len(names) == 0 != right {
			t.Errorf("%s: %v", name, names)
		}
	}
}

func TestWords(t *testing.T) {
	g := NewWithT(t)
	g.Expect(strings.Fields(words("ANewID_isKept"))).To(Equal([]string{"A", "New", "ID", "is", "Kept"}))
}

func TestConfiguration(t *testing.T) {
	g := NewWithT(t)
	g.Expect(found(t, "config/a.yaml", "# A name\n# is none.\nname: is none\n"+
		"spec: # made anew\n- message: is not to end\n  messageExpression: >-\n    'the name is ' +\n    'none'\n  name: is none\n")).To(ConsistOf(
		finding{area: configuration, line: 2, phrase: "is none"},
		finding{area: configuration, line: 4, phrase: "anew"},
		finding{area: configuration, line: 5, phrase: "is not to end"},
	))
	g.Expect(found(t, "charts/a.schema.json", "{\n\"title\": \"is none\",\n\"description\": \"A name that is none.\"}")).To(ConsistOf(
		finding{area: configuration, line: 3, phrase: "is none"},
	))
	g.Expect(found(t, "hack/a.sh", "#!/bin/sh\n# It is none.\nmessage=is none\n")).To(ConsistOf(finding{area: comments, line: 2, phrase: "is none"}))
}

func TestReader_skipsFilesWithoutProse(t *testing.T) {
	for _, file := range []string{"go.sum", "LICENSE", "config/crd/a.yaml", "a/testdata/a.md", "charts/forgeplane/files/a.yaml", "hack/prose/rules.go"} {
		if reader(file) != nil {
			t.Errorf("%s is read", file)
		}
	}
}

func TestRun_reportsOrCountsPhrases(t *testing.T) {
	replaceCeilings(t, nil)
	g := NewWithT(t)
	root := t.TempDir()
	g.Expect(exec.Command("git", "-C", root, "init", "--quiet").Run()).To(Succeed())
	write := func(file, text string) {
		g.Expect(os.WriteFile(filepath.Join(root, file), []byte(text), 0o600)).To(Succeed())
	}
	write("b.md", "It does not exist.\n")
	var out bytes.Buffer
	g.Expect(run(&out, root, nil, false)).To(BeFalse())
	g.Expect(out.String()).To(BeEmpty())

	write("a.go", "package a\n\n// It is none.\nvar a int\n")
	g.Expect(run(&out, root, nil, false)).To(BeTrue())
	g.Expect(out.String()).To(HavePrefix("a.go:3: \"is none\": "))
	g.Expect(run(&out, root, []string{"b.md"}, false)).To(BeFalse())

	out.Reset()
	g.Expect(run(&out, root, nil, true)).To(BeFalse())
	g.Expect(out.String()).To(MatchRegexp(`comments +1 +1 +1\n`))
	g.Expect(out.String()).To(MatchRegexp(`docs +0 +0 +1\n`))
}

func replaceCeilings(t *testing.T, with map[area]int) {
	t.Helper()
	was := ceilings
	t.Cleanup(func() { ceilings = was })
	ceilings = with
}

func TestTolerate_comparesGradualFindingsWithCeilings(t *testing.T) {
	replaceCeilings(t, map[area]int{docs: 1, comments: 1, messages: 4})
	gradual := func(a area, n int) (all []finding) {
		for range n {
			all = append(all, finding{area: a, gradual: true})
		}
		return all
	}
	for name, c := range map[string]struct {
		findings []finding
		left     int
		lower    bool
	}{
		"at the ceiling":     {append(gradual(docs, 1), gradual(messages, 3)...), 0, false},
		"above the ceiling":  {append(gradual(docs, 2), gradual(messages, 3)...), 2, false},
		"far below":          {gradual(messages, 2), 0, true},
		"of a rule for all":  {append(gradual(messages, 3), finding{area: docs}), 1, false},
		"of different areas": {slices.Concat(gradual(docs, 1), gradual(comments, 1), gradual(messages, 3)), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o := outcome{findings: c.findings}
			g.Expect(tolerate(&bytes.Buffer{}, &o)).To(Equal(c.lower))
			g.Expect(o.findings).To(HaveLen(c.left))
		})
	}
}
