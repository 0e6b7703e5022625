package reference

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem" // where the reference stores images
	"github.com/go-jose/go-jose/v4"
	"github.com/sirupsen/logrus"
)

// Registry is the distribution registry without anything around it: everybody can push and pull.
type Registry struct {
	*Process
	// URL is its address.
	URL string
}

// StartRegistry serves images in a directory.
func StartRegistry(ctx context.Context, directory string) (*Registry, error) {
	p, address, err := start(ctx, "registry", directory)
	return &Registry{p, "http://" + address}, err
}

func serveRegistry(ctx context.Context, directory string) error {
	logrus.SetOutput(io.Discard)
	c := &configuration.Configuration{Storage: configuration.Storage{
		"filesystem": {"rootdirectory": directory}, "delete": {"enabled": true}, "maintenance": {"uploadpurging": map[any]any{"enabled": false}},
	}}
	c.HTTP.Secret = rand.Text()
	app := handlers.NewApp(ctx, c)
	return serve(ctx, app.ServeHTTP, nil)
}

// StartSigner starts a server that answers every request with a token that it has just signed. The file has the claims of the token.
func StartSigner(ctx context.Context, file string) (*Bytes, error) {
	p, address, err := start(ctx, "signer", file)
	return &Bytes{p, address}, err
}

func serveTokens(ctx context.Context, file string) error {
	claims, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return fmt.Errorf("making a signer: %w", err)
	}
	return serve(ctx, func(w http.ResponseWriter, _ *http.Request) {
		signed, err := signer.Sign(claims)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		text, err := signed.CompactSerialize()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"token": text, "issued": time.Now()})
	}, nil)
}
