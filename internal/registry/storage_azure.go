//go:build azure

package registry

import _ "github.com/distribution/distribution/v3/registry/storage/driver/azure" // the driver azure
