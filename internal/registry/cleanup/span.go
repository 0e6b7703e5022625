package cleanup

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Span is a length of time.
type Span time.Duration

// ErrSpan says that a text is not a span.
var ErrSpan = errors.New(`it must be numbers with units, as in 1h, 1d, 1month or "2 weeks 3 days"`)

const day = 24 * time.Hour

// units are the lengths of units, by their names. A month has 30 days and a year 365, because a span has no date.
var units = map[string]time.Duration{ //nolint:gochecknoglobals // a table
	"s": time.Second, "sec": time.Second, "second": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hour": time.Hour,
	"d": day, "day": day,
	"w": 7 * day, "wk": 7 * day, "week": 7 * day,
	"mo": 30 * day, "mon": 30 * day, "month": 30 * day,
	"y": 365 * day, "yr": 365 * day, "year": 365 * day,
}

var (
	spanText = regexp.MustCompile(`\A(?:\s*(?:,|and\b)?\s*\d+(?:\.\d+)?\s*[a-z]+)+\s*\z`)
	spanPart = regexp.MustCompile(`(\d+(?:\.\d+)?)\s*([a-z]+)`)
)

// maxSpanText is the maximum length of the text of a span.
const maxSpanText = 64

// ParseSpan parses a span for people: numbers with units, from seconds to years, such as 1h, 1d, 1month, or "2 weeks and 3 days". The error
// is ErrSpan.
func ParseSpan(text string) (Span, error) {
	text = strings.ToLower(text)
	if len(text) > maxSpanText || !spanText.MatchString(text) {
		return 0, ErrSpan
	}
	var total float64
	for _, part := range spanPart.FindAllStringSubmatch(text, -1) {
		number, err := strconv.ParseFloat(part[1], 64)
		unit, known := units[part[2]]
		if !known {
			singular := strings.TrimSuffix(part[2], "s")
			unit, known = units[singular]
			known = known && len(singular) > 1 // ms are not minutes
		}
		if err != nil || !known {
			return 0, ErrSpan
		}
		total += number * float64(unit)
	}
	if total >= math.MaxInt64 {
		return 0, ErrSpan
	}
	return Span(total), nil
}

// Before returns the time that is a span before another.
func (s Span) Before(t time.Time) time.Time { return t.Add(-time.Duration(s)) }
