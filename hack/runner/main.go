// Command runner creates a CI runner at the Forgeplane of "make run", and executes its jobs with a shell until it is stopped.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	log := func(err error) {
		fmt.Fprintln(os.Stderr, "runner:", err)
		os.Exit(1)
	}
	data := flag.String("data", ".dev/runner", "`directory` for the builds and the token of the runner")
	program := flag.String("program", "bin/gitlab-runner", "`path` of gitlab-runner")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *data, *program); err != nil && ctx.Err() == nil {
		log(err)
	}
}

// run creates the runner, or takes the one that was created before, and starts the program.
func run(ctx context.Context, data, program string) error {
	forge, token := os.Getenv("FORGEPLANE_URL"), os.Getenv("FORGEPLANE_TOKEN")
	if forge == "" || token == "" {
		return errors.New("FORGEPLANE_URL and FORGEPLANE_TOKEN are not set: start \"make run\", and run \". .dev/env\"")
	}
	data, err := filepath.Abs(data)
	if err != nil {
		return fmt.Errorf("finding the directory: %w", err)
	}
	home := filepath.Join(data, "home")
	for _, d := range []string{home, filepath.Join(data, "builds")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return fmt.Errorf("creating the directory: %w", err)
		}
	}
	own, err := authenticate(ctx, forge, token, filepath.Join(data, "token"))
	if err != nil {
		return err
	}
	fmt.Println("The runner waits for jobs. Press Ctrl-C to stop it.")
	c := exec.CommandContext(ctx, program, "run-single", "--url", forge, "--executor", "shell",
		"--shell", "bash", "--builds-dir", filepath.Join(data, "builds"), "--cache-dir", filepath.Join(data, "cache"))
	// Jobs run in a login shell, which must not depend on the profile and the credentials of the developer.
	c.Env = append(os.Environ(), "CI_SERVER_TOKEN="+own, "CONFIG_FILE="+filepath.Join(data, "config.toml"), "FORGEPLANE_TOKEN=", "HOME="+home)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 3 * time.Second // it would go on waiting for a job
	return c.Run()
}

// authenticate returns the token of the runner that is in a file if it is still valid, and otherwise that of a new one.
func authenticate(ctx context.Context, forge, token, file string) (string, error) {
	if known, err := os.ReadFile(file); err == nil {
		if _, err := post(ctx, forge+"/api/v4/runners/verify", "", url.Values{"token": {string(known)}}); err == nil {
			return string(known), nil
		}
	}
	made, err := post(ctx, forge+"/api/v4/user/runners", token, url.Values{"runner_type": {"instance_type"}, "description": {"make runner"}})
	if err != nil {
		return "", fmt.Errorf("creating a runner: %w", err)
	}
	if err := os.WriteFile(file, []byte(made), 0o600); err != nil {
		return "", fmt.Errorf("keeping the token of the runner: %w", err)
	}
	return made, nil
}

// post sends a form, and returns the token in the answer.
func post(ctx context.Context, to, token string, form url.Values) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("PRIVATE-TOKEN", token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return "", err
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return "", fmt.Errorf("%s: %s", answer.Status, body)
	}
	var said struct{ Token string }
	err = json.Unmarshal(body, &said)
	return said.Token, err
}
