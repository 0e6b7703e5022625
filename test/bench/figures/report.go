package figures

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"
)

// Report is one run of the benchmarks.
type Report struct {
	// Commit is the measured commit, with the suffix "-dirty" if files differ from it.
	Commit  string    `json:"commit"`
	Begun   time.Time `json:"begun"`
	Machine Machine   `json:"machine"`
	Rows    []*Row    `json:"rows"`
}

// Machine describes what absolute figures depend on.
type Machine struct {
	OS    string `json:"os"`
	Arch  string `json:"arch"`
	Cores int    `json:"cores"`
	// Load is the average number of runnable processes during the previous minute, or 0 if it is not known.
	Load float64 `json:"loadBefore"`
	Go   string  `json:"go"`
	Git  string  `json:"git"`
}

// Busy reports whether other processes must have influenced figures that are not ratios.
func (m Machine) Busy() bool { return m.Load > float64(m.Cores)/4 }

// Passed reports whether every row was measured and keeps its bound, if it has one.
func (r *Report) Passed() bool {
	for _, row := range r.Rows {
		if result := row.Result(); result == Fail || result == NotMeasured {
			return false
		}
	}
	return true
}

// WriteTable writes the rows as a table.
func (r *Report) WriteTable(w io.Writer) error {
	m := r.Machine
	fmt.Fprintf(w, "%s, %s/%s, %d cores, load before %.1f, %s, git %s\n\n", r.Commit, m.OS, m.Arch, m.Cores, m.Load, m.Go, m.Git)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ROW\tMEASURED\tOURS\tREFERENCE\tRATIO\tFLOOR\tRESULT\tAGAINST")
	for _, row := range r.Rows {
		against := row.Against
		if against == "" {
			against = "-"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", row.ID, row.Name,
			row.column(row.Ours), row.column(row.Reference), row.comparison(), row.floor(), row.Result(), against)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nMedians, and in brackets the quartiles; a ratio is the median of the ratios of pairs.")
	if m.Busy() {
		fmt.Fprintln(w, "The machine was busy with other things before: ratios hold, other figures say little.")
	}
	for _, row := range r.Rows {
		if row.Err != nil {
			fmt.Fprintf(w, "%s was not measured: %v\n", row.ID, row.Err)
		}
	}
	return nil
}

// WriteJSON writes the report, with every sample, to a file.
func (r *Report) WriteJSON(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
