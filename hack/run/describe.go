package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/test/forgeplane"
)

const (
	// administrator and its Secret are objects in config/samples.
	administrator       = "root"
	administratorSecret = "root-token"
	// importedPath is the full path of the project that is imported from the checkout.
	importedPath = "forgeplane/forgeplane"
)

// describe writes the file to source, and prints the addresses and some commands to try. Without samples, the administrator can be missing.
func (d *development) describe(ctx context.Context, _ context.CancelCauseFunc) error {
	token, err := d.token(ctx, administratorSecret)
	if err != nil && (d.settings.samples || !apierrors.IsNotFound(err)) {
		return err
	}
	s := &d.settings
	if token != "" {
		credentials := fmt.Sprintf("http://%s:%s@%s\n", administrator, token, s.host())
		if err := os.WriteFile(s.gitCredentials(), []byte(credentials), 0o600); err != nil {
			return err
		}
	}
	// The file is put in place atomically, because another process may be waiting to read it.
	if err := os.WriteFile(s.env()+".new", []byte(d.environment(token)), 0o600); err != nil {
		return err
	}
	if err := os.Rename(s.env()+".new", s.env()); err != nil {
		return err
	}
	d.reporter.write(d.summary())
	return nil
}

// token returns the token in a Secret, which the controller of AccessToken has generated.
func (d *development) token(ctx context.Context, secretName string) (string, error) {
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: forgeplane.Namespace, Name: secretName}
	if err := d.client.Get(ctx, key, &secret); err != nil {
		return "", fmt.Errorf("reading the token in the Secret %s: %w", key, err)
	}
	token := string(secret.Data["token"])
	if token == "" {
		return "", fmt.Errorf("reading a token: the Secret %s has none in it", key)
	}
	return token, nil
}

// environment returns the content of the file to source.
func (d *development) environment(token string) string {
	s := &d.settings
	var text strings.Builder
	text.WriteString("# For shells: . " + quote(s.sourced()) + "\n")
	for _, variable := range [][2]string{
		{"FORGEPLANE_URL", s.url()},
		{"FORGEPLANE_TOKEN", token},
		{"FORGEPLANE_REGISTRY", s.host()},
		{"KUBECONFIG", d.controlPlane.Kubeconfig()},
		// kubectl caches the kinds of a cluster for hours, but here they can change with every start.
		{"KUBECACHEDIR", s.kubectlCache()},
	} {
		if variable[1] != "" {
			fmt.Fprintf(&text, "export %s=%s\n", variable[0], quote(variable[1]))
		}
	}
	fmt.Fprintf(&text, "export PATH=%s:\"$PATH\"\n", quote(filepath.Dir(d.binaries.Kubectl)))
	return text.String()
}

// quote returns a word of a POSIX shell, with quotes if necessary.
func quote(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return !strings.ContainsRune(plain, r) }) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// plain are the characters without a special meaning in a shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:"

func (d *development) summary() string {
	s := &d.settings
	state := "Ready"
	if d.unready > 0 {
		state = fmt.Sprintf("Running, with %d objects that are not Ready,", d.unready)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\n%s after %s. Ctrl-C stops it; the data stays in %s.\n\n",
		state, d.reporter.elapsed().Round(100*time.Millisecond), s.shown(s.data))
	address := s.url()
	if s.samples {
		address += " (administrator: " + administrator + ")"
	}
	for _, row := range [][2]string{
		{"git, REST", address},
		{"kubeconfig", s.shown(d.controlPlane.Kubeconfig())},
		{"repositories", s.shown(filepath.Dir(s.storage("default")))},
		{"logs", s.shown(s.logs())},
		{"environment", s.shown(s.env())},
	} {
		fmt.Fprintf(&text, "  %-13s %s\n", row[0], row[1])
	}
	text.WriteString("\nTry next, in another shell in this directory:\n\n")
	for _, command := range d.commands() {
		fmt.Fprintf(&text, "  . %s && %s\n", quote(s.sourced()), command)
	}
	return text.String()
}

// commands returns some commands to try. Those on a repository need the samples.
func (d *development) commands() []string {
	list := "kubectl get forge --all-namespaces"
	if !d.settings.samples {
		return []string{list}
	}
	repository := `"$FORGEPLANE_URL/` + importedPath + `.git"`
	helper := `"store --file ` + quote(d.settings.shown(d.settings.gitCredentials())) + `"`
	return []string{
		list,
		"git clone " + repository + ` "$(mktemp -d)/forgeplane"`,
		"git -c credential.helper=" + helper + " push " + repository + " HEAD:refs/heads/first-try",
	}
}
