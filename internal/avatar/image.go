// Package avatar has the pictures of projects, groups and users: it makes uploads safe to serve, stores them, and removes those that nothing
// has any more.
package avatar

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // a format of uploads
	_ "image/jpeg"
	"image/png"
	"io"

	_ "golang.org/x/image/bmp" // a format of uploads
	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // a format of uploads
)

const (
	// MaxUpload is the maximum size of an upload, in bytes.
	MaxUpload = 200 << 10
	// MaxPixels is the maximum number of pixels of an upload.
	MaxPixels = 2048 * 2048
	// maxSide is the maximum width and height of a stored avatar, in pixels. Larger uploads are scaled down.
	maxSide = 512
	// maxStored is more than the size of any stored avatar, in bytes.
	maxStored = 4 << 20
)

// Type is the media type of every stored avatar.
const Type = "image/png"

// Refused says why an upload cannot be an avatar, in the words of the REST API.
type Refused string

// Error implements error.
func (r Refused) Error() string { return string(r) }

// The reasons for refusing an upload.
const (
	TooLarge    Refused = "is too big (should be at most 200 KiB)"
	TooWide     Refused = "has too many pixels (should be at most 2048 x 2048)"
	Unsupported Refused = "file format is not supported. Please try one of the following supported formats: image/png, image/jpeg, image/gif, image/bmp, image/webp"
)

// Decode returns an upload as a PNG without anything else that was in the upload, such as metadata, scripts or further frames. The content
// decides what format it is. The error is Refused if the upload cannot be an avatar.
func Decode(upload io.ReadSeeker, size int64) ([]byte, error) {
	if size > MaxUpload {
		return nil, TooLarge
	}
	// The header has the number of pixels, so that nothing larger is ever in memory.
	config, _, err := image.DecodeConfig(io.LimitReader(upload, MaxUpload))
	switch {
	case err != nil, config.Width < 1, config.Height < 1:
		return nil, Unsupported
	case config.Width > MaxPixels/config.Height:
		return nil, TooWide
	}
	if _, err := upload.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading an avatar: %w", err)
	}
	picture, _, err := image.Decode(io.LimitReader(upload, MaxUpload))
	if err != nil {
		return nil, Unsupported
	}
	var text bytes.Buffer
	if err := png.Encode(&text, shrink(picture)); err != nil {
		return nil, fmt.Errorf("encoding an avatar: %w", err)
	}
	if text.Len() > maxStored {
		return nil, errors.New("the encoded avatar is too large")
	}
	return text.Bytes(), nil
}

// shrink returns a picture as colors of 8 bits, with sides of at most maxSide.
func shrink(picture image.Image) image.Image {
	from := picture.Bounds()
	width, height := from.Dx(), from.Dy()
	if longer := max(width, height); longer > maxSide {
		width, height = max(1, width*maxSide/longer), max(1, height*maxSide/longer)
	}
	small := image.NewNRGBA(image.Rect(0, 0, width, height))
	draw.ApproxBiLinear.Scale(small, small.Bounds(), picture, from, draw.Src, nil)
	return small
}
