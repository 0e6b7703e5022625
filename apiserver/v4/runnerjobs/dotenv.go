package runnerjobs

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/launch"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// dotenv is the type of the report whose variables later jobs get.
const dotenv = "dotenv"

const (
	// maxDotenv is the maximum size of a dotenv report in bytes.
	maxDotenv = 5 << 10
	// maxOutputs is the maximum number of variables in a dotenv report.
	maxOutputs = 150
)

// keepOutputs records the variables of a dotenv report. A report that cannot be read gives 400.
func (f *Family) keepOutputs(ctx context.Context, job int64, r *uploadRequest) error {
	var content io.Reader = r.File.Open()
	if r.Format == "gzip" {
		unpacked, err := gzip.NewReader(content)
		if err != nil {
			return endpoint.BadRequest("The dotenv report is not packed with gzip")
		}
		content = unpacked
	}
	text, err := io.ReadAll(io.LimitReader(content, maxDotenv+1))
	if err != nil {
		return endpoint.BadRequest("The dotenv report cannot be unpacked")
	}
	all, err := outputs(string(text))
	if err != nil {
		return endpoint.BadRequest("Invalid dotenv report: " + err.Error())
	}
	return f.Activity.Pipelines.SetOutputs(ctx, job, all)
}

// outputs reads a dotenv report: a line for each variable, as in NAME=value. The last line for a name counts.
func outputs(text string) ([]pipeline.Output, error) {
	if len(text) > maxDotenv {
		return nil, fmt.Errorf("it is larger than %d bytes", maxDotenv)
	}
	if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
		return nil, errors.New("it is not a text in UTF-8")
	}
	var all []pipeline.Output
	known := map[string]int{}
	for number, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		key, value, is := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if wrong := launch.CheckVariable(key, value); !is || wrong != "" {
			return nil, fmt.Errorf("line %d is not of the form NAME=value, with letters, digits and underscores in the name", number+1)
		}
		if i, again := known[key]; again {
			all[i].Value = value
			continue
		}
		known[key] = len(all)
		all = append(all, pipeline.Output{Key: key, Value: value})
	}
	if len(all) > maxOutputs {
		return nil, fmt.Errorf("it has more than %d variables", maxOutputs)
	}
	return all, nil
}
