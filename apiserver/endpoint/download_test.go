package endpoint_test

import (
	"mime"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

func TestAttachment_namesTheFileInBothForms(t *testing.T) {
	for name, want := range map[string]string{
		"artifacts.zip": `attachment; filename="artifacts.zip"; filename*=UTF-8''artifacts.zip`,
		"a b+c.txt":     `attachment; filename="a b+c.txt"; filename*=UTF-8''a%20b%2Bc.txt`,
		"ü\"\\\r\n.txt": `attachment; filename="_____.txt"; filename*=UTF-8''%C3%BC%22%5C%0D%0A.txt`,
	} {
		got := endpoint.Attachment(name).Get("Content-Disposition")
		if got != want {
			t.Errorf("%q: got %s, want %s", name, got, want)
		}
		if _, parameters, err := mime.ParseMediaType(got); err != nil || parameters["filename"] != name {
			t.Errorf("%q is read as %q: %v", name, parameters["filename"], err)
		}
	}
}
