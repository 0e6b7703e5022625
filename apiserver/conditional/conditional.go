// Package conditional removes declared objects on the condition that a client may set: that nobody has changed them since it
// looked (API behaviour, section 1.1). Its endpoints are endpoint.Conditional.
package conditional

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/declare"
)

// Delete removes obj, unless the condition of the request that ctx belongs to fails. Its errors are those of declare.Writer.
func Delete(ctx context.Context, w *declare.Writer, obj client.Object) error {
	return w.DeleteUnmodified(ctx, obj, endpoint.UnmodifiedSince(ctx))
}

// Check is for a removal that begins with something other than obj: it says whether the condition holds for obj.
func Check(ctx context.Context, w *declare.Writer, obj client.Object) error {
	return w.Unmodified(ctx, obj, endpoint.UnmodifiedSince(ctx))
}
