package notes_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
)

var (
	commits = fmt.Sprintf(`"base_sha":%q,"start_sha":%q,"head_sha":%q`, strings.Repeat("b", 40), strings.Repeat("c", 40), strings.Repeat("a", 40))
	// readme is the checksum of the path README.md.
	readme = "8ec9a00bfd09b3190ac6b22251dbb1aa95a0579d"
)

func TestDiscussion_isAboutPlaceInDiff(t *testing.T) {
	for name, tt := range map[string]struct{ sent, shown, code string }{
		"an added line": {
			`{` + commits + `,"position_type":"text","old_path":"README.md","new_path":"README.md","new_line":9}`,
			`{` + commits + `,"position_type":"text","old_path":"README.md","new_path":"README.md","old_line":null,"new_line":9,"line_range":null}`,
			readme + "_0_9",
		},
		"several lines": {
			`{` + commits + `,"position_type":"text","old_path":"README","new_path":"README.md","old_line":3,"new_line":4,
				"line_range":{"start":{"line_code":"x","type":"old","old_line":2},"end":{"old_line":3,"new_line":4}}}`,
			`{` + commits + `,"position_type":"text","old_path":"README","new_path":"README.md","old_line":3,"new_line":4,"line_range":{
				"start":{"line_code":"` + readme + `_2_0","type":"old","old_line":2,"new_line":null},
				"end":{"line_code":"` + readme + `_3_4","type":"","old_line":3,"new_line":4}}}`,
			readme + "_3_4",
		},
		"a point of an image": {
			`{` + commits + `,"position_type":"image","old_path":"a.png","new_path":"b.png","width":640,"height":480,"x":12.5,"y":0}`,
			`{` + commits + `,"position_type":"image","old_path":"a.png","new_path":"b.png","old_line":null,"new_line":null,"line_range":null,
				"width":640,"height":480,"x":12.5,"y":0}`,
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, w := NewWithT(t), newWorld(t)
			type diffNote struct {
				Type     string
				Position any
				LineCode string `json:"line_code"`
			}
			type diffThread struct {
				ID    string
				Notes []diffNote
			}
			answer := w.As("otto", "POST"+onMergeRequest+"/discussions", `{"body":"Why?","position":`+tt.sent+`}`)
			g.Expect(answer.Code).To(Equal(http.StatusCreated), answer.Body)
			made := familytest.Decode[diffThread](t, answer)
			answer = w.As("ann", "POST"+onMergeRequest+"/discussions/"+made.ID+"/notes", `{"body":"Because."}`)
			g.Expect(answer.Code).To(Equal(http.StatusCreated), answer.Body)
			for _, n := range familytest.Decode[diffThread](t, w.As("", "GET"+onMergeRequest+"/discussions/"+made.ID, "")).Notes {
				g.Expect(n).To(And(HaveField("Type", "DiffNote"), HaveField("LineCode", tt.code)))
				g.Expect(n.Position).To(Equal(familytest.Decode[any](t, familytest.Answer{Code: 200, Body: tt.shown})))
			}
		})
	}
}

func TestDiscussion_refusesMalformedPosition(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	const paths = `"old_path":"a","new_path":"b"`
	for position, want := range map[string]string{
		`{"position_type":"text",` + paths + `,"new_line":1}`: "position[base_sha] is missing, position[start_sha] is missing, position[head_sha] is missing",
		`{` + commits + `}`:                                                        "position[position_type] is missing",
		`{` + commits + `,"position_type":"file"}`:                                 "position[position_type] does not have a valid value",
		`{` + commits + `,"position_type":"text","new_line":1}`:                    "position[old_path] is missing, position[new_path] is missing",
		`{` + commits + `,"position_type":"text",` + paths + `}`:                   "position[old_line], position[new_line] are missing, at least one parameter must be provided",
		`{` + commits + `,"position_type":"text",` + paths + `,"new_line":0}`:      "position[new_line] does not have a valid value",
		`{` + commits + `,"position_type":"text",` + paths + `,"new_line":"x"}`:    "position[new_line] is invalid",
		`{"base_sha":"main","start_sha":"","head_sha":"","position_type":"image"}`: "position[base_sha] is invalid, position[start_sha] is invalid, position[head_sha] is invalid",
		`"here"`: "position is invalid",
		`{` + commits + `,"position_type":"text",` + paths + `,"new_line":1,"line_range":{"start":{}}}`: "position[line_range][end] is missing",
	} {
		answer := w.As("otto", "POST"+onMergeRequest+"/discussions", `{"body":"Why?","position":`+position+`}`)
		g.Expect(answer.String()).To(Equal(`400 {"error":"`+want+`"}`), position)
	}
	for _, position := range []string{"null", `""`} {
		g.Expect(w.As("otto", "POST"+onMergeRequest+"/discussions", `{"body":"Why?","position":`+position+`}`).Body).To(ContainSubstring(`"type":"DiscussionNote"`), position)
	}
}
