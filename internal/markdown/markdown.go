// Package markdown turns what people write into HTML that is safe to show.
package markdown

import (
	"fmt"
	stdhtml "html"
	"strings"
	"time"

	"github.com/microcosm-cc/bluemonday" // keeps up with changes in which HTML is safe
	"github.com/yuin/goldmark"           // CommonMark and its usual extensions
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
)

var (
	// converter lets HTML through, since policy judges all of it.
	converter = goldmark.New(goldmark.WithExtensions(extension.GFM, watch{}), goldmark.WithRendererOptions(html.WithUnsafe()))
	policy    = bluemonday.UGCPolicy()
)

// Render renders a text of any number of paragraphs. The result holds no scripts, styles or forms, and links of it lead to the
// schemes http, https and mailto only. It returns ErrExpensive for a text that exceeds a limit of time or length.
func Render(from string) (rendered string, err error) {
	g := &guard{until: time.Now().Add(maxTime)}
	defer func() {
		if reason := recover(); reason == any(g) {
			rendered, err = "", ErrExpensive
		} else if reason != nil {
			panic(reason)
		}
	}()
	pc := parser.NewContext()
	pc.Set(guards, g)
	if err := converter.Convert([]byte(from), g, parser.WithContext(pc)); err != nil {
		return "", fmt.Errorf("rendering: %w", err) // a guard never fails, so this is a bug of the library
	}
	return policy.SanitizeReader(&g.rendered).String(), nil
}

// HTML is Render for a text that is shown in any case: one that cannot be rendered is shown as it is.
func HTML(text string) string {
	rendered, err := Render(text)
	if err != nil {
		return stdhtml.EscapeString(text)
	}
	return rendered
}

// Line renders a text that is shown within a line: one that is a single paragraph has none around it.
func Line(text string) string {
	rendered := strings.TrimSpace(HTML(text))
	inner, begins := strings.CutPrefix(rendered, "<p>")
	inner, ends := strings.CutSuffix(inner, "</p>")
	if !begins || !ends || strings.Contains(inner, "<p>") {
		return rendered
	}
	return inner
}
