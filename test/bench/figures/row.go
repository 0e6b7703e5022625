// Package figures has measured values, with the values to which they are compared and their limits.
package figures

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Unit is what a figure counts.
type Unit string

// The units. Megabytes are a million bytes.
const (
	Seconds      Unit = "s"
	Milliseconds Unit = "ms"
	Megabytes    Unit = "MB"
	PercentCPU   Unit = "% of a core"
	Writes       Unit = "writes"
	PerSecond    Unit = "/s"
	Processes    Unit = "processes"
)

// Quantity is what of a row a bound is about.
type Quantity string

// The quantities.
const (
	Ours       Quantity = "ours"
	Ratio      Quantity = "ratio"
	Difference Quantity = "difference"
)

// Bound is what the median of a quantity may be at most or, for what is better when there is more of it, at least.
// It is an upper bound unless AtLeast is set.
type Bound struct {
	Of              Quantity
	AtMost, AtLeast float64
}

// MarshalJSON writes the one that is set.
func (b Bound) MarshalJSON() ([]byte, error) {
	if b.AtLeast != 0 {
		return json.Marshal(map[string]any{"of": b.Of, "atLeast": b.AtLeast})
	}
	return json.Marshal(map[string]any{"of": b.Of, "atMost": b.AtMost})
}

func (b Bound) keeps(value float64) bool {
	if b.AtLeast != 0 {
		return value >= b.AtLeast
	}
	return value <= b.AtMost
}

// Row is one thing that is measured.
type Row struct {
	// ID names the row for good. Name says what is measured.
	ID, Name string
	Unit     Unit
	// Against says what the reference is; empty when there is none.
	Against string
	// Bound is nil if there is none.
	Bound *Bound

	// Ours is nil until the row was measured, Reference and Difference when there is no reference, and Ratio when it is 0.
	Ours, Reference, Ratio, Difference *Summary
	// Err says why the row was not measured.
	Err error
}

// Measured fills in the samples; a reference has as many as ours, each measured next to the one that it is compared with.
func (r *Row) Measured(ours, reference []float64) {
	o := Summarize(ours)
	r.Ours, r.Err = &o, nil
	if len(reference) == 0 {
		return
	}
	if len(reference) != len(ours) {
		r.Err = fmt.Errorf("%d samples are compared with %d of the reference", len(ours), len(reference))
		return
	}
	ref, differences := Summarize(reference), Differences(ours, reference)
	r.Reference, r.Difference = &ref, &differences
	if slices.Contains(reference, 0) {
		return
	}
	ratios := Ratios(ours, reference)
	r.Ratio = &ratios
}

// Result is how a row ended.
type Result string

// The results.
const (
	Pass        Result = "pass"
	Fail        Result = "FAIL"
	NoBound     Result = "-"
	NotMeasured Result = "NOT MEASURED"
)

// Result compares the row with its bound.
func (r *Row) Result() Result {
	switch {
	case r.Ours == nil || r.Err != nil:
		return NotMeasured
	case r.Bound == nil:
		return NoBound
	}
	of := map[Quantity]*Summary{Ours: r.Ours, Ratio: r.Ratio, Difference: r.Difference}[r.Bound.Of]
	switch {
	case of == nil:
		return NotMeasured
	case r.Bound.keeps(of.Median):
		return Pass
	default:
		return Fail
	}
}

// MarshalJSON writes the row with its result.
func (r Row) MarshalJSON() ([]byte, error) {
	row := struct {
		ID         string   `json:"id"`
		Name       string   `json:"name"`
		Unit       Unit     `json:"unit"`
		Ours       *Summary `json:"ours,omitempty"`
		Against    string   `json:"against,omitempty"`
		Reference  *Summary `json:"reference,omitempty"`
		Ratio      *Summary `json:"ratio,omitempty"`
		Difference *Summary `json:"difference,omitempty"`
		Bound      *Bound   `json:"bound,omitempty"`
		Result     string   `json:"result"`
		Error      string   `json:"error,omitempty"`
	}{r.ID, r.Name, r.Unit, r.Ours, r.Against, r.Reference, r.Ratio, r.Difference, r.Bound, "", ""}
	row.Result = map[Result]string{Pass: "pass", Fail: "fail", NoBound: "no bound", NotMeasured: "not measured"}[r.Result()]
	if r.Err != nil {
		row.Error = r.Err.Error()
	} else if r.Result() == NotMeasured {
		row.Error = errUnmeasured.Error()
	}
	return json.Marshal(row)
}

// errUnmeasured is the reason where there is no better one.
var errUnmeasured = errors.New("it was not measured")

func (r *Row) text(value float64) string {
	switch r.Unit {
	case Writes, PerSecond:
		return fmt.Sprintf("%.0f", value)
	case Seconds, PercentCPU:
		return fmt.Sprintf("%.2f", value)
	default:
		return fmt.Sprintf("%.1f", value)
	}
}

// column shows a summary as its median, its unit and, when there are several samples, its spread.
func (r *Row) column(s *Summary) string {
	if s == nil {
		return "-"
	}
	text := r.text(s.Median) + " " + string(r.Unit)
	if len(s.Samples) > 1 {
		text += fmt.Sprintf(" (%s-%s)", r.text(s.Low), r.text(s.High))
	}
	return text
}

// comparison is the ratio, or the difference in rows whose bound is about that.
func (r *Row) comparison() string {
	switch {
	case r.Difference == nil:
		return "-"
	case r.Bound != nil && r.Bound.Of == Difference:
		return fmt.Sprintf("%+.1f (%+.1f to %+.1f) %s", r.Difference.Median, r.Difference.Low, r.Difference.High, r.Unit)
	case r.Ratio == nil:
		return "-"
	case len(r.Ratio.Samples) > 1:
		return fmt.Sprintf("%.2f (%.2f-%.2f)", r.Ratio.Median, r.Ratio.Low, r.Ratio.High)
	default:
		return fmt.Sprintf("%.2f", r.Ratio.Median)
	}
}

func (r *Row) floor() string {
	if r.Bound == nil {
		return "-"
	}
	if r.Bound.AtLeast != 0 {
		return fmt.Sprintf("%s >= %g", r.Bound.Of, r.Bound.AtLeast)
	}
	limit := strings.TrimSuffix(fmt.Sprintf("%g", r.Bound.AtMost), ".0")
	switch r.Bound.Of {
	case Ratio:
		return "ratio <= " + limit
	case Difference:
		return "<= +" + limit + " " + string(r.Unit)
	default:
		return "<= " + limit + " " + string(r.Unit)
	}
}

// String is the row on one line.
func (r *Row) String() string {
	text := fmt.Sprintf("%s: %s", r.ID, r.column(r.Ours))
	if r.Reference != nil {
		text += fmt.Sprintf(", %s %s, ratio %s", r.Against, r.column(r.Reference), r.comparison())
	}
	return text
}
