//go:build !linux

package endpoint

import (
	"errors"
	"os"
)

func unnamed(dir string) (*os.File, error) { return removed(dir) }

func link(*os.File, string) error { return errors.ErrUnsupported }
