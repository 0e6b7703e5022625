package replicas

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/rest"
	"github.com/forgeplane/forgeplane/test/soak"
)

// rounds is the number of times that both servers get the same request at the same time.
var rounds = soak.Times(3, 90)

// rules are the protected branches of the project.
const rules = "/projects/yard%2Fapp/protected_branches"

// person is a user with a token.
const person = `
---
apiVersion: forgeplane.dev/v1alpha1
kind: User
metadata: {name: %[1]s, labels: {newcomer: ""}}
spec: {username: %[1]s}
---
apiVersion: forgeplane.dev/v1alpha1
kind: AccessToken
metadata: {name: %[1]s, labels: {newcomer: ""}}
spec: {userRef: {name: %[1]s}, scopes: [api], secretRef: {name: %[1]s}}
`

// record are the fields of an answer that the specs need.
type record struct {
	ID     int64 `json:"id"`
	Levels []struct {
		ID     int64 `json:"id"`
		UserID int64 `json:"user_id"`
	} `json:"push_access_levels"`
}

var _ = Describe("Two servers", func() {
	var first, second rest.Client
	var yard, dana int64

	BeforeEach(func() {
		start(manager, one, two)
		first, second = one.by("root"), two.by("root")
		yard = rest.Must[record](first, http.StatusOK, "GET /groups/yard", "").ID
		dana = rest.Must[[]record](first, http.StatusOK, "GET /users?username=dana", "")[0].ID
	})

	// atOnce sends a request to each server at the same moment, over an existing connection, and returns the answers.
	atOnce := func(request string, bodies [2]string) [2]rest.Answer {
		GinkgoHelper()
		var answers [2]rest.Answer
		var wait sync.WaitGroup
		gun := make(chan struct{})
		for i, c := range []rest.Client{first, second} {
			Expect(c.Status("GET /version")).To(Equal(http.StatusOK))
			wait.Go(func() {
				defer GinkgoRecover()
				<-gun
				answers[i] = c.Call(request, bodies[i])
			})
		}
		close(gun)
		wait.Wait()
		return answers
	}

	// objects returns the objects of a kind.
	objects := func(kind string) []unstructured.Unstructured {
		GinkgoHelper()
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: kind + "List"})
		Expect(api.List(context.Background(), list)).To(Succeed())
		return list.Items
	}

	expectUniqueIDs := func(kind string) {
		GinkgoHelper()
		seen := map[int64]string{}
		for _, object := range objects(kind) {
			id, _, _ := unstructured.NestedInt64(object.Object, "spec", "id")
			Expect(id).To(BeNumerically(">", 0), object.GetName())
			Expect(seen).NotTo(HaveKey(id), "%s and %s", seen[id], object.GetName())
			seen[id] = object.GetName()
		}
	}

	// holders counts the objects of a kind that have a value in a field of their spec.
	holders := func(kind, field, value string) (count int) {
		GinkgoHelper()
		for _, object := range objects(kind) {
			if found, _, _ := unstructured.NestedString(object.Object, "spec", field); found == value {
				count++
			}
		}
		return count
	}

	DescribeTable("that get the same request at the same time create one object, and refuse the other request",
		func(kind, field, request, body, refusal string) {
			for round := range rounds {
				name := fmt.Sprintf("%s-%d", strings.ToLower(kind), round)
				var bodies [2]string
				for i, side := range []string{"left", "right"} {
					bodies[i] = strings.NewReplacer("NAME", name, "SIDE", side, "YARD", fmt.Sprint(yard)).Replace(body)
				}
				answers := atOnce(request, bodies)
				slices.SortFunc(answers[:], func(a, b rest.Answer) int { return cmp.Compare(a.Status, b.Status) })
				Expect(answers[0].Status).To(Equal(http.StatusCreated), "%s", answers)
				Expect(answers[1].String()).To(Equal(strings.ReplaceAll(refusal, "NAME", name)), "%s", answers)
				Expect(holders(kind, field, name)).To(Equal(1), name)
			}
			expectUniqueIDs(kind)
		},
		Entry("a user", "User", "username", "POST /users", `{"username":"NAME","name":"Same","email":"NAME@SIDE.example"}`,
			`409 {"message":"Username has already been taken"}`),
		Entry("a group", "Group", "path", "POST /groups", `{"path":"NAME","name":"Same","parent_id":YARD}`,
			`400 {"message":{"path":["has already been taken"]}}`),
		Entry("a project", "Project", "path", "POST /projects", `{"path":"NAME","namespace_id":YARD}`,
			`400 {"message":{"name":["has already been taken"],"path":["has already been taken"]}}`),
		Entry("a protected branch", "ProtectedBranch", "branch", "POST "+rules, `{"name":"NAME"}`,
			`409 {"message":"Protected branch 'NAME' already exists"}`),
	)

	It("that change one rule at the same time keep both changes", func() {
		for round := range rounds {
			path := fmt.Sprintf("%s/both-%d", rules, round)
			made := rest.Must[record](first, http.StatusCreated, "POST "+rules, fmt.Sprintf(`{"name":"both-%d"}`, round))
			Eventually(second.Status).WithArguments("GET " + path).WithPolling(time.Millisecond).Should(Equal(http.StatusOK))
			for _, a := range atOnce("PATCH "+path, [2]string{
				`{"allow_force_push":true}`, fmt.Sprintf(`{"allowed_to_push":[{"user_id":%d}]}`, dana),
			}) {
				Expect(a.Status).To(Equal(http.StatusOK), "%s", a)
			}
			Eventually(func(g Gomega) {
				text := first.Call("GET "+path, "")
				g.Expect(text.Body).To(ContainSubstring(`"allow_force_push":true`))
				g.Expect(text.Body).To(ContainSubstring(fmt.Sprintf(`"user_id":%d`, dana)))
			}).WithPolling(time.Millisecond).Should(Succeed())
			kept := rest.Must[record](first, http.StatusOK, "GET "+path, "")
			Expect(kept.ID).To(Equal(made.ID))
			Expect(kept.Levels).To(ContainElement(made.Levels[0]))
		}
	})

	It("that create the first personal projects of a user at the same time create both in one namespace", func() {
		var manifests strings.Builder
		for round := range rounds / 3 {
			fmt.Fprintf(&manifests, person, fmt.Sprintf("newcomer-%d", round))
		}
		admin.Apply(manifests.String())
		admin.WaitReady("user,accesstoken", "--selector=newcomer")
		for round := range rounds / 3 {
			name := fmt.Sprintf("newcomer-%d", round)
			first, second = one.by(name), two.by(name)
			for _, a := range atOnce("POST /projects", [2]string{`{"path":"left"}`, `{"path":"right"}`}) {
				Expect(a.Status).To(Equal(http.StatusCreated), "%s", a)
			}
			Expect(holders("Group", "path", name)).To(Equal(1))
		}
	})

	It("accept a new token of a new user at once, and from then on", func() {
		for round := range rounds {
			user := rest.Must[record](first, http.StatusCreated, "POST /users",
				fmt.Sprintf(`{"username":"guest-%d","name":"Guest","email":"guest-%[1]d@example.com"}`, round))
			made := rest.Must[struct{ Token string }](first, http.StatusCreated,
				fmt.Sprintf("POST /users/%d/personal_access_tokens", user.ID), `{"name":"Made just now","scopes":["api"]}`)
			guest := rest.WithToken(one.address(), made.Token)
			for range 20 {
				Expect(guest.Status("GET /user")).To(Equal(http.StatusOK))
			}
		}
	})

	It("show each other's writes", func() {
		var made, gone []time.Duration
		shown := func(path string, status int) time.Duration {
			GinkgoHelper()
			begun := time.Now()
			Eventually(second.Status).WithArguments("GET " + path).WithPolling(time.Millisecond).Should(Equal(status))
			return time.Since(begun)
		}
		for round := range rounds {
			path := fmt.Sprintf("%s/shown-%d", rules, round)
			rest.Must[record](first, http.StatusCreated, "POST "+rules, fmt.Sprintf(`{"name":"shown-%d"}`, round))
			made = append(made, shown(path, http.StatusOK))
			Expect(first.Status("DELETE " + path)).To(Equal(http.StatusNoContent))
			gone = append(gone, shown(path, http.StatusNotFound))
		}
		for what, took := range map[string][]time.Duration{"what is made": made, "what is deleted": gone} {
			slices.Sort(took)
			report(what+" is shown by the other, median,", took[len(took)/2])
			report(what+" is shown by the other, at worst,", took[len(took)-1])
		}
	})

	It("apply each other's rules to pushes", func() {
		clone := admin.As("dana", token("dana")).Clone(two.address() + "/yard/app.git")
		clone.Commit("pushed.txt", "Pushed.\n")
		clone.MustPush("held")
		begun := time.Now()
		rest.Must[record](first, http.StatusCreated, "POST "+rules, `{"name":"held"}`)
		clone.Commit("pushed.txt", "Pushed again.\n")
		Eventually(func() error {
			_, err := clone.Push("held")
			if err == nil {
				clone.Commit("pushed.txt", fmt.Sprintln("Pushed at", time.Now()))
			}
			return err
		}).WithPolling(time.Millisecond).Should(HaveOccurred())
		report("a push through the other is refused after", time.Since(begun))
		Expect(clone.RefusedPush("held")).To(ContainSubstring(`Branch "held" is protected`))
	})
})
