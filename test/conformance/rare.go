package conformance

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/declare"
	"github.com/forgeplane/forgeplane/internal/ids"
	"github.com/forgeplane/forgeplane/test/forgeplane"
	"github.com/forgeplane/forgeplane/test/patience"
)

// yard is a tenant that declares everything, with a group below a group of another tenant, and a project in it.
const yard = `
apiVersion: v1
kind: Namespace
metadata: {name: harbour}
---
apiVersion: v1
kind: Namespace
metadata: {name: yard, labels: {part-of: harbour}}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Group
metadata: {name: harbour, namespace: harbour}
spec: {path: harbour, allowedNamespaces: {from: Selector, selector: {matchLabels: {part-of: harbour}}}}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Group
metadata: {name: yard, namespace: yard}
spec: {path: yard, parentRef: {path: harbour}}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Project
metadata: {name: app, namespace: yard}
spec: {path: app, groupRef: {name: yard}, defaultBranch: main, restWrites: RefuseDeclared}
---
apiVersion: forgeplane.dev/v1alpha1
kind: JobTokenScope
metadata: {name: app, namespace: yard}
spec: {projectRef: {name: app}}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Label
metadata: {name: bug, namespace: yard}
spec: {projectRef: {name: app}, title: bug, color: "#ff0000"}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Badge
metadata: {name: build, namespace: yard}
spec: {projectRef: {name: app}, linkURL: "https://ci.example.com", imageURL: "https://ci.example.com/a.svg"}
---
apiVersion: forgeplane.dev/v1alpha1
kind: DeployKey
metadata: {name: ci, namespace: yard}
spec: {projectRef: {name: app}, title: CI, publicKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE1PpB+KGusIoz8/UE8m1sWbgH6pSCGQjXdCWsyU0VQe"}
---
apiVersion: v1
kind: Secret
metadata: {name: ci, namespace: yard, labels: {forgeplane.dev/secret: trigger-token}}
---
apiVersion: forgeplane.dev/v1alpha1
kind: TriggerToken
metadata: {name: ci, namespace: yard}
spec: {projectRef: {name: app}, secretRef: {name: ci, key: token}}
---
apiVersion: forgeplane.dev/v1alpha1
kind: TriggerToken
metadata: {name: nightly, namespace: yard}
spec: {projectRef: {name: app}}
---
apiVersion: v1
kind: Secret
metadata: {name: robot, namespace: yard, labels: {forgeplane.dev/secret: bot-token}}
---
apiVersion: forgeplane.dev/v1alpha1
kind: BotToken
metadata: {name: robot, namespace: yard}
spec: {projectRef: {name: app}, name: Robot, role: Developer, scopes: [read_api], secretRef: {name: robot}}
---
apiVersion: forgeplane.dev/v1alpha1
kind: RemoteMirror
metadata: {name: away, namespace: yard}
spec: {projectRef: {name: app}, url: "https://127.0.0.1:1/app.git", enabled: false}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: visitor, namespace: yard}
`

// The accounts have some of their rights only for these rare events.
var _ = Describe("Forgeplane in rare situations", Ordered, func() {
	ctx := context.Background()

	BeforeAll(func() {
		admin.Apply(yard)
		admin.WaitReady("group,project,jobtokenscope,label,badge,deploykey,triggertoken,bottoken", "--all", "--namespace=yard")
		// Its owner is created after ten seconds, during which other specs run.
		var u v1alpha1.User
		Expect(api.Get(ctx, client.ObjectKey{Name: developer.name}, &u)).To(Succeed())
		Expect(api.Create(ctx, &v1alpha1.Group{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "harbour", Name: "orphan", Annotations: map[string]string{v1alpha1.AnnotationOwner: fmt.Sprintf("%d/%s", u.Status.ID, u.UID)},
			},
			Spec: v1alpha1.GroupSpec{Path: "orphan", ParentRef: &v1alpha1.Reference{Name: "harbour"}},
		})).To(Succeed())
		_, _, err := own.as(root).Commits.CreateCommit("harbour/yard/app", &gitlab.CreateCommitOptions{
			Branch: gitlab.Ptr("main"), CommitMessage: gitlab.Ptr("Begin"), Actions: []*gitlab.CommitActionOptions{{
				Action: gitlab.Ptr(gitlab.FileCreate), FilePath: gitlab.Ptr("README.md"), Content: gitlab.Ptr("Begun.\n"),
			}},
		})
		Expect(err).NotTo(HaveOccurred())
	})

	It("places a group below one whose namespace admits it by a label", func() {
		group, _, err := own.as(root).Groups.GetGroup("harbour/yard", nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(group.FullPath).To(Equal("harbour/yard"))
	})

	It("puts a value into an existing Secret", func() {
		Expect(admin.Field(".data.token", "secret/ci", "--namespace=yard")).NotTo(BeEmpty())
		digest := func() string { return admin.Field(".status.digest", "triggertoken/nightly", "--namespace=yard") }
		before := digest()
		admin.Kubectl("annotate", "triggertoken/nightly", "--namespace=yard", v1alpha1.AnnotationRotate+"=now")
		Eventually(digest).WithPolling(polling).ShouldNot(Equal(before))
	})

	It("replaces a protection that it created itself when another one is declared", func() {
		Eventually(func() string { return admin.Field(".status.protectedDefaultBranch", "project/app", "--namespace=yard") }).WithPolling(polling).Should(Equal("main"))
		admin.Apply(`
apiVersion: forgeplane.dev/v1alpha1
kind: ProtectedBranch
metadata: {name: declared, namespace: yard}
spec: {projectRef: {name: app}, branch: main}
`)
		Eventually(func() []string {
			var names []string
			for _, b := range admin.List("protectedbranches", "--namespace=yard") {
				names = append(names, b.GetName())
			}
			return names
		}).WithPolling(polling).Should(Equal([]string{"declared"}))
	})

	It("removes the owner of a membership that is declared after it was added over REST", func() {
		joiner := own.newUser(fresh("joiner"))
		_, _, err := own.as(root).ProjectMembers.AddProjectMember("harbour/yard/app", &gitlab.AddProjectMemberOptions{
			UserID: joiner.ID, AccessLevel: gitlab.Ptr(gitlab.GuestPermissions),
		})
		Expect(err).NotTo(HaveOccurred())
		added := admin.List("memberships", "--namespace=yard")
		Expect(added).To(HaveLen(1))
		owners := func() string {
			return admin.Field(".metadata.ownerReferences[*].name", "membership/"+added[0].GetName(), "--namespace=yard")
		}
		Expect(owners()).To(Equal("app"))
		admin.Kubectl("patch", "membership/"+added[0].GetName(), "--namespace=yard", "--type=merge", `--patch={"spec":{"role":"Reporter"}}`)
		Eventually(owners).WithPolling(polling).Should(BeEmpty())
	})

	It("records which objects are declared with their ids, until the namespace is gone", func() {
		space := fresh("declared")
		Expect(api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}})).To(Succeed())
		recorded := func() (names []string) {
			var record rbacv1.RoleBinding
			err := api.Get(ctx, client.ObjectKey{Namespace: forgeplane.Namespace, Name: ids.DeclareRole + "." + space}, &record)
			Expect(client.IgnoreNotFound(err)).To(Succeed())
			for _, s := range record.Subjects {
				names = append(names, s.Name)
			}
			return names
		}
		var all []string
		for n, name := range []string{"first", "second"} {
			const id = 7_000_001
			Expect(api.Create(ctx, &v1alpha1.Group{
				ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name}, Spec: v1alpha1.GroupSpec{Path: space + "-" + name, ID: id + int64(n)},
			})).To(Succeed())
			all = append(all, fmt.Sprintf("group.%s.%d", name, id+n))
			Eventually(recorded).WithPolling(polling).Should(ConsistOf(all))
		}
		Expect(api.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}})).To(Succeed())
		Eventually(recorded).WithPolling(polling).Should(BeEmpty())
	})

	It("removes what a client wants to remove only if it has not changed", func() {
		team, leaver := own.newTeam(gitlab.PrivateVisibility), own.newUser(fresh("leaver"))
		project := team.project.ID
		mirror, _, err := own.as(root).ProjectMirrors.AddProjectMirror(project, &gitlab.AddProjectMirrorOptions{URL: gitlab.Ptr("https://127.0.0.1:1/x.git")})
		Expect(err).NotTo(HaveOccurred())
		_, _, err = own.as(root).ProtectedBranches.ProtectRepositoryBranches(project, &gitlab.ProtectRepositoryBranchesOptions{Name: gitlab.Ptr("x")})
		Expect(err).NotTo(HaveOccurred())
		unmodified := gitlab.WithHeader("If-Unmodified-Since", time.Now().Add(time.Minute).UTC().Format(http.TimeFormat))
		for _, path := range []string{
			fmt.Sprintf("projects/%d/badges/%d", project, own.newBadge(project, "Build").ID),
			fmt.Sprintf("projects/%d/deploy_keys/%d", project, own.newDeployKey(project, "CI", false).ID),
			fmt.Sprintf("projects/%d/labels/%d", project, own.newLabel(project, "bug").ID),
			fmt.Sprintf("projects/%d/triggers/%d", project, own.newTrigger(root, project, "CI").ID),
			fmt.Sprintf("projects/%d/remote_mirrors/%d", project, mirror.ID),
			fmt.Sprintf("projects/%d/protected_branches/x", project),
			fmt.Sprintf("groups/%d/members/%d", team.group.ID, guest.id),
			fmt.Sprintf("projects/%d", project),
			fmt.Sprintf("groups/%d", team.group.ID),
			fmt.Sprintf("users/%d", leaver.ID),
		} {
			r := send(own.as(root), "DELETE "+path, "", unmodified)
			Expect(r.StatusCode).To(BeElementOf(http.StatusAccepted, http.StatusNoContent), "%s: %s", path, answered(r))
		}
	})

	It("refuses to change an object that is declared elsewhere", func() {
		tokens, _, err := own.as(root).ProjectAccessTokens.ListProjectAccessTokens("harbour/yard/app", nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(tokens).To(HaveLen(1))
		for request, body := range map[string]string{
			"PATCH projects/harbour%2Fyard%2Fapp/job_token_scope":                                `{"enabled":false}`,
			fmt.Sprintf("DELETE projects/harbour%%2Fyard%%2Fapp/access_tokens/%d", tokens[0].ID): "",
		} {
			Expect(answered(send(own.as(root), request, body))).To(And(HavePrefix("403 "), ContainSubstring("kubectl")), request)
		}
	})

	It("rotates a token once when several clients rotate it at the same time", func() {
		since := logged()
		Eventually(func(g Gomega) {
			made, _, err := own.as(root).Users.CreatePersonalAccessToken(developer.id, &gitlab.CreatePersonalAccessTokenOptions{
				Name: gitlab.Ptr(fresh("token")), Scopes: &[]string{"read_api"}, ExpiresAt: gitlab.Ptr(gitlab.ISOTime(time.Now().Add(48 * time.Hour))),
			})
			g.Expect(err).NotTo(HaveOccurred())
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					// One of them succeeds, and the server decides which one.
					_, _, _ = own.as(root).PersonalAccessTokens.RotatePersonalAccessTokenByID(made.ID, nil)
				})
			}
			all.Wait()
			for _, verb := range []string{"get", "delete"} {
				g.Expect(unused(since)).NotTo(ContainElement("forgeplane-apiserver everywhere: " + verb + " accesstokens.forgeplane.dev"))
			}
		}).WithPolling(polling).Should(Succeed())
	})

	It("deletes the token of a bot that was created over REST and ended long ago", func() {
		by := client.WithFieldOwner(api, string(declare.FieldOwner))
		token := &v1alpha1.BotToken{
			ObjectMeta: metav1.ObjectMeta{Namespace: "yard", Name: fresh("ended")},
			Spec: v1alpha1.BotTokenSpec{
				ProjectRef: &v1alpha1.Reference{Name: "app"}, Name: "ended", Role: v1alpha1.RoleGuest,
				Scopes: []v1alpha1.TokenScope{v1alpha1.ScopeReadAPI}, Digest: credential.Digest(fresh("a value that ended")), Revoked: true,
			},
		}
		Expect(by.Create(ctx, token)).To(Succeed())
		merge := func(patch string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(patch)) }
		Expect(by.Status().Patch(ctx, token.DeepCopy(), merge(`{"status":{"endedAt":"2026-01-01T00:00:00Z"}}`))).To(Succeed())
		Expect(client.IgnoreNotFound(by.Patch(ctx, token.DeepCopy(), merge(`{"spec":{"description":"Look again."}}`)))).To(Succeed())
		Eventually(func() error { return api.Get(ctx, client.ObjectKeyFromObject(token), token) }).WithPolling(polling).Should(Satisfy(apierrors.IsNotFound))
	})

	It("deletes with a user what was created for the user over REST", func() {
		team, leaver := own.newTeam(gitlab.PrivateVisibility), own.newUser(fresh("leaver"))
		_, _, err := own.as(root).ProjectMembers.AddProjectMember(team.project.ID, &gitlab.AddProjectMemberOptions{
			UserID: leaver.ID, AccessLevel: gitlab.Ptr(gitlab.MaintainerPermissions),
		})
		Expect(err).NotTo(HaveOccurred())
		token := own.newToken(leaver.ID, "api")
		_, _, err = own.with(token.Token).PipelineTriggers.AddPipelineTrigger(team.project.ID, &gitlab.AddPipelineTriggerOptions{
			Description: gitlab.Ptr("Nightly"),
		})
		Expect(err).NotTo(HaveOccurred())
		left := func(g Gomega) (all []v1alpha1.Object) {
			var members v1alpha1.MembershipList
			var tokens v1alpha1.AccessTokenList
			var triggers v1alpha1.TriggerTokenList
			for _, l := range []client.ObjectList{&members, &tokens, &triggers} {
				g.Expect(api.List(ctx, l)).To(Succeed())
			}
			for _, m := range members.Items {
				if m.Spec.UserRef.ID == leaver.ID {
					all = append(all, &m)
				}
			}
			for _, t := range tokens.Items {
				if t.Spec.UserRef.ID == leaver.ID {
					all = append(all, &t)
				}
			}
			for _, t := range triggers.Items {
				if t.Spec.OwnerRef != nil && t.Spec.OwnerRef.ID == leaver.ID {
					all = append(all, &t)
				}
			}
			return all
		}
		// An object that was never Ready would stay for a day.
		Eventually(func(g Gomega) {
			made := left(g)
			g.Expect(made).To(HaveLen(3))
			for _, o := range made {
				g.Expect(meta.IsStatusConditionTrue(o.GetCommonStatus().Conditions, v1alpha1.ConditionReady)).To(BeTrue(), "%T", o)
			}
		}).WithPolling(polling).Should(Succeed())
		_, err = own.as(root).Users.DeleteUser(leaver.ID)
		Expect(err).NotTo(HaveOccurred())
		Eventually(left).WithPolling(polling).Should(BeEmpty())
	})

	It("reverts the first half of a write when the second half is refused", func() {
		admin.Apply(halfRefused)
		path := fmt.Sprintf("projects/%s/remote_mirrors", "harbour%2Fyard%2Fapp")
		Eventually(func() int {
			return send(own.as(root), "POST "+path, `{"url":"https://ann:s3cret@127.0.0.1:1/`+fresh("mirror")+`.git"}`).StatusCode
		}).WithPolling(polling).Should(BeNumerically(">=", http.StatusBadRequest))
		admin.Kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "yard.conformance")
	})

	It("refuses a caller that kube-apiserver has not passed on to it", func() {
		authorities, err := base64.StdEncoding.DecodeString(admin.Field(".spec.caBundle", "apiservice", "v4.rest.forgeplane.dev"))
		Expect(err).NotTo(HaveOccurred())
		pool := x509.NewCertPool()
		Expect(pool.AppendCertsFromPEM(authorities)).To(BeTrue())
		visitor := http.Client{Timeout: patience.Wait, Transport: &http.Transport{TLSClientConfig: &tls.Config{
			RootCAs: pool, ServerName: "forgeplane-apiserver." + forgeplane.Namespace + ".svc", MinVersion: tls.VersionTLS12,
		}}}
		q, err := http.NewRequest(http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/apis/rest.forgeplane.dev/v4/version", ports.TLS), http.NoBody)
		Expect(err).NotTo(HaveOccurred())
		q.Header.Set("Authorization", "Bearer "+admin.Kubectl("create", "token", "visitor", "--namespace=yard"))
		answer, err := visitor.Do(q)
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.Body.Close()).To(Succeed())
		Expect(answer.StatusCode).To(Equal(http.StatusForbidden), "known, and not admitted")
	})

	It("retains a repository despite an obsolete record, and lets the next project adopt it", func() {
		var p v1alpha1.Project
		key := client.ObjectKey{Namespace: "yard", Name: "app"}
		Expect(api.Get(ctx, key, &p)).To(Succeed())
		id := p.Status.ID
		inTheWay := &v1alpha1.RetainedRepository{Spec: v1alpha1.RetainedRepositorySpec{
			Project: v1alpha1.FormerProject{Namespace: "yard", Name: "app", UID: "of-an-earlier-one", ID: id, Path: "app"}, Storage: "default",
		}}
		inTheWay.Name = v1alpha1.NaturalName("yard", "app", fmt.Sprint(id))
		Expect(api.Create(ctx, inTheWay)).To(Succeed())
		admin.Kubectl("delete", "project/app", "--namespace=yard", "--wait=false")
		message := `.status.conditions[?(@.type=="Ready")].message`
		Eventually(func() string { return admin.Field(message, "project/app", "--namespace=yard") }).WithPolling(polling).Should(ContainSubstring("of an earlier project must be deleted first"))
		Expect(api.Delete(ctx, inTheWay)).To(Succeed())
		Eventually(func(g Gomega) {
			var r v1alpha1.RetainedRepository
			g.Expect(api.Get(ctx, client.ObjectKeyFromObject(inTheWay), &r)).To(Succeed())
			g.Expect(r.Spec.Project.UID).To(BeEquivalentTo(p.UID))
			g.Expect(api.Get(ctx, key, &v1alpha1.Project{})).To(Satisfy(apierrors.IsNotFound))
		}).WithPolling(polling).Should(Succeed())
		admin.Apply(yard)
		admin.WaitReady("project/app", "--namespace=yard")
		Expect(api.Get(ctx, key, &p)).To(Succeed())
		Expect(p.Status.ID).To(Equal(id))
		Eventually(func() error {
			return api.Get(ctx, client.ObjectKeyFromObject(inTheWay), &v1alpha1.RetainedRepository{})
		}).WithPolling(polling).Should(Satisfy(apierrors.IsNotFound))
	})

	It("creates the owner of a group if the server was killed before it did so", func() {
		Eventually(func(g Gomega) {
			member, _, err := own.as(root).GroupMembers.GetGroupMember("harbour/orphan", developer.id)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(member.AccessLevel).To(Equal(gitlab.OwnerPermissions))
		}).WithPolling(polling).Should(Succeed())
	})
})

// halfRefused makes kube-apiserver refuse the status that a server writes for a mirror that it has just created for a client.
const halfRefused = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: yard.conformance}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [forgeplane.dev], apiVersions: ["*"], operations: [UPDATE], resources: [remotemirrors/status]}
  matchConditions:
  - {name: server, expression: "request.namespace == 'yard' && request.userInfo.username.endsWith(':forgeplane-apiserver')"}
  validations:
  - {expression: "false", message: "not now"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: yard.conformance}
spec: {policyName: yard.conformance, validationActions: [Deny]}
`
