// Package figures contains measured values, the values to which they are compared, and their limits.
package figures

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Unit is the unit of a figure.
type Unit string

// These are the units. A megabyte is a million bytes.
const (
	Seconds            Unit = "s"
	Milliseconds       Unit = "ms"
	Megabytes          Unit = "MB"
	PercentCPU         Unit = "% of a core"
	Writes             Unit = "writes"
	PerSecond          Unit = "/s"
	MegabytesPerSecond Unit = "MB/s"
	Processes          Unit = "processes"
)

// Quantity is the quantity of a row that a bound limits.
type Quantity string

// These are the quantities.
const (
	Ours       Quantity = "ours"
	Ratio      Quantity = "ratio"
	Difference Quantity = "difference"
)

// Bound is the maximum of the median of a quantity. If AtLeast is set, it is the minimum instead.
type Bound struct {
	Of              Quantity
	AtMost, AtLeast float64
}

// MarshalJSON writes only the limit that is set.
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
	// ID is the permanent name of the row. Name describes the measurement.
	ID, Name string
	Unit     Unit
	// Against describes the reference. It is empty if there is none.
	Against string
	// Bound is nil if there is none.
	Bound *Bound

	// Ours is nil until the row is measured. Reference and Difference are nil without a reference, and Ratio is nil if the reference is 0.
	Ours, Reference, Ratio, Difference *Summary
	// Err is the reason why the row was not measured.
	Err error
}

// Measured fills in the samples. There must be a sample of the reference for each of ours, measured together with it.
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

// Result is the result of a row.
type Result string

// These are the results.
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

// errUnmeasured is the reason if there is no better one.
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

// column returns the median of a summary with its unit and, if there are several samples, its spread.
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

// comparison returns the ratio, or the difference if the bound of the row limits the difference.
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

// String returns the row on one line.
func (r *Row) String() string {
	text := fmt.Sprintf("%s: %s", r.ID, r.column(r.Ours))
	if r.Reference != nil {
		text += fmt.Sprintf(", %s %s, ratio %s", r.Against, r.column(r.Reference), r.comparison())
	}
	return text
}
