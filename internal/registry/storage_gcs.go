//go:build gcs

package registry

import _ "github.com/distribution/distribution/v3/registry/storage/driver/gcs" // the driver gcs
