// Package label validates labels, computes their colors, and finds the labels that are in force.
package label

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/image/colornames" // the table of CSS color names
)

// The colors of texts.
const (
	// Dark is for texts on a light background.
	Dark = "#1F1E24"
	// Light is for texts on a dark background.
	Light = "#FFFFFF"
)

// Limits of the schema.
const (
	// MaxTitle is the maximum number of characters in a title.
	MaxTitle = 255
	// MaxDescription is the maximum number of characters in a description.
	MaxDescription = 4096
)

// lightFrom is the sum of red, green and blue above which a background is light.
const lightFrom = 500

var (
	hexadecimal = regexp.MustCompile(`^#([0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})$`)
	titles      = regexp.MustCompile(`^[^\x00-\x1f,\x7f]+$`)
)

// Hex returns a color as #RGB or #RRGGBB. It converts the name of a CSS color, in any case, and returns other colors unchanged. It reports
// false for an invalid color.
func Hex(color string) (hex string, ok bool) {
	color = strings.TrimSpace(color)
	if hexadecimal.MatchString(color) {
		return color, true
	}
	name := strings.ToLower(color)
	if name == "rebeccapurple" { // the table is older than this name
		return "#663399", true
	}
	c, ok := colornames.Map[name]
	if !ok {
		return "", false
	}
	return fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B), true
}

// TextColor returns a color for text that is readable on a background, which is in the form of Hex. An invalid color counts as dark.
func TextColor(background string) string {
	if !hexadecimal.MatchString(background) {
		return Light
	}
	digits := background[1:]
	width := len(digits) / 3
	sum := int64(0)
	for i := range 3 {
		part := digits[i*width : (i+1)*width]
		if width == 1 {
			part += part
		}
		n, _ := strconv.ParseInt(part, 16, 64) // the color is valid, so this cannot fail
		sum += n
	}
	if sum > lightFrom {
		return Dark
	}
	return Light
}

// Title returns a title without surrounding blanks, and its validation errors in the words of the REST API.
func Title(text string) (title string, problems []string) {
	title = strings.TrimSpace(text)
	if title == "" {
		problems = append(problems, "can't be blank")
	}
	if !titles.MatchString(title) {
		problems = append(problems, "is invalid")
	}
	if utf8.RuneCountInString(title) > MaxTitle {
		problems = append(problems, fmt.Sprintf("is too long (maximum is %d characters)", MaxTitle))
	}
	return title, problems
}
