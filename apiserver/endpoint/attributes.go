package endpoint

import (
	"fmt"
	"unicode/utf8"
)

// Attributes collects what is wrong with the attributes of an object that a caller declares. Families check attributes before they write
// anything, and refuse them in the words of the REST API; the schemas of the kinds refuse the same values.
type Attributes struct {
	wrong       map[string][]string
	description string
}

// Refuse says what is wrong with an attribute.
func (a *Attributes) Refuse(name, what string) {
	if a.wrong == nil {
		a.wrong = map[string][]string{}
	}
	a.wrong[name] = append(a.wrong[name], what)
}

// Describe says in a sentence what the words about an attribute leave open.
func (a *Attributes) Describe(sentence string) {
	if a.description != "" {
		a.description += " "
	}
	a.description += sentence
}

// Err returns a 400 with all refused attributes, or nil if no attribute is refused.
func (a *Attributes) Err() error {
	if a.wrong == nil {
		return nil
	}
	return Invalid(a.wrong).Describe("%s", a.description)
}

// Text refuses a text with more than most characters. It reports whether the text is short enough.
func (a *Attributes) Text(name, text string, most int) bool {
	if utf8.RuneCountInString(text) > most {
		a.Refuse(name, fmt.Sprintf("is too long (maximum is %d characters)", most))
		return false
	}
	return true
}
