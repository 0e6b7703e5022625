package main

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/forgeplane"
)

func TestCommand_setsTheLoggerOfControllerRuntime(t *testing.T) {
	g := NewWithT(t)
	args := os.Args
	t.Cleanup(func() { os.Args = args })
	os.Args = []string{"run", "-help"}
	g.Expect(command()).To(BeZero())
	g.Expect(log.Log.Enabled()).To(BeTrue(), "it shows the warnings of the API server")
}

func TestSettings_preferFlagsToVariablesToDefaults(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("HTTP_PORT", "9001")
	t.Setenv("KUBE_PORT", "9002")
	t.Setenv("RUN_FLAGS", " --a=b  --c ")
	t.Setenv("RUN_SPLIT", "true")
	s, err := parseSettings([]string{"--kube-port=9003", "--data=/data"}, io.Discard)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]int{s.httpPort, s.kubePort, s.tlsPort, s.healthPort, s.metricsPort}).To(Equal([]int{9001, 9003, 18443, 18081, 18082}))
	g.Expect(s.data).To(Equal("/data"))
	g.Expect(s.flags).To(Equal([]string{"--a=b", "--c"}))
	g.Expect(s.url()).To(Equal("http://127.0.0.1:9001"))
	g.Expect([]bool{s.split, s.samples}).To(Equal([]bool{true, true}))
	for _, variable := range []string{"RUN_SPLIT", "RUN_SAMPLES"} {
		t.Setenv(variable, "perhaps")
		_, err = parseSettings(nil, io.Discard)
		g.Expect(err).To(MatchError(ContainSubstring(variable)))
		t.Setenv(variable, "false")
	}
	s, err = parseSettings(nil, io.Discard)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]bool{s.split, s.samples}).To(Equal([]bool{false, false}))
}

func TestDescription_needsNoAdministratorWithoutSamples(t *testing.T) {
	g := NewWithT(t)
	d := development{settings: settings{checkout: "/c", data: "/c/.dev"}, controlPlane: &controlplane.ControlPlane{}, reporter: newReporter(io.Discard)}
	g.Expect(d.environment("")).To(And(ContainSubstring("FORGEPLANE_URL="), Not(ContainSubstring("FORGEPLANE_TOKEN"))))
	g.Expect(d.summary()).To(And(ContainSubstring("kubectl get"), Not(ContainSubstring("git clone")), Not(ContainSubstring("administrator: "))))
}

// helpful is a program that knows some flags of each part.
const helpful = `#!/bin/sh
echo "      --$1-only duration   for how long"
echo "      --both               everywhere"
`

func TestParts_getOnlyFlagsThatTheyKnow(t *testing.T) {
	g := NewWithT(t)
	checkout := t.TempDir()
	g.Expect(os.Mkdir(filepath.Join(checkout, "bin"), 0o700)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(checkout, "bin", "forgeplane"), []byte(helpful), 0o700)).To(Succeed())
	d := development{settings: settings{
		checkout: checkout, data: t.TempDir(), split: true, healthPort: 1, metricsPort: 2, flags: []string{"--manager-only=1s", "--both", "--apiserver-only=2s"},
	}}
	parts, err := d.parts(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	flags := map[forgeplane.Part][]string{}
	for _, o := range parts {
		flags[o.Part] = o.Flags
		g.Expect(o.Data).To(BeADirectory())
	}
	g.Expect(flags).To(Equal(map[forgeplane.Part][]string{
		forgeplane.Manager: {"--manager-only=1s", "--both"}, forgeplane.APIServer: {"--both", "--apiserver-only=2s"},
	}))
	g.Expect(parts[0].Data).NotTo(Equal(parts[1].Data))
	g.Expect(parts[0].HealthPort).NotTo(Equal(parts[1].HealthPort))
	g.Expect(parts[0].MetricsPort).To(Equal(2))
	g.Expect(parts[1].MetricsPort).NotTo(BeElementOf(0, 2))
	g.Expect(parts[0].Activity).To(Equal(parts[1].Activity))
	d.settings.flags = []string{"--only"}
	_, err = d.parts(t.Context())
	g.Expect(err).To(MatchError("no part of forgeplane has the flag --only"))
}

func TestSettings_nameTheVariableOfAnInvalidPort(t *testing.T) {
	for _, value := range []string{"http", "0", "-1", "65536"} {
		t.Setenv("HTTP_PORT", value)
		_, err := parseSettings(nil, io.Discard)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("HTTP_PORT")), value)
	}
}

func TestCheckPorts_namesTheVariableOfATakenPort(t *testing.T) {
	g := NewWithT(t)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = listener.Close() }()
	taken := listener.Addr().(*net.TCPAddr).Port
	s := settings{httpPort: taken, kubePort: taken}
	err = s.checkPorts(t.Context())
	g.Expect(err).To(MatchError(And(ContainSubstring("port "+strconv.Itoa(taken)), ContainSubstring("HTTP_PORT="), ContainSubstring("KUBE_PORT="))))
	g.Expect(err).NotTo(MatchError(ContainSubstring("HEALTH_PORT=")))
}

func TestLock_namesTheProcessThatHoldsIt(t *testing.T) {
	g := NewWithT(t)
	data := t.TempDir()
	unlock, err := lock(data)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = lock(data)
	g.Expect(err).To(MatchError(ContainSubstring("process " + strconv.Itoa(os.Getpid()))))
	unlock()
	unlock, err = lock(data)
	g.Expect(err).NotTo(HaveOccurred(), "after the first has ended")
	unlock()
}

func TestCheckPlace_refusesDataOfAnotherCheckout(t *testing.T) {
	g := NewWithT(t)
	data := t.TempDir()
	here := settings{data: data, checkout: "/here"}
	g.Expect(here.checkPlace()).To(Succeed())
	g.Expect(here.checkPlace()).To(Succeed(), "again")
	there := settings{data: data, checkout: "/there"}
	g.Expect(there.checkPlace()).To(MatchError(ContainSubstring("/here")))
}

func TestServesTLS_readsTheLastFlag(t *testing.T) {
	for flags, want := range map[string]bool{
		"": true, "--tls-address=0": false, "--tls-address 0": false, "--verbose --tls-address 0 --concurrency 2": false,
		"--tls-address=0 --tls-address=:8443": true, "--tls-address=:8443 --tls-address=0": false, "--tls-address=0.0.0.0:8443": true,
	} {
		g := NewWithT(t)
		serves, err := servesTLS(strings.Fields(flags))
		g.Expect(err).NotTo(HaveOccurred(), flags)
		g.Expect(serves).To(Equal(want), flags)
	}
	_, err := servesTLS([]string{"--tls-address"})
	NewWithT(t).Expect(err).To(HaveOccurred())
}

func TestDecode_sortsNamespacesFirst(t *testing.T) {
	g := NewWithT(t)
	objects, err := decode([]byte("---\nkind: A\nmetadata: {name: a}\n---\n# nothing\n---\nkind: Namespace\nmetadata: {name: space}\n---\nkind: B\nmetadata: {name: b, namespace: space}\n"))
	g.Expect(err).NotTo(HaveOccurred())
	var titles []string
	for _, object := range objects {
		titles = append(titles, title(object))
	}
	g.Expect(titles).To(Equal([]string{"Namespace space", "A a", "B space/b"}))
	_, err = decode([]byte("kind: [\n"))
	g.Expect(err).To(HaveOccurred())
}

func TestRenderLocal_escapesPaths(t *testing.T) {
	g := NewWithT(t)
	d := development{settings: settings{checkout: "/it's a: checkout", data: "/it's a: checkout/.dev"}}
	manifests, err := d.renderLocal()
	g.Expect(err).NotTo(HaveOccurred())
	objects, err := decode(manifests)
	g.Expect(err).NotTo(HaveOccurred())
	found := map[string]string{}
	for _, object := range objects {
		for _, field := range []string{"path", "importURL"} {
			value, _, _ := unstructured.NestedString(object.Object, "spec", field)
			found[object.GetName()+" "+field] = value
		}
	}
	g.Expect(found).To(HaveKeyWithValue("default path", "/it's a: checkout/.dev/storage/default"))
	g.Expect(found).To(HaveKeyWithValue("fast path", "/it's a: checkout/.dev/storage/fast"))
	g.Expect(found).To(HaveKeyWithValue("forgeplane importURL", "file:///it%27s%20a:%20checkout"))
}

func TestHasCondition_ignoresAnOutdatedGeneration(t *testing.T) {
	object := func(generation, observed int64, status string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"generation": generation},
			"status": map[string]any{
				"observedGeneration": observed,
				"conditions": []any{
					map[string]any{"type": "Other", "status": "True"},
					map[string]any{"type": "Ready", "status": status, "reason": "Because", "message": "of this"},
				},
			},
		}}
	}
	for name, test := range map[string]struct {
		object *unstructured.Unstructured
		ready  bool
		why    string
	}{
		"ready":             {object(2, 2, "True"), true, ""},
		"not ready":         {object(2, 2, "False"), false, "Ready=False Because: of this"},
		"outdated":          {object(2, 1, "True"), false, "no controller has seen it"},
		"never observed":    {object(1, -1, "True"), false, "no controller has seen it"},
		"without condition": {&unstructured.Unstructured{Object: map[string]any{}}, false, "no condition Ready"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ready, why := hasCondition(test.object, "Ready")
			g.Expect(ready).To(Equal(test.ready))
			if !ready {
				g.Expect(why).To(ContainSubstring(test.why))
			}
		})
	}
}

func TestQuote_keepsAWordInAShell(t *testing.T) {
	g := NewWithT(t)
	for _, word := range []string{"plain/path-1_2.x:3", "two words", "it's", `$HOME "x" \ * ~`, "-"} {
		output, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+quote(word)).Output()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(output)).To(Equal(word))
	}
	g.Expect(quote("plain/path-1_2.x:3")).To(Equal("plain/path-1_2.x:3"))
}

func TestSourced_isAPathThatShellsFind(t *testing.T) {
	g := NewWithT(t)
	inside := settings{checkout: "/c", data: "/c/.dev"}
	g.Expect(inside.sourced()).To(Equal(".dev/env"))
	outside := settings{checkout: "/c", data: "/elsewhere"}
	g.Expect(outside.sourced()).To(Equal("/elsewhere/env"))
	itself := settings{checkout: "/c", data: "/c"}
	g.Expect(itself.sourced()).To(Equal("/c/env"))
}
