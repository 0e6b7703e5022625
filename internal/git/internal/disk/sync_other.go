//go:build !linux

package disk

import "os"

// StartSync does nothing: only Linux can begin to sync a file without waiting.
func StartSync(*os.File, int64, int64) {}
