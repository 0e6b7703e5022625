// Package instance is the family of the description of the installation: /version and /metadata.
package instance

import (
	"context"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
)

// apiVersion is the version of the API, in the form that clients compare (API behaviour, section 1.4).
const apiVersion = "16.5.0-ee"

// Family serves the description of the installation.
type Family struct {
	family.Kit
}

// New returns the family.
func New(k family.Kit) *Family { return &Family{k} }

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	scopes := []string{"api", "read_api", "read_user"}
	return endpoint.Table{
		endpoint.Get("/version", f.version).Scopes(scopes...).Doc("Get the version of the API."),
		endpoint.Get("/metadata", f.metadata).Scopes(scopes...).Doc("Get the version of the API with its metadata."),
	}
}

// Version is the version that clients check when they start.
type Version struct {
	Version  string `json:"version"`
	Revision string `json:"revision" doc:"Version of Forgeplane."`
}

func (f *Family) version(context.Context, auth.Instance, *endpoint.None) (Version, error) {
	return Version{Version: apiVersion, Revision: f.Version}, nil
}

// Metadata is Version with the agent server for Kubernetes, which Forgeplane does not have.
type Metadata struct {
	Version
	KAS        KAS  `json:"kas"`
	Enterprise bool `json:"enterprise"`
}

// KAS is the agent server.
type KAS struct {
	Enabled     bool    `json:"enabled"`
	ExternalURL *string `json:"externalUrl"`
	Version     *string `json:"version"`
}

func (f *Family) metadata(ctx context.Context, s auth.Instance, r *endpoint.None) (Metadata, error) {
	v, err := f.version(ctx, s, r)
	// Forgeplane has no tiers, so the features of all tiers are available.
	return Metadata{Version: v, Enterprise: true}, err
}
