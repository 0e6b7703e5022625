package endpoint

import (
	"time"
)

// Time is a moment as the API writes it: ISO 8601 in UTC with milliseconds. The zero Time is null.
type Time time.Time

// MarshalJSON writes the moment.
func (t Time) MarshalJSON() ([]byte, error) {
	at := time.Time(t)
	if at.IsZero() {
		return []byte("null"), nil
	}
	return at.UTC().AppendFormat(nil, `"2006-01-02T15:04:05.000Z"`), nil
}

// Date is a day as the API writes it, YYYY-MM-DD. The zero Date is null.
type Date time.Time

// MarshalJSON writes the day.
func (d Date) MarshalJSON() ([]byte, error) {
	at := time.Time(d)
	if at.IsZero() {
		return []byte("null"), nil
	}
	return at.UTC().AppendFormat(nil, `"2006-01-02"`), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Time) UnmarshalJSON(text []byte) error { return (*time.Time)(t).UnmarshalJSON(text) }
