package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// publicKey is an SSH key whose private half nobody has.
const publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHJ9MBZRUCSqvFUMgobWvWcwx0S6fAw+cZWnZGWg8VgY robot@example.com"

// kinds are the definitions in config/crd.
func kinds() []apiextensionsv1.CustomResourceDefinition {
	files, err := filepath.Glob("../../../config/crd/forgeplane.dev_*.yaml")
	if err != nil || len(files) == 0 {
		panic("no definitions of kinds in config/crd")
	}
	all := make([]apiextensionsv1.CustomResourceDefinition, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			err = yaml.UnmarshalStrict(text, &all[i])
		}
		if err != nil {
			panic(err)
		}
	}
	return all
}

// cellsOf returns the cells of the one row in a table of kubectl, by the titles of their columns.
func cellsOf(table string) map[string]string {
	titles, row, _ := strings.Cut(strings.TrimSuffix(table, "\n"), "\n")
	cells, end := map[string]string{}, len(row)
	columns := regexp.MustCompile(`\S+( \S+)*`).FindAllStringIndex(titles, -1)
	for _, at := range slices.Backward(columns) {
		cells[titles[at[0]:at[1]]] = strings.TrimSpace(row[min(at[0], end):end])
		end = min(at[0], end)
	}
	return cells
}

var _ = Describe("kubectl", Ordered, func() {
	BeforeAll(func() {
		porch := newTeam("porch")
		porch.apply(`
apiVersion: forgeplane.dev/v1alpha1
kind: Project
metadata: {name: former, namespace: TEAM}
spec: {path: former, groupRef: {name: TEAM}}
`)
		porch.waitReady("project/former")
		porch.kubectl("delete", "project", "former", "--timeout=60s")
		porch.apply(`
apiVersion: forgeplane.dev/v1alpha1
kind: DeployKey
metadata: {name: robot, namespace: TEAM}
spec: {projectRef: {name: app}, title: Robot, publicKey: "` + publicKey + `"}
---
apiVersion: forgeplane.dev/v1alpha1
kind: TriggerToken
metadata: {name: robot, namespace: TEAM}
spec: {projectRef: {name: app}}
---
apiVersion: v1
kind: Secret
metadata: {name: releases, namespace: TEAM, labels: {forgeplane.dev/secret: bot-token}}
---
apiVersion: forgeplane.dev/v1alpha1
kind: BotToken
metadata: {name: releases, namespace: TEAM}
spec: {projectRef: {name: app}, name: Releases, role: Developer, scopes: [read_api], secretRef: {name: releases}}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Badge
metadata: {name: build, namespace: TEAM}
spec: {projectRef: {name: app}, linkURL: "https://ci.example.com", imageURL: "https://ci.example.com/build.svg"}
---
apiVersion: v1
kind: Secret
metadata: {name: host, namespace: TEAM, labels: {forgeplane.dev/secret: variable}}
stringData: {value: a.example}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Variable
metadata: {name: host, namespace: TEAM}
spec: {projectRef: {name: app}, key: HOST, secretRef: {name: host}}
---
apiVersion: forgeplane.dev/v1alpha1
kind: JobTokenScope
metadata: {name: app, namespace: TEAM}
spec: {projectRef: {name: app}}
---
apiVersion: forgeplane.dev/v1alpha1
kind: RemoteMirror
metadata: {name: backup, namespace: TEAM}
spec: {projectRef: {name: app}, url: "https://example.com/backup.git", enabled: false}
---
apiVersion: forgeplane.dev/v1alpha1
kind: RegistryCleanup
metadata: {name: yearly, namespace: TEAM}
spec: {projectRef: {name: app}, nameRegexDelete: .*, schedule: "@yearly"}
---
apiVersion: forgeplane.dev/v1alpha1
kind: StorageMove
metadata: {name: nowhere, namespace: TEAM}
spec: {projectRef: {name: app}, destination: default}
---
apiVersion: forgeplane.dev/v1alpha1
kind: ProtectedBranch
metadata: {name: releases, namespace: TEAM}
spec: {projectRef: {name: app}, branch: release/*}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Label
metadata: {name: bug, namespace: TEAM}
spec: {projectRef: {name: app}, title: bug, color: red}
`)
	})

	// test/conventions checks that each field of each kind has a description.
	It("explains a kind, its spec and its fields", func() {
		for path, field := range map[string]string{
			"protectedbranch": "spec", "protectedbranch.spec": "push", "protectedbranch.spec.push": "role", "protectedbranch.spec.push.userRef": "path",
		} {
			text := admin.Kubectl("explain", path)
			Expect(text).To(MatchRegexp(`(?m)^DESCRIPTION:\n    \S`), path)
			Expect(text).To(MatchRegexp(`(?m)^  `+field+`\t<.*\n(  (  |enum).*\n)*    \S`), path)
		}
	})

	for _, kind := range kinds() {
		names := kind.Spec.Names

		It("finds "+names.Kind+" by its short name, and shows whether it is ready", func() {
			Expect(names.ShortNames).NotTo(BeEmpty())
			table := admin.Kubectl("get", names.ShortNames[0], "--all-namespaces")
			Expect(strings.SplitN(table, "\n", 2)[0]).To(And(ContainSubstring("READY"), ContainSubstring("REASON"), ContainSubstring("AGE")))
			Expect(table).To(ContainSubstring("True"))
		})
	}

	It("shows in words who may push, who a reference by path leads to, when an object expires and what is missing", func() {
		apply(`
apiVersion: forgeplane.dev/v1alpha1
kind: ProtectedBranch
metadata: {name: wide, namespace: porch}
spec: {projectRef: {name: app}, branch: wide, push: [{role: Developer}, {userRef: {path: porch-otto}}]}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Membership
metadata: {name: otto, namespace: porch}
spec: {projectRef: {path: porch/app}, userRef: {path: porch-otto}, role: Reporter, expiresAt: "2099-01-31T00:00:00Z"}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Label
metadata: {name: lost, namespace: porch}
spec: {projectRef: {name: absent}, title: lost, color: red}
`)
		waitReady("porch", "protectedbranch/wide", "membership/otto")
		wait("porch", "label/lost", reason, "ReferenceNotFound")
		for object, want := range map[string]map[string]string{
			"protectedbranch/wide": {"OF": "porch/app", "PUSH": "Developers + Maintainers, porch-otto", "MESSAGE": ""},
			"membership/otto":      {"OF": "porch/app", "USER": "porch-otto", "EXPIRES": "2099-01-31T00:00:00Z", "MESSAGE": ""},
			"label/lost":           {"OF": "", "REASON": "ReferenceNotFound", "MESSAGE": "projectRef: project absent: not found"},
		} {
			cells := cellsOf(admin.Kubectl("get", object, "--namespace=porch", "--output=wide"))
			for title, text := range want {
				Expect(cells).To(HaveKeyWithValue(title, text), object)
			}
		}
	})

	It("shows all objects of a namespace to a tenant, and all objects of the cluster to its administrator", func() {
		admin.Kubectl("create", "rolebinding", "visitor", "--namespace=porch", "--clusterrole=view", "--user=visitor")
		var visible string
		Eventually(func() (err error) {
			visible, err = admin.Try("kubectl", "get", "forge", "--namespace=porch", "--output=name", "--as=visitor")
			return err
		}).WithPolling(polling).Should(Succeed())
		everything := admin.Kubectl("get", "forge,forge-admin", "--all-namespaces", "--output=name")
		for _, kind := range kinds() {
			name := kind.Spec.Names.Singular + ".forgeplane.dev/"
			Expect(everything).To(ContainSubstring(name))
			if slices.Contains(kind.Spec.Names.Categories, "forge") {
				Expect(visible).To(ContainSubstring(name))
			} else {
				Expect(visible).NotTo(ContainSubstring(name))
			}
		}
	})
})
