package figures

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestSummarize_findsTheMedianAndTheQuartiles(t *testing.T) {
	for name, test := range map[string]struct {
		samples           []float64
		median, low, high float64
	}{
		"one":  {[]float64{7}, 7, 7, 7},
		"two":  {[]float64{3, 1}, 2, 1.5, 2.5},
		"odd":  {[]float64{5, 1, 4, 2, 3}, 3, 2, 4},
		"even": {[]float64{4, 1, 3, 2}, 2.5, 1.75, 3.25},
		"wild": {[]float64{1, 1, 1, 1, 1000}, 1, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := Summarize(test.samples)
			g.Expect([]float64{s.Median, s.Low, s.High}).To(Equal([]float64{test.median, test.low, test.high}))
			g.Expect(s.Samples).To(Equal(test.samples))
		})
	}
}

func TestStandardError_shrinksWithMoreSamples(t *testing.T) {
	g := NewWithT(t)
	var few, many []float64
	for n := range 400 {
		many = append(many, float64(n%5))
		if n < 100 {
			few = append(few, float64(n%5))
		}
	}
	// The quartiles are 1 and 3.
	g.Expect(Summarize(few).StandardError()).To(BeNumerically("~", 0.186, 0.001))
	g.Expect(Summarize(many).StandardError()).To(BeNumerically("~", 0.093, 0.001))
	g.Expect(Summarize([]float64{7, 7, 7}).StandardError()).To(BeZero())
}

func TestRatio_comparesPairsOfSamples(t *testing.T) {
	g := NewWithT(t)
	row := Row{Bound: &Bound{Of: Ratio, AtMost: 1.1}}
	// The machine was ten times slower during the second pair: the ratio of the medians would be 11 / 10.
	row.Measured([]float64{11, 100, 11}, []float64{10, 100, 11})
	g.Expect(row.Ratio.Median).To(Equal(1.0))
	g.Expect(row.Difference.Median).To(Equal(0.0))
	g.Expect(row.Result()).To(Equal(Pass))
}

func TestMeasured_needsAReferenceForEachSample(t *testing.T) {
	g := NewWithT(t)
	row := Row{}
	row.Measured([]float64{1, 2}, []float64{1})
	g.Expect(row.Result()).To(Equal(NotMeasured))
}

func TestResult_dependsOnTheBound(t *testing.T) {
	g := NewWithT(t)
	for _, test := range []struct {
		bound  *Bound
		result Result
	}{
		{nil, NoBound},
		{&Bound{Of: Ours, AtMost: 30}, Pass},
		{&Bound{Of: Ours, AtMost: 29.9}, Fail},
		{&Bound{Of: Ratio, AtMost: 1.5}, Pass},
		{&Bound{Of: Ratio, AtMost: 1.4}, Fail},
		{&Bound{Of: Difference, AtMost: 10}, Pass},
		{&Bound{Of: Difference, AtMost: 9}, Fail},
	} {
		row := Row{Bound: test.bound}
		g.Expect(row.Result()).To(Equal(NotMeasured))
		row.Measured([]float64{30}, []float64{20})
		g.Expect(row.Result()).To(Equal(test.result), "%+v", test.bound)
	}
	withoutReference := Row{Bound: &Bound{Of: Ratio, AtMost: 1}}
	withoutReference.Measured([]float64{1}, nil)
	g.Expect(withoutReference.Result()).To(Equal(NotMeasured))
}

func TestReport_passesIfNoRowFailsOrIsMissing(t *testing.T) {
	g := NewWithT(t)
	good, bad, free, missing := &Row{Bound: &Bound{Of: Ours, AtMost: 1}}, &Row{Bound: &Bound{Of: Ours, AtMost: 1}}, &Row{}, &Row{}
	good.Measured([]float64{1}, nil)
	bad.Measured([]float64{2}, nil)
	free.Measured([]float64{3}, nil)
	g.Expect((&Report{Rows: []*Row{good, free}}).Passed()).To(BeTrue())
	g.Expect((&Report{Rows: []*Row{good, bad}}).Passed()).To(BeFalse())
	g.Expect((&Report{Rows: []*Row{good, missing}}).Passed()).To(BeFalse())
}

func TestReport_isTheSameAsTableAndJSON(t *testing.T) {
	g := NewWithT(t)
	ratio := &Row{ID: "git/clone", Name: "a clone", Unit: Milliseconds, Against: "git http-backend", Bound: &Bound{Of: Ratio, AtMost: 1.1}}
	ratio.Measured([]float64{12, 12, 12}, []float64{10, 10, 10})
	more := &Row{ID: "git/push-500", Name: "a push", Unit: Milliseconds, Against: "one rule", Bound: &Bound{Of: Difference, AtMost: 5}}
	more.Measured([]float64{12, 12}, []float64{10, 10})
	missing := &Row{ID: "start/first", Name: "a start", Unit: Seconds, Err: errors.New("no network")}
	report := Report{Commit: "abc", Machine: Machine{OS: "linux", Cores: 2}, Rows: []*Row{ratio, more, missing}}

	var table bytes.Buffer
	g.Expect(report.WriteTable(&table)).To(Succeed())
	g.Expect(table.String()).To(MatchRegexp(`git/clone +a clone +12\.0 ms \(12\.0-12\.0\) +10\.0 ms \(.*\) +1\.20 \(1\.20-1\.20\) +ratio <= 1\.1 +FAIL +git http-backend`))
	g.Expect(table.String()).To(MatchRegexp(`git/push-500 .* \+2\.0 \(\+2\.0 to \+2\.0\) ms +<= \+5 ms +pass +one rule`))
	g.Expect(table.String()).To(MatchRegexp(`start/first +a start +- +- +- +- +NOT MEASURED +-`))
	g.Expect(table.String()).To(ContainSubstring("start/first was not measured: no network"))

	path := filepath.Join(t.TempDir(), "bench.json")
	g.Expect(report.WriteJSON(path)).To(Succeed())
	text, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	var read struct {
		Rows []struct {
			ID, Result, Error string
			Ratio             struct{ Median float64 }
			Ours              struct{ Samples []float64 }
		}
	}
	g.Expect(json.Unmarshal(text, &read)).To(Succeed())
	g.Expect(read.Rows).To(HaveLen(3))
	g.Expect(read.Rows[0].Result).To(Equal("fail"))
	g.Expect(read.Rows[0].Ratio.Median).To(Equal(1.2))
	g.Expect(read.Rows[0].Ours.Samples).To(Equal([]float64{12, 12, 12}))
	g.Expect(read.Rows[1].Result).To(Equal("pass"))
	g.Expect(read.Rows[2].Result).To(Equal("not measured"))
	g.Expect(read.Rows[2].Error).To(Equal("no network"))
}
