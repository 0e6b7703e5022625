package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// source reads one file of Go code.
type source struct {
	positions *token.FileSet
	comments  area
	test      bool
	// inner are literals that are part of a longer text that was already read.
	inner    map[ast.Expr]bool
	passages []*passage
}

// readGo reads comments, messages and the names of tests.
func readGo(file string, text []byte) ([]*passage, error) {
	test := strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "test/conformance/") || strings.HasPrefix(file, "test/e2e/")
	s := source{positions: token.NewFileSet(), comments: comments, test: test, inner: map[ast.Expr]bool{}}
	if strings.HasPrefix(file, "api/") && !s.test {
		s.comments = descriptions
	}
	parsed, err := parser.ParseFile(s.positions, file, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(parsed) {
		return nil, nil
	}
	for _, group := range parsed.Comments {
		s.group(group)
	}
	ast.Inspect(parsed, s.visit)
	return s.passages, nil
}

func (s *source) line(p token.Pos) int { return s.positions.Position(p).Line }

// markerMessage matches the message in a marker of controller-gen.
var markerMessage = regexp.MustCompile(`message="((?:[^"\\]|\\.)*)"`)

// group reads a comment: its paragraphs and list items, and the messages in its markers, without code.
func (s *source) group(group *ast.CommentGroup) {
	var found []*passage
	current := &passage{area: s.comments}
	end := func() {
		found = append(found, current)
		current = &passage{area: s.comments}
	}
	for _, comment := range group.List {
		for i, line := range strings.Split(comment.Text, "\n") {
			at := s.line(comment.Pos()) + i
			body, isLine := strings.CutPrefix(line, "//")
			body = strings.TrimSuffix(strings.TrimPrefix(body, "/*"), "*/")
			trimmed := strings.TrimSpace(body)
			switch {
			case strings.HasPrefix(trimmed, "+"):
				end()
				for _, m := range markerMessage.FindAllStringSubmatch(trimmed, -1) {
					current.add(at, m[1])
					end()
				}
			case trimmed == "", isLine && body[0] != ' ', strings.HasPrefix(body, "    "), strings.HasPrefix(body, " \t"):
				end()
			case listItem.MatchString(body):
				end()
				current.add(at, listItem.ReplaceAllString(body, ""))
			default:
				current.add(at, body)
			}
		}
	}
	end()
	s.passages = append(s.passages, finish(found, codeSpans, quotes, addresses, identifiers)...)
}

// visit reads the strings and the names of tests of a node.
func (s *source) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec:
		return false
	case *ast.Field:
		s.tag(n.Tag)
	case *ast.FuncDecl:
		if s.test {
			s.function(n.Name)
		}
	case *ast.CallExpr:
		if s.test {
			s.spec(n)
		}
	case *ast.BinaryExpr:
		s.message(n)
	case *ast.BasicLit:
		s.message(n)
	}
	return true
}

// message reads a text in code that is not a test.
func (s *source) message(e ast.Expr) {
	if s.test || s.inner[e] {
		return
	}
	p := &passage{area: messages}
	if s.join(p, e) {
		s.passages = append(s.passages, finish([]*passage{p}, verbs, codeSpans, quotes, addresses, identifiers)...)
	}
}

// join adds a string, or a sum of strings, to a passage. It reports whether there is a string in it.
func (s *source) join(p *passage, e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return false
		}
		s.inner[e.X], s.inner[e.Y] = true, true
		left := s.join(p, e.X)
		right := s.join(p, e.Y)
		return left || right
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		if e.Kind != token.STRING || err != nil {
			return false
		}
		for i, line := range strings.Split(text, "\n") {
			p.add(s.line(e.Pos())+i, line)
		}
		return true
	default:
		p.add(s.line(e.Pos()), "_")
		return false
	}
}

// tagValue matches a value of a struct tag.
var tagValue = regexp.MustCompile(`\w+:"((?:[^"\\]|\\.)*)"`)

// tag reads the values of a struct tag, such as the descriptions of parameters.
func (s *source) tag(tag *ast.BasicLit) {
	if tag == nil {
		return
	}
	s.inner[tag] = true
	if s.test {
		return
	}
	var found []*passage
	for _, m := range tagValue.FindAllStringSubmatch(tag.Value, -1) {
		p := &passage{area: messages}
		p.add(s.line(tag.Pos()), m[1])
		found = append(found, p)
	}
	s.passages = append(s.passages, finish(found, codeSpans, addresses, identifiers)...)
}

// testName matches the name of a function of package testing.
var testName = regexp.MustCompile(`^(?:Test|Benchmark|Fuzz)(.+)$`)

// words splits an identifier into its words: "ANewID_isKept" is "A New ID is Kept".
func words(identifier string) string {
	var out strings.Builder
	for i, r := range identifier {
		upper := unicode.IsUpper(r)
		before := i > 0 && unicode.IsUpper(rune(identifier[i-1]))
		after := i+1 < len(identifier) && unicode.IsLower(rune(identifier[i+1]))
		if r == '_' || upper && (!before || after) {
			out.WriteByte(' ')
		}
		if r != '_' {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// function reads the name of a test as a sentence.
func (s *source) function(name *ast.Ident) {
	m := testName.FindStringSubmatch(name.Name)
	if m == nil {
		return
	}
	p := &passage{area: testNames, test: name.Name}
	p.add(s.line(name.Pos()), words(m[1]))
	s.passages = append(s.passages, p)
}

// spec reads the sentence of a Ginkgo spec or a subtest.
func (s *source) spec(call *ast.CallExpr) {
	name := ""
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = strings.TrimLeft(f.Name, "FPX")
	case *ast.SelectorExpr:
		if f.Sel.Name == "Run" && len(call.Args) == 2 {
			name = "Run"
		}
	}
	switch name {
	case "It", "Describe", "DescribeTable", "Context", "When", "Entry", "Specify", "Run":
	default:
		return
	}
	p := &passage{area: testNames}
	if len(call.Args) > 0 && s.join(p, call.Args[0]) {
		s.passages = append(s.passages, finish([]*passage{p}, codeSpans, quotes, addresses, identifiers)...)
	}
}
