package note

import (
	"crypto/sha1" //nolint:gosec // clients know the form of line codes
	"encoding/hex"
	"fmt"
)

// Position is the place of a note in the diff of a merge request: a line of a file, or a point of an image. It is stored as the API shows it.
type Position struct {
	// Base, Start and Head are the commits of the version of the merge request.
	Base  string       `json:"base_sha"`
	Start string       `json:"start_sha"`
	Head  string       `json:"head_sha"`
	Type  PositionType `json:"position_type" doc:"text or image."`
	// OldPath and NewPath are the paths of the file before and after the change.
	OldPath string `json:"old_path"`
	NewPath string `json:"new_path"`
	// OldLine and NewLine are the line before and after the change. A line that was added or removed has only one of them.
	OldLine   *int64     `json:"old_line" doc:"null for an added line, and for an image."`
	NewLine   *int64     `json:"new_line" doc:"null for a removed line, and for an image."`
	LineRange *LineRange `json:"line_range" doc:"null unless the note is about several lines."`
	// Width and Height are the size of the image, and X and Y the point.
	Width  *int64   `json:"width,omitempty" doc:"Only for an image."`
	Height *int64   `json:"height,omitempty" doc:"Only for an image."`
	X      *float64 `json:"x,omitempty" doc:"Only for an image."`
	Y      *float64 `json:"y,omitempty" doc:"Only for an image."`
}

// PositionType says what a position is in.
type PositionType string

// The types of positions.
const (
	Text  PositionType = "text"
	Image PositionType = "image"
)

// LineRange is the first and the last line of a note about several lines.
type LineRange struct {
	First Line `json:"start"`
	Last  Line `json:"end"`
}

// Line is a line of a diff.
type Line struct {
	Code string `json:"line_code"`
	Type string `json:"type" doc:"new for an added line, old for a removed line, and empty for an unchanged line."`
	Old  *int64 `json:"old_line"`
	New  *int64 `json:"new_line"`
}

// LineCode returns the identifier of the line: the SHA-1 checksum of the path, and the lines before and after the change, 0 if there is none. It is
// empty for an image.
func (p Position) LineCode() string {
	if p.Type != Text {
		return ""
	}
	return LineCode(p.NewPath, p.OldLine, p.NewLine)
}

// LineCode returns the identifier of a line of a file.
func LineCode(path string, before, after *int64) string {
	sum := sha1.Sum([]byte(path)) //nolint:gosec // as above
	number := func(line *int64) int64 {
		if line == nil {
			return 0
		}
		return *line
	}
	return fmt.Sprintf("%s_%d_%d", hex.EncodeToString(sum[:]), number(before), number(after))
}
