package config

import (
	"os"
	"strings"
	"testing"
)

func TestPage_namesEveryKeyword(t *testing.T) {
	page, err := os.ReadFile("../../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| keyword of a job |")
	table, _, _ = strings.Cut(table, "\n\n")
	var keywords string // the first column
	for _, row := range strings.Split(table, "\n")[1:] {
		keywords += strings.Split(row, "|")[1]
	}
	r := &reader{}
	for _, known := range []fields{r.shared(&Job{}), r.running(&Job{})} {
		for keyword := range known {
			if !strings.Contains(keywords, "`"+keyword+"`") {
				t.Errorf("the page says nothing of %s", keyword)
			}
		}
	}
}
