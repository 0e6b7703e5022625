package conventions_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/frame"
)

// An error with the name of a temporary file would change a condition at each attempt.
func TestTemporaryFiles_haveNamesThatConditionsHide(t *testing.T) {
	g := NewWithT(t)
	found := 0
	for _, directory := range []string{"api", "apiserver", "cmd", "controllers", "internal"} {
		for _, path := range goFiles(t, directory) {
			if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "test/") { // a package such as gittest
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			g.Expect(err).NotTo(HaveOccurred())
			for _, name := range temporaryNames(file) {
				found++
				const random = "173606543"
				prefix, suffix, _ := strings.Cut(name, "*")
				g.Expect(frame.Sanitise(filepath.Join("/srv", prefix+random+suffix, "git"))).NotTo(ContainSubstring(random),
					"%s makes %q: give it a prefix that frame.Sanitise knows, or add it there", path, name)
			}
		}
	}
	g.Expect(found).To(BeNumerically(">=", 7), "the calls that were found")
}

func TestTemporaryNames_ofCalls(t *testing.T) {
	g := NewWithT(t)
	file, err := parser.ParseFile(token.NewFileSet(), "", `package p
const prefix = ".new-"
func f() {
	os.CreateTemp(a, ".probe-*")
	os.CreateTemp(filepath.Join(a, b), prefix)
	os.MkdirTemp(a, suffix+"*")
	os.Create(a)
}`, parser.SkipObjectResolution)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(temporaryNames(file)).To(Equal([]string{".probe-*", ".new-", ""}), "a name that is not known is hidden by nothing")
}

// temporaryNames returns the names that a file gives to temporary files: texts, or constants of the same file. Other names are empty.
func temporaryNames(file *ast.File) (names []string) {
	constants := map[string]ast.Expr{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			for i, value := range spec.Values {
				constants[spec.Names[i].Name] = value
			}
		}
		return true
	})
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 || !makesTemporary(call.Fun) {
			return true
		}
		name := call.Args[1]
		if constant, ok := name.(*ast.Ident); ok {
			name = constants[constant.Name]
		}
		text := ""
		if literal, ok := name.(*ast.BasicLit); ok {
			text, _ = strconv.Unquote(literal.Value)
		}
		names = append(names, text)
		return true
	})
	return names
}

func makesTemporary(function ast.Expr) bool {
	selector, ok := function.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != "CreateTemp" && selector.Sel.Name != "MkdirTemp" {
		return false
	}
	of, ok := selector.X.(*ast.Ident)
	return ok && of.Name == "os"
}
