package tenancy_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
	"github.com/forgeplane/forgeplane/test/forgeplane"
)

// attack is something that an attacker could try after taking over a process of Forgeplane.
type attack func(ctx SpecContext, c client.Client, team string) error

// attacks are the attacks that must fail with every account.
var attacks = map[string]attack{
	"make a Secret of a tenant": func(ctx SpecContext, c client.Client, team string) error {
		return c.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "made"}})
	},
	"make one by applying it": func(ctx SpecContext, c client.Client, team string) error {
		return applied(ctx, c, "v1", "Secret", team, "made", nil)
	},
	"read a Secret of a tenant by its name": func(ctx SpecContext, c client.Client, team string) error {
		return c.Get(ctx, client.ObjectKey{Namespace: team, Name: "database"}, &corev1.Secret{})
	},
	"delete a Secret of a tenant": func(ctx SpecContext, c client.Client, team string) error {
		return c.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "database"}})
	},
	"change a Secret of a tenant that is not offered": func(ctx SpecContext, c client.Client, team string) error {
		return merge(ctx, c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "database"}}, `{"stringData":{"password":"mine"}}`)
	},
	"offer a Secret of a tenant to itself": func(ctx SpecContext, c client.Client, team string) error {
		return merge(ctx, c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "database"}},
			`{"metadata":{"labels":{"forgeplane.dev/secret":"trigger-token"}}}`)
	},
	"have Kubernetes put the token of a ServiceAccount into a Secret": func(ctx SpecContext, c client.Client, _ string) error {
		return c.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: forge.PlatformNamespace, Name: "minted", Annotations: map[string]string{
				corev1.ServiceAccountNameKey: "forgeplane-manager",
			}},
			Type: corev1.SecretTypeServiceAccountToken,
		})
	},
	"issue a token of a ServiceAccount": func(ctx SpecContext, c client.Client, _ string) error {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: forge.PlatformNamespace, Name: "forgeplane-manager"}}
		return c.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})
	},
	"register an API of another name": func(ctx SpecContext, c client.Client, _ string) error {
		return applied(ctx, c, "apiregistration.k8s.io/v1", "APIService", "", "v1.example.com", map[string]any{
			"group": "example.com", "version": "v1", "groupPriorityMinimum": int64(1), "versionPriority": int64(1),
			"service": map[string]any{"namespace": "default", "name": "kubernetes"},
		})
	},
	"create its own API without naming it in the request": func(ctx SpecContext, c client.Client, _ string) error {
		u := object("apiregistration.k8s.io/v1", "APIService", "", "v4.rest.forgeplane.dev")
		u.Object["spec"] = map[string]any{
			"group": "rest.forgeplane.dev", "version": "v4", "groupPriorityMinimum": int64(1), "versionPriority": int64(1),
			"service": map[string]any{"namespace": "default", "name": "kubernetes"},
		}
		return c.Create(ctx, u)
	},
	"take over the API of a kind of Kubernetes": func(ctx SpecContext, c client.Client, _ string) error {
		return merge(ctx, c, object("apiregistration.k8s.io/v1", "APIService", "", "v1."), `{"spec":{"versionPriority":2}}`)
	},
	"change its own role": func(ctx SpecContext, c client.Client, _ string) error {
		return merge(ctx, c, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "forgeplane-manager"}},
			`{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`)
	},
	"bind a role to itself": func(ctx SpecContext, c client.Client, team string) error {
		return c.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "mine"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: forge.PlatformNamespace, Name: "forgeplane-apiserver"}},
		})
	},
	"give its own role to somebody": func(ctx SpecContext, c client.Client, _ string) error {
		return c.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: forge.PlatformNamespace, Name: "theirs"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "forgeplane-manager"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:authenticated"}},
		})
	},
	"give it by changing who has it": func(ctx SpecContext, c client.Client, _ string) error {
		return c.Update(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: forge.PlatformNamespace, Name: "forgeplane-manager"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "forgeplane-manager"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:authenticated"}},
		})
	},
	"take the role of another part": func(ctx SpecContext, c client.Client, _ string) error {
		return c.Delete(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: forge.PlatformNamespace, Name: "forgeplane-apiserver"}})
	},
	"change what is admitted": func(ctx SpecContext, c client.Client, _ string) error {
		return c.Delete(ctx, object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "", "secrets.forgeplane.dev"))
	},
	"start a program": func(ctx SpecContext, c client.Client, _ string) error {
		return c.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: forge.PlatformNamespace, Name: "mine"}})
	},
	"read the settings of others": func(ctx SpecContext, c client.Client, team string) error {
		return c.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(team))
	},
}

// ofServers are attacks that must also fail with the account of the servers, which does not need these rights.
var ofServers = map[string]attack{
	"list the Secrets of all tenants": func(ctx SpecContext, c client.Client, _ string) error {
		return c.List(ctx, &corev1.SecretList{})
	},
	"list those of one, though they are offered": func(ctx SpecContext, c client.Client, team string) error {
		return c.List(ctx, &corev1.SecretList{}, client.InNamespace(team), client.HasLabels{v1alpha1.LabelSecret})
	},
	"change a Secret that is offered": func(ctx SpecContext, c client.Client, team string) error {
		return merge(ctx, c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "offered"}}, `{"stringData":{"token":"mine"}}`)
	},
	"write the status of a membership": func(ctx SpecContext, c client.Client, team string) error {
		m := &v1alpha1.Membership{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "none"}}
		return c.Status().Patch(ctx, m, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"role":"Owner"}}`)))
	},
	"declare a shard": func(ctx SpecContext, c client.Client, _ string) error {
		return c.Create(ctx, &v1alpha1.RepositoryStorage{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: v1alpha1.RepositoryStorageSpec{Path: "/"}})
	},
}

// ofControllers are attacks that must also fail with the account of the controllers.
var ofControllers = map[string]attack{
	"register its API": func(ctx SpecContext, c client.Client, _ string) error {
		return applied(ctx, c, "apiregistration.k8s.io/v1", "APIService", "", "v4.rest.forgeplane.dev", nil)
	},
	"make a user": func(ctx SpecContext, c client.Client, _ string) error {
		return c.Create(ctx, &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: v1alpha1.UserSpec{Username: "mine", Admin: true}})
	},
	"make an access token": func(ctx SpecContext, c client.Client, _ string) error {
		return c.Create(ctx, forge.AccessToken("mine").Build())
	},
	"ask whom RBAC admits": func(ctx SpecContext, c client.Client, _ string) error {
		return c.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "x"}})
	},
}

func object(version, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func applied(ctx SpecContext, c client.Client, version, kind, namespace, name string, spec map[string]any) error {
	u := object(version, kind, namespace, name)
	if spec != nil {
		u.Object["spec"] = spec
	}
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("attacker"), client.ForceOwnership)
}

func merge(ctx SpecContext, c client.Client, o client.Object, patch string) error {
	return c.Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(patch)))
}

var _ = Describe("An account of Forgeplane", Ordered, func() {
	var team string

	as := func(account string) client.Client {
		return cluster.ClientOf(account, "system:serviceaccounts", "system:serviceaccounts:"+forge.PlatformNamespace)
	}

	BeforeAll(func(ctx SpecContext) {
		f := forge.New(cluster, forge.Options{})
		team = f.NewNamespace()
		f.Create(forge.Group("acme").In(team).Build())
		for name, labels := range map[string]map[string]string{
			"database": nil, "offered": {v1alpha1.LabelSecret: v1alpha1.SecretOfTriggerToken},
		} {
			f.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name, Labels: labels}})
		}
		// Policies come into force with a delay.
		policy := attacks["have Kubernetes put the token of a ServiceAccount into a Secret"]
		Eventually(func(ctx SpecContext) bool {
			return apierrors.IsForbidden(policy(ctx, client.NewDryRunClient(as(forgeplane.All.Account())), team))
		}).WithContext(ctx).Should(BeTrue())
	})

	DescribeTable("cannot do anything that its work does not require",
		func(ctx SpecContext, part forgeplane.Part, more map[string]attack) {
			c := as(part.Account())
			for _, all := range []map[string]attack{attacks, more} {
				for what, try := range all {
					err := try(ctx, c, team)
					Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%s: %s: %v", part, what, err)
				}
			}
		},
		Entry("the account of the servers", forgeplane.APIServer, ofServers),
		Entry("the account of the controllers", forgeplane.Manager, ofControllers),
		Entry("the account of both together", forgeplane.All, nil),
	)

	It("cannot act as another user", func(ctx SpecContext) {
		for _, part := range []forgeplane.Part{forgeplane.APIServer, forgeplane.Manager, forgeplane.All} {
			for _, user := range []string{"kubernetes-admin", forgeplane.Manager.Account()} {
				err := cluster.Impersonate(ctx, part.Account(), user)
				Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%s as %s: %v", part, user, err)
				Expect(err).To(MatchError(ContainSubstring("cannot impersonate")))
			}
		}
	})

	It("can register Forgeplane's own API by applying it, and fill a Secret that is labeled for it", func(ctx SpecContext) {
		servers, controllers := as(forgeplane.APIServer.Account()), as(forgeplane.Manager.Account())
		spec := map[string]any{
			"group": "rest.forgeplane.dev", "version": "v4", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": forge.PlatformNamespace, "name": "forgeplane-apiserver", "port": int64(443)},
		}
		Expect(applied(ctx, servers, "apiregistration.k8s.io/v1", "APIService", "", "v4.rest.forgeplane.dev", spec)).To(Succeed())
		Expect(servers.Delete(ctx, object("apiregistration.k8s.io/v1", "APIService", "", "v4.rest.forgeplane.dev"))).To(Succeed())
		offered := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "offered"}}
		Expect(merge(ctx, controllers, offered, `{"stringData":{"token":"generated"}}`)).To(Succeed())
		for _, change := range []string{`{"metadata":{"labels":null}}`, `{"metadata":{"labels":{"app":"x"}}}`, `{"metadata":{"labels":{"forgeplane.dev/secret":"import"}}}`} {
			Expect(apierrors.IsForbidden(merge(ctx, controllers, offered, change))).To(BeTrue(), fmt.Sprint("a label: ", change))
		}
	})
})
