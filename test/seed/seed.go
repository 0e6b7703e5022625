// Package seed has the seed of the random choices of tests, so that a run can be repeated.
package seed

import (
	"fmt"
	"os"
	"strconv"
)

// Variable names the environment variable with the seed.
const Variable = "FORGEPLANE_TEST_SEED"

// Value returns the seed: 1, or the number in FORGEPLANE_TEST_SEED. It panics if that is not a number.
func Value() uint64 {
	text, set := os.LookupEnv(Variable)
	if !set {
		return 1
	}
	value, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		panic(fmt.Sprintf("%s is %q: it must be a number from 0 to 9223372036854775807", Variable, text))
	}
	return value
}
