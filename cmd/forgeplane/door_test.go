package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
)

func TestKubeconfigFile_isTheFileThatTheClientReads(t *testing.T) {
	for _, tt := range []struct {
		name, flag, list, pod string
		want                  string
		refused               bool
	}{
		{name: "the flag overrides the list", flag: "flag", list: "a:b", want: "flag"},
		{name: "one file in the list", list: "a", want: "a"},
		{name: "empty elements", list: ":a:", want: "a"},
		{name: "several files", list: "a:b", refused: true},
		{name: "the account of a pod", pod: "10.0.0.1", want: ""},
		{name: "the default", want: clientcmd.RecommendedHomeFile},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv("KUBECONFIG", tt.list)
			t.Setenv("KUBERNETES_SERVICE_HOST", tt.pod)
			got, err := kubeconfigFile(tt.flag)
			if tt.refused {
				g.Expect(err).To(MatchError(ContainSubstring("--kubeconfig")))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tt.want))
		})
	}
}
