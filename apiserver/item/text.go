package item

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// OneLine returns a title as one line, without spaces around it.
func OneLine(title string) string {
	return strings.TrimSpace(strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(title))
}

// CheckTexts refuses a title and a description that are too long.
func CheckTexts(a *endpoint.Attributes, title, description string) {
	a.Text("title", title, MaxTitle)
	if n := utf8.RuneCountInString(description); n > MaxDescription {
		a.Refuse("description", fmt.Sprintf("is too long (%d). The maximum size is %d.", n, MaxDescription))
	}
}
