package markdown

import (
	"bytes"
	"errors"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// The limits of one text. Short texts can have rendered forms of any length, and take any time: each row of a table has the cells of its head,
// each link to a definition repeats its URL, and what is nested or left open is read again and again.
const (
	maxTime        = 2 * time.Second
	maxRendered    = 4 << 20 // bytes
	maxCells       = 50_000  // of tables
	maxDefinitions = 10_000  // of links
)

// ErrExpensive says that a text takes too long to render, or that the result would be too long.
var ErrExpensive = errors.New("takes too long to render: send a shorter text, or less nested, with smaller tables, and with fewer links and brackets")

// guard ends the rendering of one text that exceeds a limit. The library calls it from within, and cannot be told to stop, so it panics with
// itself. It also takes part in parsing, without finding anything, so that it is called often.
type guard struct {
	until       time.Time
	calls       int
	cells       int
	definitions int
	rendered    bytes.Buffer
}

// guards is the key of the guard in the context of the parser.
var guards = parser.NewContextKey()

func (g *guard) refuseIf(exceeded bool) {
	if exceeded {
		panic(g)
	}
}

// check is called very often, so it looks at the time only now and then.
func (g *guard) check() {
	g.calls++
	g.refuseIf(g.calls%16 == 0 && time.Now().After(g.until))
}

// Write implements io.Writer.
func (g *guard) Write(p []byte) (int, error) {
	g.refuseIf(g.rendered.Len()+len(p) > maxRendered || time.Now().After(g.until))
	return g.rendered.Write(p)
}

// watch makes the parser call the guard of its context.
type watch struct{}

// Extend implements goldmark.Extender.
func (watch) Extend(m goldmark.Markdown) {
	m.Parser().AddOptions(
		parser.WithBlockParsers(util.Prioritized(watchBlocks{}, 0)),
		parser.WithInlineParsers(util.Prioritized(watchInline{}, 0)),
		parser.WithParagraphTransformers(util.Prioritized(watchParagraphs{}, 0)))
}

func of(pc parser.Context) *guard { return pc.Get(guards).(*guard) }

// watchBlocks is called at each mark of a quotation or list.
type watchBlocks struct{}

func (watchBlocks) Trigger() []byte { return []byte(">-+*0123456789") }

func (watchBlocks) Open(_ ast.Node, _ text.Reader, pc parser.Context) (ast.Node, parser.State) {
	of(pc).check()
	return nil, parser.NoChildren
}

func (watchBlocks) Continue(ast.Node, text.Reader, parser.Context) parser.State { return parser.Close }
func (watchBlocks) Close(ast.Node, text.Reader, parser.Context)                 {}
func (watchBlocks) CanInterruptParagraph() bool                                 { return true }
func (watchBlocks) CanAcceptIndentedLine() bool                                 { return true }

// watchInline is called at each character that can begin or end something within a line.
type watchInline struct{}

func (watchInline) Trigger() []byte { return []byte(" ![]<*_~`") }

func (watchInline) Parse(_ ast.Node, _ text.Reader, pc parser.Context) ast.Node {
	of(pc).check()
	return nil
}

// watchParagraphs counts what others make of a paragraph at once: a table, or definitions of links.
type watchParagraphs struct{}

func (watchParagraphs) Transform(p *ast.Paragraph, r text.Reader, pc parser.Context) {
	g, lines := of(pc), p.Lines()
	for i := range lines.Len() {
		segment := lines.At(i)
		line := bytes.TrimLeft(segment.Value(r.Source()), " \t")
		if bytes.HasPrefix(line, []byte("[")) && bytes.Contains(line, []byte("]:")) {
			g.definitions++
		}
		if i > 0 && len(bytes.Trim(line, "|-: \t\r\n")) == 0 {
			g.cells += (bytes.Count(line, []byte("|")) + 1) * (lines.Len() - i)
		}
	}
	g.refuseIf(g.cells > maxCells || g.definitions > maxDefinitions)
	g.check()
}
