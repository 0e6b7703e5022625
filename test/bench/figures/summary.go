package figures

import (
	"encoding/json"
	"math"
	"slices"
)

// Summary describes a series of samples.
type Summary struct {
	Median float64
	// Low and High are the quartiles: half of the samples lie between them.
	Low, High float64
	// Samples are in the order in which they were measured.
	Samples []float64
}

// Summarize returns the summary of at least one sample.
func Summarize(samples []float64) Summary {
	sorted := slices.Sorted(slices.Values(samples))
	return Summary{
		Median: quantile(sorted, 0.5), Low: quantile(sorted, 0.25), High: quantile(sorted, 0.75),
		Samples: samples,
	}
}

// Quantile returns the value below which a share of the samples lie.
func (s Summary) Quantile(share float64) float64 {
	return quantile(slices.Sorted(slices.Values(s.Samples)), share)
}

// quantile interpolates between two samples if necessary.
func quantile(sorted []float64, q float64) float64 {
	position := q * float64(len(sorted)-1)
	below := int(position)
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (position-float64(below))*(sorted[above]-sorted[below])
}

// StandardError estimates the distance of the median from the median of infinitely many samples.
func (s Summary) StandardError() float64 {
	// In a normal distribution, the quartiles are 1.349 standard deviations apart, and the standard error of the median is 1.253 times the standard
	// error of the mean.
	return 1.253 / 1.349 * (s.High - s.Low) / math.Sqrt(float64(len(s.Samples)))
}

// Ratios summarizes the ratios of pairs of samples. There must be at least one pair. If the samples of a pair are measured directly after each
// other, a disturbance of the machine affects both.
func Ratios(ours, reference []float64) Summary {
	return paired(ours, reference, func(o, r float64) float64 { return o / r })
}

// Differences summarizes the differences of pairs of samples in the same way.
func Differences(ours, reference []float64) Summary {
	return paired(ours, reference, func(o, r float64) float64 { return o - r })
}

func paired(ours, reference []float64, of func(ours, reference float64) float64) Summary {
	all := make([]float64, 0, len(ours))
	for i := range ours {
		all = append(all, of(ours[i], reference[i]))
	}
	return Summarize(all)
}

// MarshalJSON writes six significant digits, because more digits are meaningless.
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
