// Package patience says how long tests wait for what must happen.
package patience

import "time"

// Wait is long enough for the slowest machine. It costs time only if a test fails. Specs that suite.Run runs wait so long by default.
const Wait = 2 * time.Minute
