package mergerequests_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/mergerequests"
	"github.com/forgeplane/forgeplane/internal/audit/audittest"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/note"
)

// gitWorld is a forge with the public project acme/web (20) and its fork acme/fork (21). Olga is an Owner, mary a Maintainer, dora a Developer and rita
// a Reporter of the group acme, and pia a Developer of web alone. Only Maintainers can push to the branch stable of web, and Developers can merge into
// it; only Maintainers can do either for the branch closed.
type gitWorld struct {
	*familytest.Forge
	t *testing.T

	// web and fork are the repositories, binary is git, and starts counts its commands.
	web, fork *gittest.Client
	store     *git.Repository
	binary    string
	starts    func(string) int
	// lines is the audit log of background work.
	lines *audittest.Lines
}

// newGitWorld returns a world whose web has the branches of a client, and whose fork has them too.
func newGitWorld(t *testing.T, c *gittest.Client) gitWorld {
	t.Helper()
	web, fork := familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic), familytest.Project("acme", "fork", 21, "acme", v1alpha1.VisibilityPublic)
	w := gitWorld{t: t, Forge: familytest.New(t,
		familytest.User("mary", 2), familytest.User("dora", 3), familytest.User("rita", 4), familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleMaintainer), familytest.InGroup("acme", "acme", "dora", v1alpha1.RoleDeveloper),
		familytest.InGroup("acme", "acme", "rita", v1alpha1.RoleReporter), familytest.User("olga", 5), familytest.InGroup("acme", "acme", "olga", v1alpha1.RoleOwner),
		familytest.User("pia", 6), familytest.InProject("acme", "web", "pia", v1alpha1.RoleDeveloper), familytest.Shard(t, web, fork), web, fork,
		protected("stable", 30, v1alpha1.AccessDeveloper), protected("closed", 31, v1alpha1.AccessMaintainer),
	)}
	binary, starts := gittest.Logged(t)
	repos := familytest.Limited(t, w.Catalog, git.Options{Binary: binary})
	w.Activity = familytest.Activity(t, w.Clock)
	w.Authenticator.Collaborating(w.Activity.MergeRequests)
	w.lines = audittest.Open(t)
	w.Audit = w.lines.Log
	w.Keep(repos)
	w.store, w.binary, w.starts = familytest.Push(t, repos, web, c), binary, starts
	w.web = &gittest.Client{Dir: w.store.Dir()}
	w.fork = &gittest.Client{Dir: familytest.Push(t, repos, fork, c).Dir()}
	w.Serve(mergerequests.New(w.Kit).Table())
	return w
}

// protected is a protection of a branch of web, to which only Maintainers can push.
func protected(branch string, id int64, merge v1alpha1.AccessRole) *v1alpha1.ProtectedBranch {
	return &v1alpha1.ProtectedBranch{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: strings.TrimSuffix(branch, "-*")},
		Spec: v1alpha1.ProtectedBranchSpec{
			ID: id, ProjectRef: &v1alpha1.Reference{Name: "web"}, Branch: branch,
			Push: []v1alpha1.AccessLevel{{Role: v1alpha1.AccessMaintainer}}, Merge: []v1alpha1.AccessLevel{{Role: merge}},
		},
	}
}

// template has the files of the work tree that branched copies.
var template struct {
	made  sync.Once
	files fstest.MapFS
}

// branched returns a work tree with the branches main, stable and closed at one commit, the branch topic with a commit that adds the file topic, and
// the branch rival with another file of that name.
func branched(t *testing.T) *gittest.Client {
	t.Helper()
	template.made.Do(func() { template.files = filesIn(t, newTemplate(t).Dir) })
	c := &gittest.Client{Dir: t.TempDir()}
	if err := os.CopyFS(c.Dir, template.files); err != nil {
		t.Fatal(err)
	}
	return c
}

// filesIn reads the files of a directory.
func filesIn(t *testing.T, dir string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, path))
		files[path] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// newTemplate makes the work tree that branched copies.
func newTemplate(t *testing.T) *gittest.Client {
	t.Helper()
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1\n")
	c.Git(t, "branch", "stable")
	c.Git(t, "branch", "closed")
	for _, branch := range []string{"topic", "rival"} {
		c.Git(t, "checkout", "--quiet", "-b", branch, "main")
		c.Commit(t, "topic", branch+"\n")
		c.Commit(t, "topic", branch+" again\n")
	}
	c.Git(t, "checkout", "--quiet", "main")
	return c
}

// request adds a merge request of a branch of a project into a branch of web.
func (w gitWorld) request(source int64, from, into string, changes ...func(*mergerequest.MergeRequest)) mergerequest.MergeRequest {
	w.t.Helper()
	m := mergerequest.MergeRequest{
		In: w.ProjectRow(20), Source: w.ProjectRow(source), SourceBranch: from, TargetBranch: into, Title: "Add " + from, Author: w.UserRow("dora"),
	}
	for _, c := range changes {
		c(&m)
	}
	if err := w.Activity.MergeRequests.Create(w.t.Context(), &m); err != nil {
		w.t.Fatal(err)
	}
	return m
}

// configure changes the settings of the merge requests of web.
func (w gitWorld) configure(set func(*v1alpha1.MergeRequests)) {
	w.t.Helper()
	edit(w, &v1alpha1.Project{}, "web", func(p *v1alpha1.Project) { set(&p.Spec.MergeRequests) })
}

// edit changes an object in the namespace acme.
func edit[T client.Object](w gitWorld, o T, name string, change func(T)) {
	w.t.Helper()
	if err := w.Client.Get(w.t.Context(), client.ObjectKey{Namespace: "acme", Name: name}, o); err != nil {
		w.t.Fatal(err)
	}
	change(o)
	if err := w.Client.Update(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// read returns the row of a merge request.
func (w gitWorld) read(m mergerequest.MergeRequest) mergerequest.MergeRequest {
	w.t.Helper()
	now, err := w.Activity.MergeRequests.WithID(w.t.Context(), m.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return now
}

func (w gitWorld) get(m mergerequest.MergeRequest) mergerequests.Detailed {
	w.t.Helper()
	return w.done("rita", fmt.Sprintf("GET /projects/20/merge_requests/%d", m.IID), "")
}

// done sends a request that succeeds.
func (w gitWorld) done(as, request, body string) mergerequests.Detailed {
	w.t.Helper()
	a := w.As(as, request, body)
	if a.Code != 200 {
		w.t.Fatalf("%s %s: %s", request, body, a)
	}
	return familytest.Decode[mergerequests.Detailed](w.t, a)
}

// merge asks to merge a merge request.
func (w gitWorld) merge(as string, m mergerequest.MergeRequest, body string) familytest.Answer {
	w.t.Helper()
	return w.As(as, fmt.Sprintf("PUT /projects/20/merge_requests/%d/merge", m.IID), body)
}

// commit returns a new commit on top of a parent, with the files of a revision.
func (w gitWorld) commit(parent, files string) string {
	w.t.Helper()
	return w.web.Git(w.t, "commit-tree", "-p", parent, "-m", "x", w.head(files+"^{tree}"))
}

func (w gitWorld) head(rev string) string { return w.web.Git(w.t, "rev-parse", rev) }

// notes returns the texts of the system notes on a merge request.
func (w gitWorld) notes(m mergerequest.MergeRequest) (all []string) {
	w.t.Helper()
	page, _, err := w.Activity.Notes.List(w.t.Context(), m.Item(), note.Query{Kinds: note.System, Limit: 10})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, n := range page {
		all = append(all, n.Body)
	}
	return all
}
