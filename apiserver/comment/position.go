package comment

import (
	"regexp"
	"unicode/utf8"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/note"
)

// maxPath is the maximum number of characters of a path.
const maxPath = 4096

// Position has the parameters of the place of a note in a diff.
type Position struct {
	Base      string                       `param:"base_sha" required:"" doc:"Merge base of the source and target branch."`
	Start     string                       `param:"start_sha" required:"" doc:"Head of the target branch."`
	Head      string                       `param:"head_sha" required:"" doc:"Head of the source branch."`
	Type      string                       `param:"position_type" required:"" values:"text,image" doc:"text for a line of a file, and image for a point of an image."`
	OldPath   endpoint.Optional[string]    `param:"old_path" doc:"Path of the file before the change; required for text."`
	NewPath   endpoint.Optional[string]    `param:"new_path" doc:"Path of the file after the change; required for text."`
	OldLine   endpoint.Optional[int64]     `param:"old_line" minimum:"1" doc:"Line before the change."`
	NewLine   endpoint.Optional[int64]     `param:"new_line" minimum:"1" doc:"Line after the change."`
	LineRange endpoint.Optional[lineRange] `param:"line_range" doc:"First and last line of a note about several lines."`
	Width     endpoint.Optional[int64]     `param:"width" minimum:"0" doc:"Width of the image."`
	Height    endpoint.Optional[int64]     `param:"height" minimum:"0" doc:"Height of the image."`
	X         endpoint.Optional[float64]   `param:"x" doc:"Distance of the point from the left."`
	Y         endpoint.Optional[float64]   `param:"y" doc:"Distance of the point from the top."`
}

type lineRange struct {
	First line `param:"start" required:"" doc:"First line."`
	Last  line `param:"end" required:"" doc:"Last line."`
}

type line struct {
	Code string                   `param:"line_code" doc:"Ignored: it follows from the path and the lines."`
	Type string                   `param:"type" values:"new,old,expanded" doc:"new for an added line, and old for a removed one."`
	Old  endpoint.Optional[int64] `param:"old_line" minimum:"1" doc:"Line before the change."`
	New  endpoint.Optional[int64] `param:"new_line" minimum:"1" doc:"Line after the change."`
}

// commitID is the form of ids of commits.
var commitID = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// At returns the position that was sent in the form of the store, or nil without one. The error is the answer to a malformed one.
func At(p endpoint.Optional[Position]) (*note.Position, error) {
	if !p.Set || p.Null {
		return nil, nil
	}
	return p.Value.stored()
}

func (p Position) stored() (*note.Position, error) {
	at := note.Position{Base: p.Base, Start: p.Start, Head: p.Head, Type: note.PositionType(p.Type), OldPath: p.OldPath.Value, NewPath: p.NewPath.Value}
	var problems []string
	for _, id := range []struct{ name, value string }{{"base_sha", p.Base}, {"start_sha", p.Start}, {"head_sha", p.Head}} {
		if !commitID.MatchString(id.value) {
			problems = append(problems, "position["+id.name+"] is invalid")
		}
	}
	for _, path := range []struct{ name, value string }{{"old_path", at.OldPath}, {"new_path", at.NewPath}} {
		switch {
		case path.value == "" && at.Type == note.Text:
			problems = append(problems, "position["+path.name+"] is missing")
		case utf8.RuneCountInString(path.value) > maxPath:
			problems = append(problems, "position["+path.name+"] is invalid")
		}
	}
	if at.Type == note.Image {
		at.Width, at.Height, at.X, at.Y = sent(p.Width), sent(p.Height), sent(p.X), sent(p.Y)
	} else {
		at.OldLine, at.NewLine = sent(p.OldLine), sent(p.NewLine)
		if at.OldLine == nil && at.NewLine == nil {
			problems = append(problems, "position[old_line], position[new_line] are missing, at least one parameter must be provided")
		}
		if of := sent(p.LineRange); of != nil {
			at.LineRange = &note.LineRange{First: of.First.stored(at.NewPath), Last: of.Last.stored(at.NewPath)}
		}
	}
	if len(problems) > 0 {
		return nil, endpoint.Parameters(problems...)
	}
	return &at, nil
}

func (l line) stored(path string) note.Line {
	before, after := sent(l.Old), sent(l.New)
	return note.Line{Code: note.LineCode(path, before, after), Type: l.Type, Old: before, New: after}
}

// sent returns the value of a parameter, or nil without one.
func sent[T any](o endpoint.Optional[T]) *T {
	if !o.Set || o.Null {
		return nil
	}
	return &o.Value
}
