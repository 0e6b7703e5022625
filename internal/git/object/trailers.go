package object

import "strings"

// Trailer is a line such as "Changelog: added" at the end of a commit message.
type Trailer struct{ Key, Value string }

// Trailers returns the trailers of the message as `git interpret-trailers` defines them: they are in the last paragraph, unless that is the
// title, if it has only trailers, or if it has a line that Git generates and not too many other lines. A value that continues on the next
// line is joined.
func (c *Commit) Trailers() []Trailer {
	var all []Trailer
	var parts []string // of the last value, while it can continue
	end := func() {
		if parts != nil {
			all[len(all)-1].Value = strings.TrimSpace(strings.Join(parts, " "))
			parts = nil
		}
	}
	for _, line := range trailerBlock(strings.Split(c.Message, "\n")) {
		switch key, value, ok := cutTrailer(line); {
		case strings.HasPrefix(line, "#"):
		case indented(line):
			if parts != nil {
				parts = append(parts, strings.TrimSpace(line))
			}
		case ok:
			end()
			all, parts = append(all, Trailer{Key: key}), []string{value}
		default:
			end()
		}
	}
	end()
	return all
}

// trailerBlock returns the lines with the trailers.
func trailerBlock(lines []string) []string {
	body := 0
	for body < len(lines) && (strings.HasPrefix(lines[body], "#") || !blankLine(lines[body])) {
		body++
	}
	var trailers, others, continued int
	ours, begun := false, false
	for i := len(lines) - 1; i >= body; i-- {
		switch line := lines[i]; {
		case strings.HasPrefix(line, "#"):
			others += continued
			continued = 0
		case blankLine(line):
			if !begun {
				continue // the end of the message
			}
			others += continued
			if ours && trailers*3 >= others || trailers > 0 && others == 0 {
				return lines[i+1:]
			}
			return nil
		case writtenByGit(line):
			begun, ours, continued = true, true, 0
			trailers++
		case indented(line):
			begun = true
			continued++
		default:
			begun = true
			if _, _, ok := cutTrailer(line); ok {
				trailers++
			} else {
				others += 1 + continued
			}
			continued = 0
		}
	}
	return nil
}

func blankLine(line string) bool { return strings.TrimSpace(line) == "" }

func indented(line string) bool {
	return line != "" && strings.ContainsRune(" \t\v\f\r", rune(line[0]))
}

func writtenByGit(line string) bool {
	return strings.HasPrefix(line, "Signed-off-by: ") || strings.HasPrefix(line, "(cherry picked from commit ")
}

// cutTrailer splits "Key: value". A key has letters, digits and dashes, and can have blanks at its end.
func cutTrailer(line string) (key, value string, ok bool) {
	key, value, ok = strings.Cut(line, ":")
	key = strings.TrimRight(key, " \t")
	word := strings.IndexFunc(key, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
	return key, strings.TrimSpace(value), ok && key != "" && word
}
