// Package client is the place of the client of the REST API that oapi-codegen generates from the OpenAPI document. A test generates it, and
// keeps it in no file of this directory.
package client

// Clients that oapi-codegen generates use its runtime.
import _ "github.com/oapi-codegen/runtime"
