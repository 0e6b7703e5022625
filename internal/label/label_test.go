package label

import (
	"slices"
	"strings"
	"testing"
)

func TestHex(t *testing.T) {
	for color, want := range map[string]string{
		"#d9534f": "#d9534f", "#D9534F": "#D9534F", "#abc": "#abc", "#FfF": "#FfF", "  #abc ": "#abc",
		"red": "#FF0000", "RED": "#FF0000", "AliceBlue": "#F0F8FF", " tan": "#D2B48C", "rebeccapurple": "#663399",
		"grey": "#808080", "gray": "#808080", "lightgoldenrodyellow": "#FAFAD2",

		"": "", "#": "", "#ab": "", "#abcd": "", "#abcde": "", "#abcdefa": "", "#ggg": "", "abc": "", "d9534f": "", "##abc": "",
		"#abc;": "", "transparent": "", "rgb(0,0,0)": "", "red\x00": "", "#ａｂｃ": "", "inherit": "",
	} {
		if hex, ok := Hex(color); hex != want || ok != (want != "") {
			t.Errorf("%q: got %q, %t, want %q", color, hex, ok, want)
		}
	}
}

func TestTextColor(t *testing.T) {
	for background, want := range map[string]string{
		"#FFFFFF": Dark, "#fff": Dark, "#000": Light, "#000000": Light, "#428BCA": Light,
		"#A6A7A7": Light,                                                     // 166+167+167 is 500, which is not light yet
		"#A7A7A7": Dark, "#FAF500": Light, "#FAF600": Light, "#FFF600": Dark, // 255+246+0
		"#aaa": Dark, "#a9a": Light, // 170+153+170
		"": Light, "red": Light, "#12345": Light, "#xyz": Light,
	} {
		if got := TextColor(background); got != want {
			t.Errorf("%q: got %s, want %s", background, got, want)
		}
	}
}

func TestTitle(t *testing.T) {
	long := strings.Repeat("ä", MaxTitle)
	for text, want := range map[string]struct {
		title    string
		problems []string
	}{
		"bug": {"bug", nil}, "  bug\n": {"bug", nil}, "type::bug & more?": {"type::bug & more?", nil}, long: {long, nil}, "0": {"0", nil},
		"":         {"", []string{"can't be blank", "is invalid"}},
		" \t":      {"", []string{"can't be blank", "is invalid"}},
		"a,b":      {"a,b", []string{"is invalid"}},
		"a\x1bb":   {"a\x1bb", []string{"is invalid"}},
		"a\x00":    {"a\x00", []string{"is invalid"}},
		long + "a": {long + "a", []string{"is too long (maximum is 255 characters)"}},
	} {
		if title, problems := Title(text); title != want.title || !slices.Equal(problems, want.problems) {
			t.Errorf("%q: got %q, %q, want %q, %q", text, title, problems, want.title, want.problems)
		}
	}
}
