package avatar_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"testing"

	"golang.org/x/image/bmp"

	"github.com/forgeplane/forgeplane/internal/avatar"
)

// picture returns a picture of random colors.
func picture(width, height int) *image.NRGBA {
	p := image.NewNRGBA(image.Rect(0, 0, width, height))
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the colors need not be secret
	for i := range p.Pix {
		p.Pix[i] = byte(random.Uint32())
	}
	return p
}

// plain returns a picture of one color.
func plain(width, height int) image.Image {
	return image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.White, color.Black})
}

func encoded(t *testing.T, encode func(into *bytes.Buffer) error) []byte {
	t.Helper()
	var text bytes.Buffer
	if err := encode(&text); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

func asPNG(t *testing.T, p image.Image) []byte {
	t.Helper()
	return encoded(t, func(into *bytes.Buffer) error { return png.Encode(into, p) })
}

func decode(upload []byte) ([]byte, error) {
	return avatar.Decode(bytes.NewReader(upload), int64(len(upload)))
}

func TestDecode_returnsPNG(t *testing.T) {
	small := picture(20, 10)
	for name, upload := range map[string][]byte{
		"PNG":  asPNG(t, small),
		"JPEG": encoded(t, func(into *bytes.Buffer) error { return jpeg.Encode(into, small, nil) }),
		"GIF":  encoded(t, func(into *bytes.Buffer) error { return gif.Encode(into, small, nil) }),
		"BMP":  encoded(t, func(into *bytes.Buffer) error { return bmp.Encode(into, small) }),
	} {
		got, err := decode(upload)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		stored, err := png.Decode(bytes.NewReader(got))
		if err != nil || stored.Bounds().Size() != image.Pt(20, 10) {
			t.Errorf("%s: got %v, %v", name, stored, err)
		}
	}
}

func TestDecode_keepsColorsOfSmallPicture(t *testing.T) {
	upload := picture(16, 16)
	got, err := decode(asPNG(t, upload))
	if err != nil {
		t.Fatal(err)
	}
	stored, err := png.Decode(bytes.NewReader(got))
	if err != nil {
		t.Fatal(err)
	}
	for x := range 16 {
		for y := range 16 {
			wantR, wantG, wantB, wantA := upload.At(x, y).RGBA()
			gotR, gotG, gotB, gotA := stored.At(x, y).RGBA()
			for i, d := range []uint32{gotR - wantR, gotG - wantG, gotB - wantB, gotA - wantA} {
				if d+512 > 1024 { // scaling rounds
					t.Fatalf("the color at %d, %d differs by %d in %d", x, y, int32(d), i)
				}
			}
		}
	}
}

func TestDecode_scalesLargePictureDown(t *testing.T) {
	for size, want := range map[image.Point]image.Point{{2048, 1024}: {512, 256}, {4096, 1}: {512, 1}, {512, 512}: {512, 512}} {
		got, err := decode(asPNG(t, plain(size.X, size.Y)))
		if err != nil {
			t.Fatal(err)
		}
		config, err := png.DecodeConfig(bytes.NewReader(got))
		if err != nil || image.Pt(config.Width, config.Height) != want {
			t.Errorf("%v: got %v, %v; want %v", size, config, err, want)
		}
	}
}

func TestDecode_dropsEverythingButPicture(t *testing.T) {
	upload := append(asPNG(t, picture(8, 8)), "<script>alert(1)</script>"...)
	got, err := decode(upload)
	if err != nil || bytes.Contains(got, []byte("script")) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestDecode_refusesUnsuitableUploads(t *testing.T) {
	huge := asPNG(t, plain(1, 1))
	binary.BigEndian.PutUint32(huge[16:], 1<<16) // the width in the header
	binary.BigEndian.PutUint32(huge[20:], 1<<16)
	truncated := asPNG(t, picture(64, 64))
	for name, c := range map[string]struct {
		upload []byte
		want   avatar.Refused
	}{
		"nothing":                      {nil, avatar.Unsupported},
		"SVG":                          {[]byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`), avatar.Unsupported},
		"HTML":                         {[]byte("<!doctype html><script>alert(1)</script>"), avatar.Unsupported},
		"a header with other content":  {append(asPNG(t, plain(1, 1))[:33:33], "<script>"...), avatar.Unsupported},
		"half a picture":               {truncated[:len(truncated)/2], avatar.Unsupported},
		"too many bytes":               {make([]byte, avatar.MaxUpload+1), avatar.TooLarge},
		"too many pixels":              {asPNG(t, plain(2049, 2048)), avatar.TooWide},
		"a header with a huge picture": {fixed(huge), avatar.TooWide},
	} {
		got, err := decode(c.upload)
		var refused avatar.Refused
		if !errors.As(err, &refused) || refused != c.want || got != nil {
			t.Errorf("%s: got %d bytes, %v; want %v", name, len(got), err, c.want)
		}
	}
}

// fixed returns a PNG whose header has a valid checksum again.
func fixed(text []byte) []byte {
	binary.BigEndian.PutUint32(text[29:], crc32.ChecksumIEEE(text[12:29]))
	return text
}
