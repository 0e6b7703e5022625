package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

const (
	// maintainerSecret has the token of a maintainer of the sample project.
	maintainerSecret = "max-token"
	sampleBranch     = "contact-page"
)

// sampleProject is a project in config/samples.
var sampleProject = client.ObjectKey{Namespace: "acme", Name: "website"}

// object is the body of a request.
type object = map[string]any

// addActivity creates a merge request and an issue in the sample project, unless an earlier start has created them.
func (d *development) addActivity(ctx context.Context, _ context.CancelCauseFunc) error {
	if !d.settings.samples || d.unready > 0 {
		return nil // the project may not be there
	}
	project := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Project"}}
	if err := d.client.Get(ctx, sampleProject, project); err != nil {
		return client.IgnoreNotFound(err) // it was deleted after an earlier start
	}
	token, err := d.token(ctx, maintainerSecret)
	if err != nil {
		return err
	}
	call := func(method, path string, body object, answer any) error {
		at := d.settings.url() + "/api/v4/projects/" + url.PathEscape(sampleProject.String()) + path
		if err := callREST(ctx, method, at, token, body, answer); err != nil {
			return fmt.Errorf("adding a merge request to %s: %w", sampleProject, err)
		}
		return nil
	}
	var before []object
	if err := call(http.MethodGet, "/merge_requests?state=all&source_branch="+sampleBranch, nil, &before); err != nil || len(before) > 0 {
		return err
	}
	d.reporter.say("adding a merge request and an issue to %s", sampleProject)
	var main []object
	if err := call(http.MethodGet, "/repository/branches", nil, &main); err != nil {
		return err
	}
	if len(main) == 0 {
		if err := call(http.MethodPost, "/repository/commits", commit("Add a home page", "main", "index.html", "<h1>Acme</h1>\n"), nil); err != nil {
			return err
		}
	}
	page := commit("Add a contact page", sampleBranch, "contact.html", "<a href=\"mailto:info@example.com\">Write to us</a>\n")
	page["start_branch"], page["force"] = "main", true // an interrupted start can have created the branch
	for _, add := range []struct {
		path string
		body object
	}{
		{"/repository/commits", page},
		{"/issues", object{"title": "Visitors cannot find an address"}},
		{"/merge_requests", object{"title": "Add a contact page", "source_branch": sampleBranch, "target_branch": "main", "description": "Closes #1"}},
	} {
		if err := call(http.MethodPost, add.path, add.body, nil); err != nil {
			return err
		}
	}
	return nil
}

// commit returns the request for a commit that adds a file to a branch.
func commit(message, branch, file, content string) object {
	return object{"branch": branch, "commit_message": message, "actions": []object{{"action": "create", "file_path": file, "content": content}}}
}

// callREST sends a request with a token and a body, and decodes the response into answer, unless that is nil.
func callREST(ctx context.Context, method, at, token string, body object, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("PRIVATE-TOKEN", token)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s: %s", method, r.URL.Path, response.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}
