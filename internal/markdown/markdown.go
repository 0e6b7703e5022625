// Package markdown turns what people write into HTML that is safe to show.
package markdown

import (
	"bytes"
	stdhtml "html"
	"strings"

	"github.com/microcosm-cc/bluemonday" // what is safe in HTML changes, and this library keeps up with it
	"github.com/yuin/goldmark"           // CommonMark and its usual extensions
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
)

var (
	// parser lets HTML through, since policy judges all of it.
	parser = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))
	policy = bluemonday.UGCPolicy()
)

// HTML renders a text of any number of paragraphs. The result holds no scripts, styles or forms, and links of it lead to the
// schemes http, https and mailto only.
func HTML(text string) string {
	var b bytes.Buffer
	if err := parser.Convert([]byte(text), &b); err != nil {
		// A buffer never fails, so this is a bug of the library, and the rendered text cannot be used.
		return stdhtml.EscapeString(text)
	}
	return policy.Sanitize(b.String())
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
