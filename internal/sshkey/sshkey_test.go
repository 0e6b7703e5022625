package sshkey_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/forgeplane/forgeplane/internal/sshkey"
)

func TestParse(t *testing.T) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate := &ssh.Certificate{Key: signer.PublicKey(), CertType: ssh.UserCert, ValidBefore: ssh.CertTimeInfinity}
	if err := certificate.SignCert(rand.Reader, signer); err != nil {
		t.Fatal(err)
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	tests := map[string]struct {
		line string
		ok   bool
	}{
		"a plain key":    {line, true},
		"with a comment": {line + " ci@build", true},
		"with spaces":    {"  " + line + "\n", true},
		"with options":   {"no-pty " + line, false},
		"two keys":       {line + "\n" + line, false},
		"a certificate":  {string(ssh.MarshalAuthorizedKey(certificate)), false},
		"half a key":     {line[:len(line)/2], false},
		"nothing":        {"", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			key, err := sshkey.Parse(tt.line)
			if (err == nil) != tt.ok {
				t.Fatalf("got %v", err)
			}
			if tt.ok && ssh.FingerprintSHA256(key) != ssh.FingerprintSHA256(signer.PublicKey()) {
				t.Error("it is another key")
			}
		})
	}
}
