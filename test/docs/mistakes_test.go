package docs_test

import (
	"errors"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/forgeplane/forgeplane/test/forge"
)

// Mistakes that only a controller can find are in its suite: a reference to nothing, a path that is held, a wildcard that matches no branch, a
// color that CSS does not know, a regular expression that is not closed, a Secret that lacks a key.
var _ = Describe("A mistake in a manifest", func() {
	var f *forge.Forge
	BeforeEach(func() { f = forge.New(cluster, forge.Options{}) })

	// manifest returns an object with a spec, which is YAML.
	manifest := func(kind, spec string) *unstructured.Unstructured {
		GinkgoHelper()
		o := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte("spec: "+spec), &o.Object)).To(Succeed())
		o.SetAPIVersion("forgeplane.dev/v1alpha1")
		o.SetKind(kind)
		o.SetName("mine")
		if kind != "RepositoryStorage" {
			o.SetNamespace(f.NewNamespace())
		}
		return o
	}
	// explained expects an answer of the API server with a message about an object of a kind.
	explained := func(err error, kind, message string) {
		GinkgoHelper()
		var answer *apierrors.StatusError
		Expect(errors.As(err, &answer)).To(BeTrue(), "it is answered %v", err)
		// Kubernetes adds this after each error of a value or a type.
		const unchecked = ", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; " +
			"correct the existing errors to complete validation]"
		got := answer.ErrStatus.Message
		if first, found := strings.CutSuffix(got, unchecked); found {
			got = strings.Replace(first, "is invalid: [", "is invalid: ", 1)
		}
		got = strings.TrimPrefix(got, kind+" in version \"v1alpha1\" cannot be handled as a "+kind+": ")
		Expect(strings.TrimPrefix(got, kind+".forgeplane.dev \"mine\" is invalid: ")).To(Equal(message))
	}

	DescribeTable("is explained", func(ctx SpecContext, kind, spec, message string) {
		err := f.Live().Create(ctx, manifest(kind, spec), client.DryRunAll, client.FieldValidation("Strict"))
		explained(err, kind, message)
	},
		Entry("a field that does not exist", "Project", `{path: shop, groupRef: {name: acme}, visiblity: Public}`,
			`strict decoding error: unknown field "spec.visiblity"`),
		Entry("a field in a list that does not exist", "ProtectedBranch", `{projectRef: {name: shop}, branch: main, push: [{rolle: Maintainer}]}`,
			`strict decoding error: unknown field "spec.push[0].rolle"`),
		Entry("a role in lower case", "Membership", `{projectRef: {name: shop}, userRef: {name: carl}, role: developer}`,
			`spec.role: Unsupported value: "developer": supported values: "Guest", "Reporter", "Developer", "Maintainer", "Owner"`),
		Entry("a visibility in lower case", "Project", `{path: shop, groupRef: {name: acme}, visibility: private}`,
			`spec.visibility: Unsupported value: "private": supported values: "Private", "Internal", "Public"`),
		Entry("a role that a protection does not have", "ProtectedBranch", `{projectRef: {name: shop}, branch: main, push: [{role: Owner}]}`,
			`spec.push[0].role: Unsupported value: "Owner": supported values: "NoOne", "Developer", "Maintainer", "Admin"`),
		Entry("two fields of one access level", "ProtectedBranch", `{projectRef: {name: shop}, branch: main, push: [{role: Maintainer, userRef: {name: carl}}]}`,
			`spec.push[0]: Invalid value: exactly one of the fields in [role userRef groupRef deployKeyRef] must be set`),
		// Kubernetes checks types before the rules of the kind and before admission policies. "kubectl explain membership.spec.userRef" and the
		// page of references say how to write it.
		Entry("a reference that is a name", "Membership", `{projectRef: {name: shop}, userRef: carl, role: Developer}`,
			`spec.userRef: Invalid value: "string": spec.userRef in body must be of type object: "string"`),
		Entry("a ref as a branch", "ProtectedBranch", `{projectRef: {name: shop}, branch: refs/heads/release/*}`,
			`spec.branch: Invalid value: "refs/heads/release/*": branch must not begin with refs/: write prod, not refs/heads/prod`),
		Entry("a regular expression as a branch", "ProtectedBranch", `{projectRef: {name: shop}, branch: "^release/[0-9]$"}`,
			`spec.branch: Invalid value: "^release/[0-9]$": `+notBranch),
		Entry("a class of characters in a branch", "ProtectedBranch", `{projectRef: {name: shop}, branch: "release/[0-9]"}`,
			`spec.branch: Invalid value: "release/[0-9]": `+notBranch),
		// The page of the kind says to quote it.
		Entry("a branch that YAML does not read as text", "ProtectedBranch", `{projectRef: {name: shop}, branch: y}`,
			`spec.branch: Invalid value: "boolean": spec.branch in body must be of type string: "boolean"`),
		Entry("a ref as the default branch", "Project", `{path: shop, groupRef: {name: acme}, defaultBranch: refs/heads/main}`,
			`spec.defaultBranch: Invalid value: "refs/heads/main": defaultBranch must not begin with refs/: write prod, not refs/heads/prod`),
		Entry("a color with five digits", "Label", `{projectRef: {name: shop}, title: bug, color: "#12345"}`,
			`spec.color: Invalid value: "#12345": color must be #RGB, #RRGGBB or a CSS color name`),
		Entry("a color of two words", "Label", `{projectRef: {name: shop}, title: bug, color: light blue}`,
			`spec.color: Invalid value: "light blue": color must be #RGB, #RRGGBB or a CSS color name`),
		// The page of the kind says to quote it.
		Entry("a color without quotes", "Label", "\n  projectRef: {name: shop}\n  title: bug\n  color: #FF0000", `spec.color: Required value`),
		Entry("a title with a comma", "Label", `{projectRef: {name: shop}, title: "a,b", color: red}`,
			`spec.title: Invalid value: "a,b": title must not contain commas or control characters, and must not begin or end with a space`),
		Entry("a date without a time", "Membership", expiring("2027-01-01"), `spec.expiresAt: Invalid value: "2027-01-01": `+notTime),
		// Go reads none of these, so one of them would keep Forgeplane from reading the objects of every tenant.
		Entry("a time in lower case", "Membership", expiring("2027-01-01t00:00:00z"), `spec.expiresAt: Invalid value: "2027-01-01t00:00:00z": `+notTime),
		Entry("a time with more behind it", "Membership", expiring("2027-01-01T00:00:00Zt"), `spec.expiresAt: Invalid value: "2027-01-01T00:00:00Zt": `+notTime),
		Entry("a time with a fraction after a semicolon", "Membership", expiring("2027-01-01T00:00:00;5Z"),
			`spec.expiresAt: Invalid value: "2027-01-01T00:00:00;5Z": `+notTime),
		Entry("an offset that no zone has", "Membership", expiring("2027-01-01T00:00:00+99:99"),
			`spec.expiresAt: Invalid value: "string": invalid RFC 3339 timestamp "2027-01-01T00:00:00+99:99" evaluating rule: `+notTime),
		Entry("a day that no month has", "Membership", expiring("2027-02-30T00:00:00Z"),
			`spec.expiresAt: Invalid value: "string": type conversion error from 'string' to 'google.protobuf.Timestamp' evaluating rule: `+notTime),
		Entry("a duration in days", "RegistryCleanup", lasting("2 days"), `spec.ttlAfterFinished: Invalid value: "2 days": `+notDuration),
		Entry("a duration with a long unit", "RegistryCleanup", lasting("1d"),
			`spec.ttlAfterFinished: Invalid value: "string": type conversion error from 'string' to 'google.protobuf.Duration' evaluating rule: `+notDuration),
		Entry("the address of a remote as for scp", "RemoteMirror", `{projectRef: {name: shop}, url: "git@host:x"}`,
			`spec.url: Invalid value: "git@host:x": url must begin with http://, https://, ssh:// or git://, as in ssh://git.example.com/acme/website.git, `+
				`and must not contain spaces or control characters`),
		Entry("a URL with a password", "RemoteMirror", `{projectRef: {name: shop}, url: "https://me:pw@host/x.git"}`,
			`spec.url: Invalid value: "https://me:pw@host/x.git": url must not contain credentials, a query or a fragment: put credentials into a Secret `+
				`and name it in secretRef, and write %40 for an @ in the path`),
		Entry("a relative path", "RepositoryStorage", `{path: repositories}`,
			`spec.path: Invalid value: "repositories": path must be absolute, and must not end with a slash`),
		Entry("a weight that is too large", "RepositoryStorage", `{path: /repositories, weight: 200}`,
			`spec.weight: Invalid value: 200: spec.weight in body should be less than or equal to 100`),
	)

	DescribeTable("in a change is explained", func(ctx SpecContext, kind, spec, changed, message string) {
		o := manifest(kind, spec)
		Expect(f.Live().Create(ctx, o)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(f.Live().Delete(ctx, o)).To(Succeed()) })
		change, err := yaml.YAMLToJSON([]byte("spec: " + changed))
		Expect(err).NotTo(HaveOccurred())
		explained(f.Live().Patch(ctx, o, client.RawPatch(types.MergePatchType, change), client.DryRunAll), kind, message)
	},
		Entry("of the user", "Membership", `{projectRef: {name: shop}, userRef: {name: carl}, role: Developer}`, `{userRef: {name: bea}}`,
			`spec.userRef: Invalid value: userRef cannot change: make a new membership`),
		Entry("from a project to a group", "Membership", `{projectRef: {name: shop}, userRef: {name: carl}, role: Developer}`,
			`{projectRef: null, groupRef: {name: acme}}`, `spec: Invalid value: projectRef and groupRef cannot replace each other: make a new object`),
		Entry("of the branch", "ProtectedBranch", `{projectRef: {name: shop}, branch: main}`, `{branch: dev}`,
			`spec.branch: Invalid value: "dev": branch cannot change: declare another ProtectedBranch`),
		Entry("of the URL", "RemoteMirror", `{projectRef: {name: shop}, url: "https://host/x.git"}`, `{url: "https://host/y.git"}`,
			`spec.url: Invalid value: "https://host/y.git": url cannot change: make a new mirror`),
		Entry("of importURL", "Project", `{path: shop, groupRef: {name: acme}}`, `{importURL: "https://host/y.git"}`,
			`spec.importURL: Invalid value: importURL is read once, when the project is created: it can be removed, not set or changed`),
		Entry("of the object format", "Project", `{path: shop, groupRef: {name: acme}, objectFormat: sha1}`, `{objectFormat: sha256}`,
			`spec.objectFormat: Invalid value: objectFormat cannot change: make a new project`),
		Entry("of the id", "Label", `{projectRef: {name: shop}, title: bug, color: red, id: 7}`, `{id: 8}`, `spec.id: Invalid value: id cannot change once set`),
		Entry("of the storage", "Project", `{path: shop, groupRef: {name: acme}, storage: a}`, `{storage: b}`,
			`spec.storage: Invalid value: storage is chosen once: a StorageMove moves a project`),
		Entry("of the path of a shard", "RepositoryStorage", `{path: /repositories}`, `{path: /elsewhere}`,
			`spec.path: Invalid value: "/elsewhere": path cannot change: declare another RepositoryStorage, and move each project to it with a StorageMove`),
	)
})

const notBranch = "branch must be the name of a branch or a wildcard such as release/*, not a regular expression: it must not begin with a hyphen, " +
	"and must not contain spaces, control characters, backslashes or any of ~ ^ : ? ["

// expiring is the spec of a Membership.
func expiring(at string) string {
	return `{projectRef: {name: shop}, userRef: {name: carl}, role: Developer, expiresAt: "` + at + `"}`
}

// lasting is the spec of a RegistryCleanup.
func lasting(ttl string) string {
	return `{projectRef: {name: shop}, nameRegexDelete: ".*", ttlAfterFinished: "` + ttl + `"}`
}

const notDuration = "ttlAfterFinished must be a duration of hours, minutes and seconds, as in 24h or 1h30m"

const notTime = "expiresAt must be a date and a time, as in 2027-01-31T00:00:00Z"
