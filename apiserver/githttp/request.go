package githttp

import (
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/forgeplane/forgeplane/internal/git/transfer"
)

// request is a parsed request.
type request struct {
	// path is the full path of the project, or empty if no project can have the requested path.
	path    string
	service transfer.Service
	// advertise says that this is the request for the list of refs, which comes first.
	advertise bool
	// protocol is the Git-Protocol header.
	protocol string
	// gzip is true if the body is compressed.
	gzip bool
}

// Match reports whether a request is for the Handler and not for another part of the server.
func Match(r *http.Request) bool {
	_, found := cutEndpoint(r.URL.Path)
	return found || strings.Contains(r.URL.Path, ".git/")
}

const infoRefs = "/info/refs"

// cutEndpoint returns the part of a path before the suffix that the protocol defines.
func cutEndpoint(path string) (project string, found bool) {
	for _, endpoint := range []string{infoRefs, "/" + string(transfer.UploadPack), "/" + string(transfer.ReceivePack)} {
		if before, found := strings.CutSuffix(path, endpoint); found {
			return before, true
		}
	}
	return path, false
}

// parse parses the line and headers of a request. It does not depend on projects and users, so its refusals reveal nothing about them.
func parse(method string, u *url.URL, header http.Header) (request, error) {
	project, found := cutEndpoint(u.Path)
	project, suffixed := strings.CutSuffix(project, ".git")
	switch {
	case !found:
		return request{}, refusal{status: http.StatusNotFound, text: "This server supports only the smart HTTP protocol of Git."}
	case !suffixed:
		return request{}, refusal{status: http.StatusNotFound, text: "The URL of a repository must end with \".git\": please add it."}
	}
	req := request{protocol: header.Get("Git-Protocol")}
	if project = strings.TrimPrefix(project, "/"); validPath(project) && !strings.Contains(strings.ToLower(u.RawPath), "%2f") {
		req.path = project
	}
	if !protocolForm.MatchString(req.protocol) {
		return request{}, refusal{status: http.StatusBadRequest, text: "The Git-Protocol header is malformed."}
	}
	if strings.HasSuffix(u.Path, infoRefs) {
		req.advertise = true
		return req.parseService(method, u.Query().Get("service"))
	}
	req.service = transfer.Service(u.Path[strings.LastIndexByte(u.Path, '/')+1:])
	return req.parseBody(method, header)
}

// protocolForm matches values that are safe for the environment of git.
var protocolForm = regexp.MustCompile(`^([0-9a-zA-Z-]{1,32}(=[0-9a-zA-Z.-]{1,32})?(:[0-9a-zA-Z-]{1,32}(=[0-9a-zA-Z.-]{1,32})?){0,7})?$`)

func (req request) parseService(method, service string) (request, error) {
	req.service = transfer.Service(service)
	switch {
	case method != http.MethodGet:
		return request{}, refusal{status: http.StatusMethodNotAllowed, text: "This request must use GET.", allow: http.MethodGet}
	case service == "":
		return request{}, refusal{status: http.StatusForbidden, text: "This server supports only the smart HTTP protocol of Git: please use a newer client."}
	case req.service != transfer.UploadPack && req.service != transfer.ReceivePack:
		return request{}, refusal{status: http.StatusForbidden, text: "This server does not offer that service."}
	}
	return req, nil
}

func (req request) parseBody(method string, header http.Header) (request, error) {
	if method != http.MethodPost {
		return request{}, refusal{status: http.StatusMethodNotAllowed, text: "This request must use POST.", allow: http.MethodPost}
	}
	if kind, _, err := mime.ParseMediaType(header.Get("Content-Type")); err != nil || kind != "application/x-"+string(req.service)+"-request" {
		return request{}, refusal{status: http.StatusUnsupportedMediaType, text: "The Content-Type does not match the Git request."}
	}
	switch strings.ToLower(header.Get("Content-Encoding")) {
	case "", "identity":
	case "gzip", "x-gzip":
		req.gzip = true
	default:
		return request{}, refusal{status: http.StatusUnsupportedMediaType, text: "The Content-Encoding is not supported: please use gzip."}
	}
	return req, nil
}

// version returns the version of the protocol that the client requests.
func (req request) version() int {
	for part := range strings.SplitSeq(req.protocol, ":") {
		switch part {
		case "version=1":
			return 1
		case "version=2":
			return 2
		}
	}
	return 0
}

// validPath reports whether a full path has the form of the path of a project. It is never used as a path of files.
func validPath(path string) bool {
	if len(path) > 4096 || !utf8.ValidString(path) {
		return false
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." || len(part) > 255 || strings.ContainsFunc(part, unicode.IsControl) {
			return false
		}
	}
	return true
}
