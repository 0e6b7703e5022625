// Package avatar is how families take, store and serve the avatars of projects, groups and users.
package avatar

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/store"
	stored "github.com/forgeplane/forgeplane/internal/avatar"
	"github.com/forgeplane/forgeplane/internal/blob"
)

// maxUpload is the maximum size of an uploaded file, in bytes. A file that is smaller and still too large for an avatar gets an answer that
// says so.
const maxUpload = 1 << 20

// Upload is a parameter for an avatar. An empty text or null removes the avatar.
type Upload = endpoint.Optional[endpoint.File]

// Taking sets the limits of an endpoint that takes an Upload.
func Taking(e *endpoint.Endpoint) *endpoint.Endpoint { return e.Uploads(maxUpload, maxUpload) }

// Avatars are the avatars of an installation.
type Avatars struct{ store *stored.Store }

// New returns the avatars in a store.
func New(s *stored.Store) *Avatars { return &Avatars{s} }

// Sent is a requested change of an avatar. The zero value changes nothing.
type Sent struct {
	set     bool
	picture []byte
}

// Check returns the change that an upload requests. The error is a 400 with the reason if the upload cannot be an avatar.
func (a *Avatars) Check(ctx context.Context, u Upload) (Sent, error) {
	if !u.Set || u.Null {
		return Sent{set: u.Set}, nil
	}
	picture, err := a.store.Decode(ctx, u.Value.Open(), u.Value.Size)
	var refused stored.Refused
	if errors.As(err, &refused) {
		return Sent{}, endpoint.Invalid(map[string][]string{"avatar": {refused.Error()}})
	}
	return Sent{set: true, picture: picture}, err
}

// add stores a picture for an object, and returns its name, which is empty without a picture.
func (a *Avatars) add(ctx context.Context, of v1alpha1.Pictured, sent Sent) (string, error) {
	if sent.picture == nil {
		return "", nil
	}
	return a.store.Add(ctx, of, sent.picture)
}

// drop removes an avatar that no object has any more. If that fails, the sweeper does it later.
func (a *Avatars) drop(ctx context.Context, of v1alpha1.Pictured, name string) {
	if name != "" {
		_ = a.store.Remove(context.WithoutCancel(ctx), of, name)
	}
}

// Set changes the avatar of an object that a request may change, and returns the object.
func Set[K any, T v1alpha1.Pictured](ctx context.Context, a *Avatars, in *store.Store[K, T], of auth.Subject, found T, sent Sent) (T, error) {
	former := *found.Avatar()
	if !sent.set || former == "" && sent.picture == nil {
		return found, nil
	}
	name, err := a.add(ctx, found, sent)
	if err != nil {
		return found, err
	}
	// If it fails, the object may have the avatar all the same. Otherwise the sweeper removes it.
	obj, err := in.Observe(ctx, of, found, func(o T) { *o.Avatar() = name })
	if err != nil {
		return found, err
	}
	a.drop(ctx, found, former)
	return obj, nil
}

// Then gives an object that is about to be created the avatar that a request sent.
func (a *Avatars) Then(obj v1alpha1.Pictured, sent Sent) []store.Then {
	if sent.picture == nil {
		return nil
	}
	return []store.Then{func(ctx context.Context, w store.Unasked) error {
		name, err := a.add(ctx, obj, sent)
		if err != nil {
			return err
		}
		return w.Observe(ctx, obj, func() { *obj.Avatar() = name })
	}}
}

// Content returns the avatar of an object. The error is a 404 if it has none.
func (a *Avatars) Content(ctx context.Context, of v1alpha1.Pictured) (endpoint.Content, error) {
	picture, err := a.store.Get(ctx, of)
	if errors.Is(err, blob.ErrNotFound) {
		return endpoint.Content{}, endpoint.NotFound("Avatar")
	}
	if err != nil {
		return endpoint.Content{}, err
	}
	return endpoint.Content{
		Type: stored.Type, Size: int64(len(picture)), Header: http.Header{"Content-Disposition": {`inline; filename="avatar.png"`}},
		Write: func(w io.Writer) error {
			_, err := w.Write(picture)
			return err
		},
	}, nil
}
