package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// day is a day, and a month has 30 of them.
const day = 24 * time.Hour

var units = map[string]time.Duration{
	"s": time.Second, "sec": time.Second, "second": time.Second, "m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hour": time.Hour, "d": day, "day": day, "w": 7 * day, "wk": 7 * day, "week": 7 * day,
	"mo": 30 * day, "mon": 30 * day, "month": 30 * day, "y": 365 * day, "yr": 365 * day, "year": 365 * day,
}

var span = regexp.MustCompile(`^(\d{1,9}(?:\.\d{1,6})?)\s*([a-z]*)[\s,]*(?:and\s+)?`)

// ParseDuration parses a duration such as 3600, "1h 30m", "2 hrs 20 min" or "3 weeks and 2 days". A number without a unit has seconds.
func ParseDuration(text string) (total time.Duration, err error) {
	rest := strings.ToLower(strings.TrimSpace(text))
	for first := true; rest != "" || first; first = false {
		found := span.FindStringSubmatch(rest)
		if found == nil {
			return 0, invalidDuration(text)
		}
		unit, ok := units[found[2]]
		if !ok {
			unit, ok = units[strings.TrimSuffix(found[2], "s")]
		}
		if found[2] == "" {
			unit, ok = time.Second, true
		}
		number, err := strconv.ParseFloat(found[1], 64)
		if part := number * float64(unit); !ok || err != nil || part > float64(100*365*day) || total > 100*365*day {
			return 0, invalidDuration(text)
		}
		total += time.Duration(number * float64(unit))
		rest = rest[len(found[0]):]
	}
	return total, nil
}

func invalidDuration(text string) error {
	return fmt.Errorf("%.50q is not a duration such as 3600, 1h 30m or 2 weeks", text)
}
