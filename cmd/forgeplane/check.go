package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// checked is the name of the project that a check creates and deletes. purpose is its description, by which another check recognizes a
// leftover project.
const checked, purpose = "forgeplane-check", "Created by a check, and removed by the next one."

// check is a check of a running forge.
type check struct {
	url, token string
	git        string
}

// checkCommand returns the command that checks a running forge as a client.
func checkCommand() *cobra.Command {
	c := check{git: "git"}
	var tokenFile, kubeconfig string
	var kubernetes bool
	timeout := 2 * time.Minute
	cmd := &cobra.Command{
		Use: "check", Short: "Try a running forge: push, clone and ask the REST API", Args: cobra.NoArgs,
		Long: `Create the project ` + checked + ` of the user of an access token over REST, push a commit to it, clone it, find the commit over REST,
and delete the project. It refuses if the user has another project of this name. "helm test" does this.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			token, err := os.ReadFile(tokenFile)
			if err != nil {
				return fmt.Errorf("reading --token-file: %w", err)
			}
			c.token, c.url = strings.TrimSpace(string(token)), strings.TrimSuffix(c.url, "/")
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			if err := c.run(ctx); err != nil {
				return err
			}
			if kubernetes {
				if err := askAggregated(ctx, kubeconfig); err != nil {
					return fmt.Errorf("asking the REST API through kube-apiserver: %w", err)
				}
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "The forge accepts pushes, serves clones and answers over REST.")
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.url, "url", "http://localhost:8080", "URL of the forge")
	f.StringVar(&tokenFile, "token-file", "", "file with an access token that has the scope api")
	f.StringVar(&c.git, "git-binary", c.git, "git to run")
	f.BoolVar(&kubernetes, "kubernetes", false, "ask the REST API through kube-apiserver, too")
	f.DurationVar(&timeout, "timeout", timeout, "time limit of the command")
	bindKubeconfig(cmd.Flags(), &kubeconfig)
	return cmd
}

func (c check) run(ctx context.Context) (err error) {
	var user struct {
		Username string `json:"username"`
	}
	if err := c.ask(ctx, http.MethodGet, "/user", nil, &user); err != nil {
		return err
	}
	path := "/projects/" + url.PathEscape(user.Username+"/"+checked)
	remove := func() error { return c.remove(context.WithoutCancel(ctx), path) }
	if err := c.clear(ctx, path, remove); err != nil {
		return err
	}
	if err := c.ask(ctx, http.MethodPost, "/projects", map[string]string{"name": checked, "description": purpose, "visibility": "private"}, nil); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	commit, err := c.pushAndClone(ctx, c.url+"/"+user.Username+"/"+checked+".git")
	if err != nil {
		return err
	}
	var found struct {
		ID string `json:"id"`
	}
	if err := c.ask(ctx, http.MethodGet, path+"/repository/commits/main", nil, &found); err != nil {
		return err
	}
	if found.ID != commit {
		return fmt.Errorf("the last commit over REST is %s, but %s was pushed", found.ID, commit)
	}
	return nil
}

// clear deletes the project of an earlier check. It returns an error for any other project with that name.
func (c check) clear(ctx context.Context, path string, remove func() error) error {
	var left struct {
		Description string `json:"description"`
		FullPath    string `json:"path_with_namespace"`
	}
	err := c.ask(ctx, http.MethodGet, path, nil, &left)
	switch {
	case isNotFound(err):
		return nil
	case err != nil:
		return err
	case left.Description != purpose:
		return fmt.Errorf("the project %s is not one of a check: rename it, or use the token of another user", left.FullPath)
	default:
		return remove()
	}
}

// pushAndClone pushes a commit to a repository, clones it, and returns the commit.
func (c check) pushAndClone(ctx context.Context, remote string) (commit string, err error) {
	dir, err := os.MkdirTemp("", ".tmp-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	pushed, cloned := filepath.Join(dir, "pushed"), filepath.Join(dir, "cloned")
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main", pushed},
		{"-C", pushed, "commit", "--quiet", "--allow-empty", "--message=Check"},
	} {
		if _, err := c.runGit(ctx, dir, args...); err != nil {
			return "", err
		}
	}
	// The repository is created shortly after the project.
	var refusal error
	err = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		_, refusal = c.runGit(ctx, dir, "-C", pushed, "push", "--quiet", remote, "main")
		return refusal == nil, nil
	})
	if err != nil {
		return "", errors.Join(err, refusal)
	}
	if _, err := c.runGit(ctx, dir, "clone", "--quiet", remote, cloned); err != nil {
		return "", err
	}
	want, err := c.runGit(ctx, dir, "-C", pushed, "rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	got, err := c.runGit(ctx, dir, "-C", cloned, "rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	if got != want {
		return "", fmt.Errorf("the clone has the commit %s, but %s was pushed", got, want)
	}
	return want, nil
}

// runGit runs git in dir, and returns its output. It gets the token in the environment, which other users of the machine cannot read.
func (c check) runGit(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.git, args...)
	var messages bytes.Buffer
	cmd.Dir, cmd.Stderr = dir, &messages
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Check", "GIT_AUTHOR_EMAIL=check@example.com", "GIT_COMMITTER_NAME=Check", "GIT_COMMITTER_EMAIL=check@example.com",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.extraHeader",
		"GIT_CONFIG_VALUE_0=Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("check:"+c.token)),
	}
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(messages.String()))
	}
	return strings.TrimSpace(string(output)), nil
}

// remove deletes the project, if it exists, and waits until it is gone.
func (c check) remove(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := c.ask(ctx, http.MethodDelete, path, nil, nil)
		if isNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

func isNotFound(err error) bool {
	var status statusError
	return errors.As(err, &status) && status.code == http.StatusNotFound
}

// statusError is a response other than success.
type statusError struct {
	code int
	text string
}

func (e statusError) Error() string { return e.text }

// ask sends a request to the REST API, with body as JSON unless it is nil, and decodes the answer into answer unless it is nil.
func (c check) ask(ctx context.Context, method, path string, body, answer any) error {
	var text io.Reader = http.NoBody
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		text = bytes.NewReader(encoded)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.url+"/api/v4"+path, text)
	if err != nil {
		return err
	}
	r.Header.Set("Private-Token", c.token)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	got, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return statusError{response.StatusCode, fmt.Sprintf("%s %s: %s: %s", method, path, response.Status, got)}
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(got, answer)
}

// askAggregated gets the resources of the REST API from kube-apiserver, which all authenticated callers can see.
func askAggregated(ctx context.Context, kubeconfig string) error {
	config, err := clusterConfig(kubeconfig)
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(config.Host, "/")+"/apis/rest.forgeplane.dev/v4", http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}
