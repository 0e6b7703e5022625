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
	found := 0
	eachCallOfTests(t, func(at token.Position, call *ast.CallExpr) {
		switch {
		case nameOf(call) == "WithTimeout" && begins(call) == "Eventually":
			if !isPatience(call.Args[0]) {
				t.Errorf("%s: wait for patience.Wait, or for the default", at)
			}
		case nameOf(call) == "Eventually" && len(call.Args) > 1:
			found++
			if _, isText := call.Args[1].(*ast.BasicLit); isText {
				t.Errorf("%s: leave out the time, and set the interval by WithPolling", at)
			}
		case nameOf(call) == "Eventually":
			found++
		}
	})
	NewWithT(t).Expect(found).To(BeNumerically(">", 100), "the waits that were found")
}

// How long something takes depends on what else the machine does, and a seed of the clock makes each run another one.
func TestTests_dependOnNeitherSpeedNorClock(t *testing.T) {
	eachCallOfTests(t, func(at token.Position, call *ast.CallExpr) {
		if boundsTime(call) {
			t.Errorf("%s: report the time, and let make bench compare it with a floor", at)
		}
		if nameOf(call) == "UnixNano" {
			t.Errorf("%s: take the seed from test/seed", at)
		}
	})
}

// eachCallOfTests calls visit for each call in the code of tests.
func eachCallOfTests(t *testing.T, visit func(at token.Position, call *ast.CallExpr)) {
	t.Helper()
	for _, path := range goFiles(t, "") {
		if !isTest(path) {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		ast.Inspect(file, func(n ast.Node) bool {
			if call, is := n.(*ast.CallExpr); is {
				visit(set.Position(call.Pos()), call)
			}
			return true
		})
	}
}

// boundsTime reports whether a call is like Expect(time.Since(begun)).To(BeNumerically("<", limit)).
func boundsTime(call *ast.CallExpr) bool {
	assertion, is := call.Fun.(*ast.SelectorExpr)
	if !is || assertion.Sel.Name != "To" || len(call.Args) == 0 {
		return false
	}
	expect, isCall := assertion.X.(*ast.CallExpr)
	matcher, hasMatcher := call.Args[0].(*ast.CallExpr)
	if !isCall || !hasMatcher || nameOf(expect) != "Expect" || len(expect.Args) == 0 || nameOf(matcher) != "BeNumerically" {
		return false
	}
	actual, isCall := expect.Args[0].(*ast.CallExpr)
	comparator, isText := matcher.Args[0].(*ast.BasicLit)
	return isCall && nameOf(actual) == "Since" && isText && strings.HasPrefix(comparator.Value, `"<`)
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
