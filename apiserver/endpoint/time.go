package endpoint

import (
	"reflect"
	"strings"
	"time"
)

// Time is a moment in the format of the API: ISO 8601 in UTC with milliseconds. The zero Time is null.
type Time time.Time

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	at := time.Time(t)
	if at.IsZero() {
		return []byte("null"), nil
	}
	// Package time is fast only with layouts of its own.
	text := at.UTC().AppendFormat(append(make([]byte, 0, plain), '"'), time.RFC3339)
	ms := at.Nanosecond() / int(time.Millisecond)
	return append(text[:len(text)-1], '.', '0'+byte(ms/100), '0'+byte(ms/10%10), '0'+byte(ms%10), 'Z', '"'), nil
}

// Date is a day in the format of the API, YYYY-MM-DD. The zero Date is null.
type Date time.Time

// MarshalJSON implements json.Marshaler.
func (d Date) MarshalJSON() ([]byte, error) {
	at := time.Time(d)
	if at.IsZero() {
		return []byte("null"), nil
	}
	return at.UTC().AppendFormat(nil, `"2006-01-02"`), nil
}

// UnmarshalJSON reads the format that MarshalJSON writes.
func (t *Time) UnmarshalJSON(text []byte) error { return (*time.Time)(t).UnmarshalJSON(text) }

// times are the forms of ISO 8601 that clients send. Error messages recommend the first one.
var times = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "20060102T150405Z0700", time.DateOnly,
}

func assignTime(into reflect.Value, value any) bool {
	text, ok := value.(string)
	if !ok {
		return false
	}
	if day, hour, ok := strings.Cut(text, " "); ok && len(day) == len(time.DateOnly) {
		text = day + "T" + hour
	}
	for _, layout := range times {
		if t, err := time.Parse(layout, text); err == nil {
			into.Set(reflect.ValueOf(t))
			return true
		}
	}
	return false
}
