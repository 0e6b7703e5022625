package remotemirrors

import (
	"errors"
	"net"
	"net/url"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/egress"
	"github.com/forgeplane/forgeplane/internal/pattern"
)

// Limits of the schema.
const (
	maxURL   = 2048
	maxRegex = 255
)

// target is a URL without its credentials, the credentials, and the host keys for ssh.
type target struct{ url, username, password, hostKeys string }

// shown returns the value of v1alpha1.AnnotationCredentials for the credentials, or an empty string for none.
func (t target) shown() string {
	switch {
	case t.password != "":
		return ""
	case t.username == "":
		return v1alpha1.CredentialsNone
	case t.username == "git" && strings.HasPrefix(t.url, "ssh:"):
		return v1alpha1.CredentialsGit
	default:
		return v1alpha1.CredentialsUsername
	}
}

// parse validates a URL without connecting. Errors contain no part of it.
func (f *Family) parse(text string) (target, error) {
	if text == "" {
		return target{}, invalid("url", "can't be blank")
	}
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.Scheme != "" && u.Hostname() == "" {
		return target{}, invalid("url", "is blocked: URI is invalid")
	}
	switch u.Scheme {
	case "http", "https", "ssh", "git":
	default:
		return target{}, invalid("url", "is blocked: Only allowed schemes are http, https, ssh, git")
	}
	at := target{}
	if u.User != nil {
		at.username = u.User.Username()
		at.password, _ = u.User.Password()
		if first, _ := utf8.DecodeRuneInString(at.username); at.username != "" && !unicode.IsLetter(first) && !unicode.IsDigit(first) {
			return target{}, invalid("url", "is blocked: Username needs to start with an alphanumeric character")
		}
	}
	switch err := f.Targets.CheckHost(u.Hostname()); {
	case errors.Is(err, egress.ErrLocalhost):
		return target{}, invalid("url", "is blocked: Requests to localhost are not allowed")
	case err != nil:
		return target{}, invalid("url", "is blocked: Requests to the local network are not allowed")
	}
	u.User = nil
	at.url = u.String()
	// A password with / ? or # is split, so parts of it are not recognized as credentials.
	if strings.ContainsAny(at.url, "@?#") || strings.Contains(text, "#") {
		return target{}, invalid("url", "is blocked: URI is invalid")
	}
	if len(at.url) > maxURL {
		return target{}, invalid("url", "is too long (maximum is 2048 characters)")
	}
	return at, nil
}

func invalid(attribute, what string) error {
	return endpoint.Invalid(map[string][]string{attribute: {what}})
}

// settings are the parameters of a request that configure the push.
type settings struct {
	Enabled, KeepDivergentRefs, OnlyProtectedBranches endpoint.Optional[bool]
	MirrorBranchRegex                                 endpoint.Optional[string]
}

// apply changes a mirror, and returns an error if the settings contradict each other.
func (s settings) apply(m *v1alpha1.RemoteMirror) error {
	if s.OnlyProtectedBranches.Null {
		return invalid("only_protected_branches", "can't be blank")
	}
	if s.Enabled.Set {
		m.Spec.Enabled = ptr.To(s.Enabled.Or(false))
	}
	if s.KeepDivergentRefs.Set {
		m.Spec.KeepDivergentRefs = s.KeepDivergentRefs.Or(false)
	}
	if s.MirrorBranchRegex.Set {
		m.Spec.BranchRegex = s.MirrorBranchRegex.Or("")
	}
	m.Spec.OnlyProtectedBranches = s.OnlyProtectedBranches.Or(m.Spec.OnlyProtectedBranches)
	switch regex := m.Spec.BranchRegex; {
	case regex == "":
		return nil
	case m.Spec.OnlyProtectedBranches:
		return endpoint.Parameters("only_protected_branches, mirror_branch_regex are mutually exclusive")
	case len([]rune(regex)) > maxRegex:
		return invalid("mirror_branch_regex", "is too long (maximum is 255 characters)")
	default:
		return checkRegex(regex)
	}
}

func checkRegex(regex string) error {
	_, err := pattern.Branches(regex)
	if errors.Is(err, pattern.ErrTooLarge) {
		return invalid("mirror_branch_regex", "is too large")
	}
	if errors.Is(err, pattern.ErrFullName) {
		return invalid("mirror_branch_regex", err.Error())
	}
	var wrong *syntax.Error
	if errors.As(err, &wrong) {
		return invalid("mirror_branch_regex", "not valid RE2 syntax: "+string(wrong.Code)+": "+wrong.Expr)
	}
	return err
}

// maxHostKeys is the maximum number of host keys of one mirror, and maxHostKey the maximum length of one.
const (
	maxHostKeys = 10
	maxHostKey  = 4096
)

// knownHosts returns host keys in the format of a known_hosts file. Each key has the format of a public key file.
func knownHosts(at string, keys []string) (string, error) {
	u, err := url.Parse(at)
	if err != nil || len(keys) == 0 {
		return "", err
	}
	if len(keys) > maxHostKeys {
		return "", invalid("host_keys", "is too long (maximum is 10 entries)")
	}
	var lines strings.Builder
	for _, text := range keys {
		key, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(text))
		if err != nil || len(rest) > 0 || len(text) > maxHostKey || u.Scheme != "ssh" {
			return "", invalid("host_keys", "is invalid")
		}
		port := u.Port()
		if port == "" {
			port = "22"
		}
		lines.WriteString(knownhosts.Line([]string{net.JoinHostPort(u.Hostname(), port)}, key) + "\n")
	}
	return lines.String(), nil
}
