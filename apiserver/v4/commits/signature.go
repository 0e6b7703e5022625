package commits

import (
	"context"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// Signature is the signature of a commit. Its key and signer are empty, because Forgeplane has no keys with which it could verify a
// signature.
type Signature struct {
	SignatureType      string `json:"signature_type" doc:"PGP, SSH or X509."`
	VerificationStatus string `json:"verification_status" doc:"Always unknown_key."`
	CommitSource       string `json:"commit_source" doc:"Always gitaly, for compatibility."`
}

type signatureRequest struct {
	SHA string `param:"sha" doc:"A branch, tag or commit."`
}

func (f *Family) signature(ctx context.Context, s auth.Project, r *signatureRequest) (Signature, error) {
	_, c, err := f.find(ctx, s, r.SHA)
	if err == nil && c.Signed == "" {
		err = endpoint.NotFound("Signature")
	}
	if err != nil {
		return Signature{}, err
	}
	return Signature{SignatureType: c.Signed, VerificationStatus: "unknown_key", CommitSource: "gitaly"}, nil
}
