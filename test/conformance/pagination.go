package conformance

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/credential"
)

const (
	// crowd is the name of a namespace and of the group in it, and the prefix of the names of all objects in the lists.
	crowd = "crowd"
	// many is the number of objects of each kind.
	many = 25
)

// declareCrowd declares, through Kubernetes, a group and a project with that many objects of each kind.
func declareCrowd() {
	GinkgoHelper()
	admin.Kubectl("create", "namespace", crowd)
	name := func(i int) string { return fmt.Sprintf("%s-%02d", crowd, i) }
	in := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: crowd, Name: name} }
	ref := v1alpha1.Reference{Name: crowd}
	objects := []client.Object{
		&v1alpha1.Group{ObjectMeta: in(crowd), Spec: v1alpha1.GroupSpec{Path: crowd, Visibility: v1alpha1.VisibilityPrivate}},
		&v1alpha1.Project{ObjectMeta: in(crowd), Spec: v1alpha1.ProjectSpec{Path: "whole", GroupRef: ref}},
		// The bots are members of their project.
		&v1alpha1.Project{ObjectMeta: in("robots"), Spec: v1alpha1.ProjectSpec{Path: "robots", GroupRef: ref}},
		&v1alpha1.Membership{ObjectMeta: in("owner"), Spec: v1alpha1.MembershipSpec{
			UserRef: v1alpha1.Reference{Name: "owner"}, GroupRef: &ref, Role: v1alpha1.RoleOwner,
		}},
	}
	for i := range many {
		user := v1alpha1.Reference{Name: name(i)}
		objects = append(objects,
			&v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: name(i)}, Spec: v1alpha1.UserSpec{Username: name(i)}},
			&v1alpha1.AccessToken{ObjectMeta: metav1.ObjectMeta{Name: name(i)}, Spec: v1alpha1.AccessTokenSpec{
				UserRef: v1alpha1.Reference{Name: "outsider"}, Description: name(i), Scopes: []v1alpha1.TokenScope{v1alpha1.ScopeReadUser},
				SecretRef: &v1alpha1.SecretKeyReference{Name: name(i)},
			}},
			&v1alpha1.Group{ObjectMeta: in(name(i)), Spec: v1alpha1.GroupSpec{Path: name(i), ParentRef: &ref}},
			&v1alpha1.Project{ObjectMeta: in(name(i)), Spec: v1alpha1.ProjectSpec{Path: "project-" + name(i), GroupRef: ref}},
			&v1alpha1.Membership{ObjectMeta: in("group-" + name(i)), Spec: v1alpha1.MembershipSpec{UserRef: user, GroupRef: &ref, Role: v1alpha1.RoleGuest}},
			&v1alpha1.Membership{ObjectMeta: in("project-" + name(i)), Spec: v1alpha1.MembershipSpec{UserRef: user, ProjectRef: &ref, Role: v1alpha1.RoleReporter}},
			&v1alpha1.DeployKey{ObjectMeta: in(name(i)), Spec: v1alpha1.DeployKeySpec{ProjectRef: ref, Title: name(i), PublicKey: line(newKey())}},
			&v1alpha1.ProtectedBranch{ObjectMeta: in(name(i)), Spec: v1alpha1.ProtectedBranchSpec{ProjectRef: &ref, Branch: name(i) + "/*"}},
			&v1alpha1.TriggerToken{ObjectMeta: in(name(i)), Spec: v1alpha1.TriggerTokenSpec{ProjectRef: ref, Description: name(i)}},
			&v1alpha1.BotToken{ObjectMeta: in(name(i)), Spec: v1alpha1.BotTokenSpec{
				ProjectRef: &v1alpha1.Reference{Name: "robots"}, Name: name(i), Scopes: []v1alpha1.TokenScope{v1alpha1.ScopeReadUser}, Digest: credential.Digest(name(i)),
			}},
			&v1alpha1.Badge{ObjectMeta: in(name(i)), Spec: v1alpha1.BadgeSpec{GroupRef: &ref, Name: crowd, LinkURL: "https://a", ImageURL: "https://a"}},
			&v1alpha1.Label{ObjectMeta: in(name(i)), Spec: v1alpha1.LabelSpec{ProjectRef: &ref, Title: name(i), Color: "red"}},
		)
	}
	scope := &v1alpha1.JobTokenScope{ObjectMeta: in(crowd), Spec: v1alpha1.JobTokenScopeSpec{ProjectRef: ref}}
	for i := range many {
		scope.Spec.Allowlist = append(scope.Spec.Allowlist, v1alpha1.AllowlistEntry{ProjectRef: v1alpha1.Reference{Name: name(i)}})
	}
	objects = append(objects, scope)
	// kube-apiserver is faster with several requests at a time.
	queue := make(chan client.Object)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			defer GinkgoRecover()
			for o := range queue {
				Expect(api.Create(context.Background(), o)).To(Succeed())
			}
		})
	}
	for _, o := range objects {
		queue <- o
	}
	close(queue)
	workers.Wait()
	for name, of := range lists {
		Eventually(func(g Gomega) {
			_, r, err := of(own.as(owner), gitlab.ListOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(r.TotalItems).To(BeEquivalentTo(many), name)
		}).WithPolling(polling).Should(Succeed(), name)
	}
}

// list requests a page of a list, and returns the ids in it.
type list func(c *gitlab.Client, o gitlab.ListOptions, options ...gitlab.RequestOptionFunc) ([]int64, *gitlab.Response, error)

// idsOf converts the result of a client's method to ids.
func idsOf[T any](id func(T) int64) func([]T, *gitlab.Response, error) ([]int64, *gitlab.Response, error) {
	return func(all []T, r *gitlab.Response, err error) ([]int64, *gitlab.Response, error) {
		ids := make([]int64, len(all))
		for i, one := range all {
			ids[i] = id(one)
		}
		return ids, r, err
	}
}

// These functions return the ids in lists.
var (
	usersIn    = idsOf(func(u *gitlab.User) int64 { return u.ID })
	tokensIn   = idsOf(func(t *gitlab.PersonalAccessToken) int64 { return t.ID })
	groupsIn   = idsOf(func(g *gitlab.Group) int64 { return g.ID })
	spacesIn   = idsOf(func(n *gitlab.Namespace) int64 { return n.ID })
	projectsIn = idsOf(func(p *gitlab.Project) int64 { return p.ID })
	keysIn     = idsOf(func(k *gitlab.ProjectDeployKey) int64 { return k.ID })
	labelsIn   = idsOf(func(l *gitlab.Label) int64 { return l.ID })
	rulesIn    = idsOf(func(b *gitlab.ProtectedBranch) int64 { return b.ID })
	triggersIn = idsOf(func(t *gitlab.PipelineTrigger) int64 { return t.ID })
	botsIn     = idsOf(func(t *gitlab.ProjectAccessToken) int64 { return t.ID })
	badgesIn   = idsOf(func(b *gitlab.ProjectBadge) int64 { return b.ID })
	inProject  = idsOf(func(m *gitlab.ProjectMember) int64 { return m.ID })
	inGroup    = idsOf(func(m *gitlab.GroupMember) int64 { return m.ID })
)

// lists are the lists that have many objects.
var lists = map[string]list{
	"users": func(c *gitlab.Client, o gitlab.ListOptions, options ...gitlab.RequestOptionFunc) ([]int64, *gitlab.Response, error) {
		return usersIn(c.Users.ListUsers(&gitlab.ListUsersOptions{ListOptions: o, Search: gitlab.Ptr(crowd)}, options...))
	},
	"groups": func(c *gitlab.Client, o gitlab.ListOptions, options ...gitlab.RequestOptionFunc) ([]int64, *gitlab.Response, error) {
		return groupsIn(c.Groups.ListGroups(&gitlab.ListGroupsOptions{ListOptions: o, Search: gitlab.Ptr(crowd + "-")}, options...))
	},
	"subgroups": func(c *gitlab.Client, o gitlab.ListOptions, options ...gitlab.RequestOptionFunc) ([]int64, *gitlab.Response, error) {
		return groupsIn(c.Groups.ListSubGroups(crowd, &gitlab.ListSubGroupsOptions{ListOptions: o}, options...))
	},
	"namespaces": func(c *gitlab.Client, o gitlab.ListOptions, options ...gitlab.RequestOptionFunc) ([]int64, *gitlab.Response, error) {
		return spacesIn(c.Namespaces.ListNamespaces(&gitlab.ListNamespacesOptions{ListOptions: o, Search: gitlab.Ptr(crowd + "-")}, options...))
	},
	"projects": func(c *gitlab.Client, o gitlab.ListOptions, options ...gitlab.RequestOptionFunc) ([]int64, *gitlab.Response, error) {
		return projectsIn(c.Projects.ListProjects(&gitlab.ListProjectsOptions{ListOptions: o, Search: gitlab.Ptr(crowd + "-")}, options...))
	},
	"projects of a group": func(c *gitlab.Client, o gitlab.ListOptions, options ...gitlab.RequestOptionFunc) ([]int64, *gitlab.Response, error) {
		return projectsIn(c.Groups.ListGroupProjects(crowd, &gitlab.ListGroupProjectsOptions{ListOptions: o, Search: gitlab.Ptr(crowd + "-")}, options...))
	},
	"members of a project": func(c *gitlab.Client, o gitlab.ListOptions, options ...gitlab.RequestOptionFunc) ([]int64, *gitlab.Response, error) {
		return inProject(c.ProjectMembers.ListProjectMembers(crowd+"/whole", &gitlab.ListProjectMembersOptions{ListOptions: o}, options...))
	},
	"all members of a project": func(c *gitlab.Client, o gitlab.ListOptions, options ...gitlab.RequestOptionFunc) ([]int64, *gitlab.Response, error) {
		return inProject(c.ProjectMembers.ListAllProjectMembers(crowd+"/whole", &gitlab.ListProjectMembersOptions{ListOptions: o, Query: gitlab.Ptr(crowd)}, options...))
	},
	"members of a group": func(c *gitlab.Client, o gitlab.ListOptions, options ...gitlab.RequestOptionFunc) ([]int64, *gitlab.Response, error) {
		return inGroup(c.Groups.ListGroupMembers(crowd, &gitlab.ListGroupMembersOptions{ListOptions: o, Query: gitlab.Ptr(crowd)}, options...))
	},
	"all members of a group": func(c *gitlab.Client, o gitlab.ListOptions, options ...gitlab.RequestOptionFunc) ([]int64, *gitlab.Response, error) {
		return inGroup(c.Groups.ListAllGroupMembers(crowd, &gitlab.ListGroupMembersOptions{ListOptions: o, Query: gitlab.Ptr(crowd)}, options...))
	},
	"deploy keys": func(c *gitlab.Client, o gitlab.ListOptions, options ...gitlab.RequestOptionFunc) ([]int64, *gitlab.Response, error) {
		return keysIn(c.DeployKeys.ListProjectDeployKeys(crowd+"/whole", &gitlab.ListProjectDeployKeysOptions{ListOptions: o}, options...))
	},
	"labels": func(c *gitlab.Client, o gitlab.ListOptions, options ...gitlab.RequestOptionFunc) ([]int64, *gitlab.Response, error) {
		return labelsIn(c.Labels.ListLabels(crowd+"/whole", &gitlab.ListLabelsOptions{ListOptions: o}, options...))
	},
	"protected branches": func(c *gitlab.Client, o gitlab.ListOptions, options ...gitlab.RequestOptionFunc) ([]int64, *gitlab.Response, error) {
		return rulesIn(c.ProtectedBranches.ListProtectedBranches(crowd+"/whole", &gitlab.ListProtectedBranchesOptions{ListOptions: o, Search: gitlab.Ptr(crowd)}, options...))
	},
	"trigger tokens": func(c *gitlab.Client, o gitlab.ListOptions, options ...gitlab.RequestOptionFunc) ([]int64, *gitlab.Response, error) {
		return triggersIn(c.PipelineTriggers.ListPipelineTriggers(crowd+"/whole", &gitlab.ListPipelineTriggersOptions{ListOptions: o}, options...))
	},
	"access tokens of a project": func(c *gitlab.Client, o gitlab.ListOptions, options ...gitlab.RequestOptionFunc) ([]int64, *gitlab.Response, error) {
		return botsIn(c.ProjectAccessTokens.ListProjectAccessTokens(crowd+"/robots", &gitlab.ListProjectAccessTokensOptions{ListOptions: o}, options...))
	},
	"badges": func(c *gitlab.Client, o gitlab.ListOptions, options ...gitlab.RequestOptionFunc) ([]int64, *gitlab.Response, error) {
		return badgesIn(c.ProjectBadges.ListProjectBadges(crowd+"/whole", &gitlab.ListProjectBadgesOptions{ListOptions: o, Name: gitlab.Ptr(crowd)}, options...))
	},
	"job token allowlist": func(c *gitlab.Client, o gitlab.ListOptions, options ...gitlab.RequestOptionFunc) ([]int64, *gitlab.Response, error) {
		return projectsIn(c.JobTokenScope.GetProjectJobTokenInboundAllowList(crowd+"/whole", &gitlab.GetJobTokenInboundAllowListOptions{ListOptions: o}, options...))
	},
}

// tokensOfOutsider is a list that only its user can request.
func tokensOfOutsider(c *gitlab.Client, o gitlab.ListOptions, options ...gitlab.RequestOptionFunc) ([]int64, *gitlab.Response, error) {
	return tokensIn(c.PersonalAccessTokens.ListPersonalAccessTokens(&gitlab.ListPersonalAccessTokensOptions{ListOptions: o, Search: gitlab.Ptr(crowd)}, options...))
}

// expectPages expects that the client finds everything on pages of 10, on pages of the default size, and with its iterator.
func expectPages(c *gitlab.Client, of list) {
	GinkgoHelper()
	var all []int64
	for page, size := range map[int64]int{1: 10, 2: 10, 3: 5} {
		ids, r, err := of(c, gitlab.ListOptions{PerPage: 10, Page: page})
		Expect(err).NotTo(HaveOccurred())
		Expect(ids).To(HaveLen(size))
		Expect([]int64{r.TotalItems, r.TotalPages, r.ItemsPerPage, r.CurrentPage}).To(Equal([]int64{many, 3, 10, page}))
		Expect(r.PreviousPage).To(Equal(page - 1))
		Expect(r.NextPage).To(Equal((page + 1) % 4))
		all = append(all, ids...)
	}
	slices.Sort(all)
	Expect(slices.Compact(all)).To(HaveLen(many))

	var followed []int64
	requests := 0
	for next := int64(1); next != 0; requests++ {
		ids, r, err := of(c, gitlab.ListOptions{Page: next})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.ItemsPerPage).To(BeEquivalentTo(20))
		followed, next = append(followed, ids...), r.NextPage
	}
	Expect(requests).To(Equal(2))
	scanned, err := gitlab.ScanAndCollect(func(page gitlab.PaginationOptionFunc) ([]int64, *gitlab.Response, error) {
		return of(c, gitlab.ListOptions{PerPage: 10}, page)
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(scanned).To(Equal(followed))
	slices.Sort(scanned)
	Expect(scanned).To(Equal(all))
}

var _ = Describe("25 objects with 10 on a page:", Ordered, ContinueOnFailure, func() {
	BeforeAll(declareCrowd)
	describe(expectPagination, each()...)
})

func expectPagination(d *door) {
	for name, of := range lists {
		It(name, func() { expectPages(d.as(owner), of) })
	}
	It("access tokens", func() { expectPages(d.as(outsider), tokensOfOutsider) })

	It("deploy keys of all projects", func() {
		all, err := gitlab.ScanAndCollect(func(page gitlab.PaginationOptionFunc) ([]*gitlab.InstanceDeployKey, *gitlab.Response, error) {
			return d.as(root).DeployKeys.ListAllDeployKeys(&gitlab.ListInstanceDeployKeysOptions{ListOptions: gitlab.ListOptions{PerPage: 10}}, page)
		})
		Expect(err).NotTo(HaveOccurred())
		there := 0
		for _, k := range all {
			if len(k.ProjectsWithReadonlyAccess) == 1 && k.ProjectsWithReadonlyAccess[0].PathWithNamespace == crowd+"/whole" {
				there++
			}
		}
		Expect(there).To(Equal(many))
	})

	for _, order := range []string{"asc", "desc"} {
		It("projects and groups by keyset, "+order, func() {
			for name, of := range map[string]list{"all": lists["projects"], "of a group": lists["projects of a group"], "groups": lists["groups"]} {
				o := gitlab.ListOptions{Pagination: "keyset", OrderBy: "id", Sort: order, PerPage: 10}
				ids, r, err := of(d.as(owner), o)
				Expect(err).NotTo(HaveOccurred(), name)
				requests := 1
				for ; r.NextLink != ""; requests++ {
					Expect(r.Header).NotTo(Or(HaveKey("X-Total"), HaveKey("X-Next-Page"), HaveKey("X-Page")), name)
					Expect(r.Header.Get("Link")).NotTo(ContainSubstring(`rel="first"`), name)
					var more []int64
					more, r, err = of(d.as(owner), o, gitlab.WithKeysetPaginationParameters(r.NextLink))
					Expect(err).NotTo(HaveOccurred(), name)
					ids = append(ids, more...)
				}
				Expect(r.Header).NotTo(HaveKey("Link"), name)
				Expect(requests).To(Equal(3), name)
				Expect(ids).To(HaveLen(many), name)
				if order == "desc" {
					slices.Reverse(ids)
				}
				Expect(slices.IsSorted(ids)).To(BeTrue(), name)
				Expect(slices.Compact(slices.Clone(ids))).To(HaveLen(many), name)
			}
		})
	}

	It("refuses keyset pagination for an order without a key", func() {
		_, r, err := lists["projects"](d.as(owner), gitlab.ListOptions{Pagination: "keyset", OrderBy: "name"})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`405 {"error":"Keyset pagination is not yet available for this type of request"}`))
	})

	It("links to pages with the address of the door, every parameter, and the defaults", func() {
		_, r, err := lists["protected branches"](d.as(owner), gitlab.ListOptions{PerPage: 10, Page: 2})
		Expect(err).NotTo(HaveOccurred())
		var relations []string
		for _, part := range regexp.MustCompile(`<([^>]*)>; rel="([a-z]*)"(, )?`).FindAllStringSubmatch(r.Header.Get("Link"), -1) {
			relations = append(relations, part[2])
			link, err := url.Parse(part[1])
			Expect(err).NotTo(HaveOccurred())
			base, err := url.Parse(d.url)
			Expect(err).NotTo(HaveOccurred())
			Expect(link.Scheme + "://" + link.Host).To(Equal(base.Scheme + "://" + base.Host))
			want := map[string]string{"prev": "1", "next": "3", "first": "1", "last": "3"}[part[2]]
			Expect(link.Query()).To(Equal(url.Values{"page": {want}, "per_page": {"10"}, "search": {crowd}}))
			request, err := http.NewRequest(http.MethodGet, part[1], http.NoBody)
			Expect(err).NotTo(HaveOccurred())
			if d.tokens {
				request.Header.Set("PRIVATE-TOKEN", owner.token)
			}
			answer, err := d.through(owner).RoundTrip(request)
			Expect(err).NotTo(HaveOccurred())
			Expect(answer.Body.Close()).To(Succeed())
			Expect(answer).To(HaveHTTPStatus(http.StatusOK), part[1])
			Expect(answer.Header.Get("X-Page")).To(Equal(want))
		}
		Expect(relations).To(Equal([]string{"prev", "next", "first", "last"}))

		_, r, err = lists["projects"](d.as(owner), gitlab.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		next, err := url.Parse(r.NextLink)
		Expect(err).NotTo(HaveOccurred())
		Expect(next.Query()).To(HaveKeyWithValue("order_by", []string{"created_at"}))
		Expect(next.Query()).To(HaveKeyWithValue("sort", []string{"desc"}))
		Expect(next.Query()).To(HaveKeyWithValue("search", []string{crowd + "-"}))
	})

	It("limits the size of pages, and answers beyond the end", func() {
		rules := lists["protected branches"]
		ids, r, err := rules(d.as(owner), gitlab.ListOptions{PerPage: 1000})
		Expect(err).NotTo(HaveOccurred())
		Expect(ids).To(HaveLen(many))
		Expect(r.Header.Get("X-Per-Page")).To(Equal("100"))
		Expect(r.Header.Values("X-Next-Page")).To(Equal([]string{""}))
		Expect(r.Header.Values("X-Prev-Page")).To(Equal([]string{""}))

		ids, r, err = rules(d.as(owner), gitlab.ListOptions{Page: 9})
		Expect(err).NotTo(HaveOccurred())
		Expect(ids).To(BeEmpty())
		Expect(answered(r)).To(Equal("200 []"))
		Expect(r.Header.Get("X-Page")).To(Equal("9"))
		Expect(r.Header.Values("X-Next-Page")).To(Equal([]string{""}))
		Expect(r.Header.Values("X-Prev-Page")).To(Equal([]string{""}))

		for _, page := range []string{"0", "-3"} {
			r = send(d.as(owner), "GET projects?search="+crowd+"-&page="+page, "")
			Expect(r.StatusCode).To(Equal(200))
			Expect(r.CurrentPage).To(BeEquivalentTo(1))
		}

		r = send(d.as(owner), "GET projects?search=there-is-none", "")
		Expect(answered(r)).To(Equal("200 []"))
		Expect(r.Header.Get("X-Total")).To(Equal("0"))
		Expect(r.Header.Get("X-Total-Pages")).To(Equal("1"))
	})
}
