package figures

import (
	"encoding/json"
	"math"
	"slices"
)

// Summary is what a series of samples comes to.
type Summary struct {
	Median float64
	// Low and High are the quartiles: half of the samples lie between them.
	Low, High float64
	// Samples are in the order in which they were measured.
	Samples []float64
}

// Summarize returns the summary of samples, of which there is at least one.
func Summarize(samples []float64) Summary {
	sorted := slices.Sorted(slices.Values(samples))
	return Summary{
		Median: quantile(sorted, 0.5), Low: quantile(sorted, 0.25), High: quantile(sorted, 0.75),
		Samples: samples,
	}
}

// quantile lies between two samples where it falls between them.
func quantile(sorted []float64, q float64) float64 {
	position := q * float64(len(sorted)-1)
	below := int(position)
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (position-float64(below))*(sorted[above]-sorted[below])
}

// paired summarizes what two series come to sample by sample: what disturbs the machine for a while disturbs both samples
// of a pair, which are measured one right after the other.
func paired(ours, reference []float64, of func(ours, reference float64) float64) *Summary {
	all := make([]float64, 0, len(ours))
	for i := range ours {
		all = append(all, of(ours[i], reference[i]))
	}
	s := Summarize(all)
	return &s
}

// MarshalJSON gives six significant digits: more says nothing.
func (s Summary) MarshalJSON() ([]byte, error) {
	samples := make([]float64, len(s.Samples))
	for i, value := range s.Samples {
		samples[i] = significant(value)
	}
	return json.Marshal(struct {
		Median  float64   `json:"median"`
		Low     float64   `json:"low"`
		High    float64   `json:"high"`
		Samples []float64 `json:"samples"`
	}{significant(s.Median), significant(s.Low), significant(s.High), samples})
}

func significant(value float64) float64 {
	if value == 0 {
		return 0
	}
	scale := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(value))))
	return math.Round(value*scale) / scale
}
