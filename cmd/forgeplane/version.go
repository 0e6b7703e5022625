package main

import (
	_ "embed"
	"strings"
)

// number is the number of the version, which the chart has as well.
//
//go:embed VERSION
var number string

// commit is set by "make build" and "make image", if they know it.
var commit string

// versionOf returns a semantic version with the commit as the metadata of the build, such as 0.1.0+1f2e3d4c5b6a.
func versionOf(number, commit string) string {
	version := strings.TrimSpace(number)
	if commit != "" {
		version += "+" + commit
	}
	return version
}
