// Command gitops applies manifests as Argo CD or Flux do, with the code of these tools, and prints what it has done to each object.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// timeout limits a synchronization.
const timeout = 5 * time.Minute

// tools are the tools by name. Each applies all objects of a namespace, and deletes those that it has applied before and that are not among them.
var tools = map[string]func(ctx context.Context, config *rest.Config, namespace string, objects []*unstructured.Unstructured, out io.Writer) error{
	"argocd": argocd, "flux": flux,
}

func main() {
	namespace := flag.String("namespace", "default", "the namespace of the objects")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "Usage: gitops [flags] argocd|flux < manifests\n\nKUBECONFIG names the cluster.")
		flag.PrintDefaults()
	}
	flag.Parse()
	sync, ok := tools[flag.Arg(0)]
	if !ok || flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	var objects []*unstructured.Unstructured
	if err == nil {
		config.QPS, config.Burst = -1, -1
		objects, err = read(os.Stdin)
	}
	if err == nil {
		err = sync(ctx, config, *namespace, objects, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gitops:", err)
		os.Exit(1) //nolint:gocritic // nothing has to be cleaned up
	}
}

// read returns the objects of some YAML documents.
func read(from io.Reader) (all []*unstructured.Unstructured, err error) {
	data, err := io.ReadAll(from)
	if err != nil {
		return nil, fmt.Errorf("reading the manifests: %w", err)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), len(data))
	for {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(o); err == io.EOF {
			return slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool { return len(o.Object) == 0 }), nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the manifests: %w", err)
		}
		all = append(all, o)
	}
}
