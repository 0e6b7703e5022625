package item

import "testing"

func TestCountTasks_countsCheckboxes(t *testing.T) {
	for text, want := range map[string]Tasks{
		"":                                      {0, 0},
		"- [ ] a\n* [x] b\n1. [X] c\n  + [ ] d": {4, 2},
		"> - [ ] quoted":                        {1, 0},
		"- [] a\n- [y] b\n[ ] c\n-[ ] d":        {0, 0},
		"```\n- [ ] code\n```\n- [x] text":      {1, 1},
		"~~~~\n- [ ] a\n~~~\n- [ ] b\n~~~~~\n":  {0, 0},
	} {
		if got := CountTasks(text); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}
