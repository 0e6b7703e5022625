package githttp

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git/transfer"
)

func TestParse(t *testing.T) {
	const fetch, push = "application/x-git-upload-pack-request", "application/x-git-receive-pack-request"
	for _, c := range []struct {
		method, target string
		header         [3]string // Content-Type, Content-Encoding, Git-Protocol
		want           request
		status         int // the status of a refusal
	}{
		{"GET", "/g/p.git/info/refs?service=git-upload-pack", [3]string{}, request{path: "g/p", service: transfer.UploadPack, advertise: true}, 0},
		{"GET", "/g/s/p.git/info/refs?service=git-receive-pack", [3]string{"", "", "version=2"}, request{path: "g/s/p", service: transfer.ReceivePack, advertise: true, protocol: "version=2"}, 0},
		{"GET", "/g/p.git.git/info/refs?service=git-upload-pack", [3]string{}, request{path: "g/p.git", service: transfer.UploadPack, advertise: true}, 0},
		{"POST", "/g/p.git/git-upload-pack", [3]string{fetch}, request{path: "g/p", service: transfer.UploadPack}, 0},
		{"POST", "/g/p.git/git-upload-pack", [3]string{fetch + "; charset=x", "gzip", "version=1"}, request{path: "g/p", service: transfer.UploadPack, gzip: true, protocol: "version=1"}, 0},
		{"POST", "/g/p.git/git-receive-pack", [3]string{push, "identity"}, request{path: "g/p", service: transfer.ReceivePack}, 0},
		{"POST", "/gr%C3%B6%C3%9Fe/p.git/git-receive-pack", [3]string{push}, request{path: "größe/p", service: transfer.ReceivePack}, 0},

		// A path that no project can have is not looked up, and is answered like a path that does not exist.
		{"POST", "/../../etc/p.git/git-upload-pack", [3]string{fetch}, request{service: transfer.UploadPack}, 0},
		{"POST", "/g/%2e%2e/p.git/git-upload-pack", [3]string{fetch}, request{service: transfer.UploadPack}, 0},
		{"POST", "/g%2Fp.git/git-upload-pack", [3]string{fetch}, request{service: transfer.UploadPack}, 0},
		{"POST", "/g%00/p.git/git-upload-pack", [3]string{fetch}, request{service: transfer.UploadPack}, 0},
		{"POST", "/g%0a/p.git/git-upload-pack", [3]string{fetch}, request{service: transfer.UploadPack}, 0},
		{"POST", "/g/%ff.git/git-upload-pack", [3]string{fetch}, request{service: transfer.UploadPack}, 0},
		{"POST", "/g//p.git/git-upload-pack", [3]string{fetch}, request{service: transfer.UploadPack}, 0},
		{"POST", "/.git/git-upload-pack", [3]string{fetch}, request{service: transfer.UploadPack}, 0},
		{"POST", "/" + strings.Repeat("a", 256) + ".git/git-upload-pack", [3]string{fetch}, request{service: transfer.UploadPack}, 0},

		{"GET", "/g/p/info/refs?service=git-upload-pack", [3]string{}, request{}, 404},
		{"GET", "/g/p.git/HEAD", [3]string{}, request{}, 404},
		{"POST", "/g/p.git/info/lfs/objects/batch", [3]string{}, request{}, 404},
		{"GET", "/g/p.git/info/refs", [3]string{}, request{}, 403},
		{"GET", "/g/p.git/info/refs?service=git-upload-archive", [3]string{}, request{}, 403},
		{"GET", "/g/p.git/info/refs?service=upload-pack", [3]string{}, request{}, 403},
		{"POST", "/g/p.git/info/refs?service=git-upload-pack", [3]string{}, request{}, 405},
		{"GET", "/g/p.git/git-upload-pack", [3]string{}, request{}, 405},
		{"POST", "/g/p.git/git-upload-pack", [3]string{}, request{}, 415},
		{"POST", "/g/p.git/git-upload-pack", [3]string{push}, request{}, 415},
		{"POST", "/g/p.git/git-upload-pack", [3]string{fetch, "br"}, request{}, 415},
		{"GET", "/g/p.git/info/refs?service=git-upload-pack", [3]string{"", "", "version=2\nX=1"}, request{}, 400},
		{"GET", "/g/p.git/info/refs?service=git-upload-pack", [3]string{"", "", "version=2 --x"}, request{}, 400},
		{"GET", "/g/p.git/info/refs?service=git-upload-pack", [3]string{"", "", strings.Repeat("a=b:", 100)}, request{}, 400},
	} {
		u, err := url.Parse(c.target)
		if err != nil {
			t.Fatal(err)
		}
		header := http.Header{}
		for i, name := range []string{"Content-Type", "Content-Encoding", "Git-Protocol"} {
			header.Set(name, c.header[i])
		}
		got, err := parse(c.method, u, header)
		var refused refusal
		if errors.As(err, &refused); got != c.want || refused.status != c.status {
			t.Errorf("%s %s %q: got %+v, %d (%v); want %+v, %d", c.method, c.target, c.header, got, refused.status, err, c.want, c.status)
		}
		if !Match(&http.Request{URL: u}) {
			t.Errorf("%s does not match", c.target)
		}
	}
	for _, target := range []string{"/", "/api/v4/projects", "/g/p", "/g/p.git", "/apis/rest.forgeplane.dev/v4/projects/1"} {
		if Match(&http.Request{URL: &url.URL{Path: target}}) {
			t.Errorf("%s matches", target)
		}
	}
}

func TestVersion(t *testing.T) {
	for protocol, want := range map[string]int{"": 0, "version=1": 1, "version=2": 2, "x:version=2": 2, "version=3": 0, "version=22": 0} {
		if got := (request{protocol: protocol}).version(); got != want {
			t.Errorf("%q: got %d", protocol, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("GET", "/g/p.git/info/refs", "", "service=git-upload-pack", "version=2", "", "")
	f.Add("POST", "/g/p.git/git-receive-pack", "", "", "", "application/x-git-receive-pack-request", "gzip")
	f.Add("POST", "/g/../p.git/git-upload-pack", "/g%2F..%2fp.git/git-upload-pack", "", "a=b:c", "application/x-git-upload-pack-request", "")
	f.Fuzz(func(t *testing.T, method, path, raw, query, protocol, kind, encoding string) {
		header := http.Header{"Git-Protocol": {protocol}, "Content-Type": {kind}, "Content-Encoding": {encoding}}
		req, err := parse(method, &url.URL{Path: path, RawPath: raw, RawQuery: query}, header)
		if err != nil {
			var refused refusal
			if !errors.As(err, &refused) || refused.status < 400 || refused.status > 499 || refused.text == "" || req != (request{}) {
				t.Errorf("got %+v, %v", req, err)
			}
			return
		}
		if req.service != transfer.UploadPack && req.service != transfer.ReceivePack {
			t.Errorf("service %q", req.service)
		}
		if req.advertise != (method == http.MethodGet) {
			t.Errorf("%s is taken for %+v", method, req)
		}
		if strings.ContainsFunc(req.protocol, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("protocol %q", req.protocol)
		}
		for part := range strings.SplitSeq(req.path, "/") {
			if part == ".." || part == "." || part == "" && req.path != "" {
				t.Errorf("path %q", req.path)
			}
		}
	})
}
