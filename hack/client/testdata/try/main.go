// Command try makes some requests with the generated client. Its arguments are the address of the REST API, a token, and a project with
// a label.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"github.com/forgeplane/forgeplane/hack/client"
)

func main() {
	if err := try(context.Background(), os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func try(ctx context.Context, server, token, project string) error {
	signIn := func(_ context.Context, r *http.Request) error {
		r.Header.Set("PRIVATE-TOKEN", token)
		return nil
	}
	c, err := client.NewClientWithResponses(server, client.WithRequestEditorFn(signIn))
	if err != nil {
		return err
	}
	got, err := c.GetProjectsByIdWithResponse(ctx, project, nil)
	if err != nil {
		return err
	}
	fmt.Println("project:", got.StatusCode(), got.JSON200.PathWithNamespace)
	label := client.PostProjectsByIdLabelsJSONRequestBody{Name: "generated", Color: "#d9534f"}
	for range 2 {
		made, err := c.PostProjectsByIdLabelsWithResponse(ctx, project, label)
		switch {
		case err != nil:
			return err
		case made.JSON409 != nil:
			refused, err := made.JSON409.AsMessageError()
			if err != nil {
				return err
			}
			message, err := refused.Message.AsMessageErrorMessage0()
			if err != nil {
				return err
			}
			fmt.Println("label:", made.StatusCode(), message)
		default:
			fmt.Println("label:", made.StatusCode(), made.JSON201.Name, made.JSON201.Color)
		}
	}
	one := int64(1)
	page, err := c.GetProjectsByIdLabelsWithResponse(ctx, project, &client.GetProjectsByIdLabelsParams{PerPage: &one})
	if err != nil {
		return err
	}
	fmt.Println("labels:", page.StatusCode(), len(*page.JSON200), page.HTTPResponse.Header.Get("X-Next-Page"))
	missing, err := c.GetProjectsByIdWithResponse(ctx, project+"-none", nil)
	if err != nil {
		return err
	}
	fmt.Println("missing:", missing.StatusCode(), missing.JSON404 != nil)
	return nil
}
