package conventions_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// A shorter wait makes a test fail on a slow machine, and costs nothing on a fast one.
func TestWaits_areLongEnoughForTheSlowestMachine(t *testing.T) {
	g := NewWithT(t)
	found := 0
	for _, path := range goFiles(t, "") {
		if !isTest(path) {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		g.Expect(err).NotTo(HaveOccurred())
		ast.Inspect(file, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is {
				return true
			}
			switch {
			case nameOf(call) == "WithTimeout" && begins(call) == "Eventually":
				if !isPatience(call.Args[0]) {
					t.Errorf("%s: wait for patience.Wait, or for the default", set.Position(call.Pos()))
				}
			case nameOf(call) == "Eventually" && len(call.Args) > 1:
				found++
				if _, isText := call.Args[1].(*ast.BasicLit); isText {
					t.Errorf("%s: leave out the time, and set the interval by WithPolling", set.Position(call.Pos()))
				}
			case nameOf(call) == "Eventually":
				found++
			}
			return true
		})
	}
	g.Expect(found).To(BeNumerically(">", 100), "the waits that were found")
}

func isTest(path string) bool {
	return strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "../../test/")
}

// nameOf returns the name of the function or method that is called, without its package or receiver.
func nameOf(call *ast.CallExpr) string {
	switch called := call.Fun.(type) {
	case *ast.Ident:
		return called.Name
	case *ast.SelectorExpr:
		if of, is := called.X.(*ast.Ident); !is || of.Name != "gittest" { // which has a function of the same name
			return called.Sel.Name
		}
	}
	return ""
}

// begins returns the name of the function with which a chain of calls begins.
func begins(call *ast.CallExpr) string {
	for {
		method, is := call.Fun.(*ast.SelectorExpr)
		if !is {
			return nameOf(call)
		}
		receiver, is := method.X.(*ast.CallExpr)
		if !is {
			return nameOf(call)
		}
		call = receiver
	}
}

func isPatience(argument ast.Expr) bool {
	selector, is := argument.(*ast.SelectorExpr)
	if !is {
		return false
	}
	of, is := selector.X.(*ast.Ident)
	return is && of.Name == "patience" && selector.Sel.Name == "Wait"
}
