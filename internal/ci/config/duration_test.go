package config

import "testing"

func TestParseDuration_readsWords(t *testing.T) {
	for text, want := range map[string]string{
		"3600": "1h0m0s", "1h 30m": "1h30m0s", "90 minutes": "1h30m0s", "2 weeks and 1 day": "360h0m0s", "1.5 hours": "1h30m0s", "1h30m": "1h30m0s",
		"1 Day, 2 hrs": "26h0m0s", "0": "0s", "1 mo": "720h0m0s",
	} {
		if got, err := ParseDuration(text); err != nil || got.String() != want {
			t.Errorf("%s: got %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "soon", "1 parsec", "-1h", "h", "999999999 years", "1h soon"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q: got %s", text, got)
		}
	}
}
