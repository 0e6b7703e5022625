package cleanup_test

import (
	"errors"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/internal/registry/cleanup"
)

func TestParseSpan_readsTextsForPeople(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"1h": time.Hour, "1d": day, "1month": 30 * day, "2 weeks 3 days": 17 * day, "1 month": 30 * day, "3 months": 90 * day, "1y": 365 * day,
		"90s": 90 * time.Second, "30 seconds": 30 * time.Second, "5m": 5 * time.Minute, "5 mins": 5 * time.Minute, "1h30m": 90 * time.Minute,
		"1 Day": day, "2 weeks and 3 days": 17 * day, "1 week, 2 days": 9 * day, "1.5 hours": 90 * time.Minute, " 7d ": 7 * day, "0 days": 0,
		"1 hr 2 secs": time.Hour + 2*time.Second, "2 yrs": 730 * day, "1 wk": 7 * day, "1mo": 30 * day,
	} {
		if got, err := cleanup.ParseSpan(text); err != nil || time.Duration(got) != want {
			t.Errorf("%q: got %s and %v, want %s", text, time.Duration(got), err, want)
		}
	}
}

func TestParseSpan_refusesOtherTexts(t *testing.T) {
	for _, text := range []string{
		"", " ", "90", "days", "1 fortnight", "-1d", "1d ago", "1h-", "1,5 hours", "h1", "1d2", "1e3 days", "1 day or 2", "999999999 years", "500ms", "2hs", "٣ days",
		"11111111111111111111111111111111111111111111111111111111111111111d",
	} {
		if got, err := cleanup.ParseSpan(text); !errors.Is(err, cleanup.ErrSpan) {
			t.Errorf("%q: got %s and %v", text, time.Duration(got), err)
		}
	}
}

func TestBefore_subtracts(t *testing.T) {
	span, err := cleanup.ParseSpan("1 week")
	if err != nil || !span.Before(noon).Equal(noon.AddDate(0, 0, -7)) {
		t.Errorf("%s and %v", span.Before(noon), err)
	}
}
