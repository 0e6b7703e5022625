package markdown

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/forgeplane/forgeplane/test/soak"
)

func TestLine(t *testing.T) {
	for text, want := range map[string]string{
		"": "", " \n": "",
		"Bug reported by user":        "Bug reported by user",
		"**must** be `fixed` ~~now~~": "<strong>must</strong> be <code>fixed</code> <del>now</del>",
		"1 < 2 & 3":                   "1 &lt; 2 &amp; 3",
		"[docs](https://a.example/)":  `<a href="https://a.example/" rel="nofollow">docs</a>`,
		"one\n\ntwo":                  "<p>one</p>\n<p>two</p>",
		"- a\n- b":                    "<ul>\n<li>a</li>\n<li>b</li>\n</ul>",
		"a <b>bold</b> word":          "a <b>bold</b> word",
	} {
		if got := Line(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestHTML_isSafe(t *testing.T) {
	for _, text := range []string{
		"<script>alert(1)</script>", "a <img src=x onerror=alert(1)> b", "[a](javascript:alert(1))", "<a href=\"JaVaScRiPt:alert(1)\">a</a>",
		"[a](data:text/html;base64,PHNjcmlwdD4=)", "<iframe src=\"https://a.example\"></iframe>", "<style>*{display:none}</style>", "<form action=\"//a\"><input></form>",
		"<svg/onload=alert(1)>", "<p style=\"background:url(javascript:alert(1))\">a</p>", "![a](javascript:alert(1))", "<object data=\"x\"></object>",
		"<a href=\"vbscript:x\">a</a>", "`<script>alert(1)</script>`", "<scr<script>ipt>alert(1)</script>", "<meta http-equiv=refresh content=0>",
		"a\x00<script\x00>alert(1)</script>", "[x]: javascript:alert(1)\n\n[x]", "<https://a.example/\"onmouseover=alert(1)>",
	} {
		if wrong := dangers(HTML(text)); len(wrong) > 0 {
			t.Errorf("%q: %q has %q", text, HTML(text), wrong)
		}
	}
}

// dangers returns the elements, attributes and links of HTML, as a browser reads it, that must not occur.
func dangers(text string) []string {
	var found []string
	for z := html.NewTokenizer(strings.NewReader(text)); z.Next() != html.ErrorToken; {
		token := z.Token()
		if token.Type == html.TextToken {
			continue
		}
		if slices.Contains([]string{"script", "style", "iframe", "object", "embed", "form", "input", "svg", "math", "meta", "link", "base"}, token.Data) {
			found = append(found, token.Data)
		}
		for _, a := range token.Attr {
			u, err := url.Parse(a.Val)
			link := a.Key == "href" || a.Key == "src"
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") || link && (err != nil || !slices.Contains([]string{"", "http", "https", "mailto"}, u.Scheme)) {
				found = append(found, a.Key+"="+a.Val)
			}
		}
	}
	return found
}

func TestRender_refusesExpensiveTexts(t *testing.T) {
	const size = 512 << 10 // bytes: the maximum
	repeat := func(s string, n int) string { return strings.Repeat(s, n/len(s)) }
	for name, text := range map[string]string{
		"a table with short rows":           repeat("a|", size/4) + "\n" + repeat("-|", size/4) + "\n" + repeat("x\n", size/2),
		"links that repeat a URL":           "[a]: /" + repeat("x", size/2) + "\n\n" + repeat("[a] ", size/2),
		"definitions without a URL":         repeat("[a]: \n", size),
		"nested quotations":                 repeat(">", size),
		"nested quotations and lists":       repeat("> - ", size),
		"brackets that are closed too late": repeat("[", size/2) + repeat("]", size/2),
		"links that are never closed":       repeat("[a](", size),
		"URLs that are never closed":        repeat("[a](<b", size),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			if _, err := Render(text); !errors.Is(err, ErrExpensive) {
				t.Errorf("got %v after %s", err, time.Since(start))
			}
			if took := time.Since(start); soak.Running() && took > 15*maxTime {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestHTML_showsExpensiveTextsAsTheyAre(t *testing.T) {
	text := strings.Repeat("a|", 500) + "\n" + strings.Repeat("-|", 500) + "\n" + strings.Repeat("<b>\n", 500)
	if got := HTML(text); got != html.EscapeString(text) {
		t.Errorf("got %q", got)
	}
}

func TestRender_takesLongTexts(t *testing.T) {
	for name, text := range map[string]string{
		"paragraphs": strings.Repeat("A [link](https://a.example/b), `code` and **more**.\n\n", 1000),
		"a list":     strings.Repeat("- [x] a task with a [link](https://a.example/b)\n", 1000),
		"a table":    "a|b|c|d\n-|-|-|-\n" + strings.Repeat("1|2|3|4\n", 1500),
		"references": strings.Repeat("[a][b] ", 1000) + "\n\n[b]: https://a.example/b\n",
	} {
		if _, err := Render(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzLine looks for texts whose HTML is dangerous, or whose rendering does not end.
func FuzzLine(f *testing.F) {
	for _, text := range []string{"a", "**a**", "<script>", "[a](b)", "| a |\n|---|", "\x00", strings.Repeat("[", 100), strings.Repeat("*a ", 50)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if wrong := dangers(Line(text)); len(wrong) > 0 {
			t.Errorf("%q: %q has %q", text, Line(text), wrong)
		}
	})
}
