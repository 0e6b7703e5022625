package apiserver

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	_ "gocloud.dev/blob/memblob" // the driver of mem:// URLs
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/avatar"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/visible"
	"github.com/forgeplane/forgeplane/internal/activity"
	"github.com/forgeplane/forgeplane/internal/artifact"
	stored "github.com/forgeplane/forgeplane/internal/avatar"
	"github.com/forgeplane/forgeplane/internal/blob"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/declare"
	"github.com/forgeplane/forgeplane/internal/feature"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/mergecheck"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/internal/storagemove"
)

// These are the ids that requests name. The project is in the group team, and team is in the group above.
const (
	projectID, groupID, aboveID, otherProjectID, thirdProjectID = 10, 20, 21, 11, 12
	exposedProjectID, listedProjectID, hiddenGroupID            = 13, 14, 22
	friendsID, invitedID, roomID, veiledID                      = 23, 24, 26, 27
	targetID, newcomerID, bannedID                              = 30, 31, 32
	personalID, personalProjectID                               = 25, 15
	keyID, otherKeyID, exposedKeyID                             = 40, 41, 42
	triggerID, ownerlessTriggerID, ownTriggerID                 = 60, 61, 5000
	badgeID, groupBadgeID                                       = 70, 71
	moveID                                                      = 75
	mirrorID, otherMirrorID                                     = 80, 81
	labelID, groupLabelID, aboveLabelID                         = 90, 91, 92
	targetTokenID, lostTokenID                                  = 1000 + targetID, 2020
	projectBotID, groupBotID, otherBotID                        = 1, 2, 3
	projectTokenID, groupTokenID, ownerTokenID                  = 4, 5, 6
	team                                                        = "team"
)

// noon is the time of all tests.
var noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

var roles = []v1alpha1.Role{
	v1alpha1.RoleGuest, v1alpha1.RoleReporter, v1alpha1.RoleDeveloper, v1alpha1.RoleMaintainer, v1alpha1.RoleOwner,
}

// member returns the username of the user with a role in a place: "project", "group" or "above".
func member(place string, r v1alpha1.Role) string { return place + "-" + strings.ToLower(string(r)) }

// memberID returns the id of that user.
func memberID(place string, r v1alpha1.Role) int64 {
	return int64(100 + 10*slices.Index(places, place) + slices.Index(roles, r))
}

// places are the project and the groups in which users have roles.
var places = []string{"project", "group", "above"}

// These are public keys whose private keys no longer exist.
const (
	publicKey        = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE1PpB+KGusIoz8/UE8m1sWbgH6pSCGQjXdCWsyU0VQe"
	otherPublicKey   = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILLLza1dQkcOs0Lg/7mYGJVK3IHJE+c7XL9l6a8hbeY6"
	exposedPublicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHJcudUODFo1JRmtl4y512+HSEgZhafS2OeESWTI15Dy"
	newPublicKey     = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPeukGGsraqc6QKEKkrDubgcEiTxBaQUE/oDmykoWQzs"
)

// forkOf makes a project a fork of the one with an id, which has its repository.
func forkOf(p *v1alpha1.Project, id int64) *v1alpha1.Project {
	p.Spec.ForkOf = &v1alpha1.ForkOf{ProjectRef: v1alpha1.Reference{ID: id}}
	p.Status.RefsChecksum = "checksum"
	return p
}

// projectRuleID is the id of the approval rule of the project app.
const projectRuleID = mergerequest.FirstProjectRule + 1

// ruled adds an approval rule to a project that asks for no approvals.
func ruled(p *v1alpha1.Project) *v1alpha1.Project {
	p.Spec.MergeRequests.Approvals.Rules = []v1alpha1.ApprovalRule{{Name: "Nobody", ID: projectRuleID}}
	return p
}

// declared returns the declared objects: a project and its groups with a visibility, all callers, and an object of each kind that requests
// are about.
func declared(v v1alpha1.Visibility) []client.Object {
	all := []client.Object{
		familytest.User("admin", 1, familytest.Admin), familytest.User("outsider", 2),
		familytest.User("blocked", 3, familytest.Blocked), familytest.User("target", targetID), familytest.User("newcomer", newcomerID),
		familytest.User("banned", bannedID, familytest.Banned),
		familytest.Group(team, "above", aboveID, "", v), familytest.Group(team, "team", groupID, "above", v),
		ruled(familytest.Project(team, "app", projectID, "team", v)), familytest.Project(team, "other", otherProjectID, "team", v),
		forkOf(familytest.Project(team, "third", thirdProjectID, "team", v), otherProjectID),
		familytest.InProject(team, "app", "target", v1alpha1.RoleGuest), familytest.InGroup(team, "team", "target", v1alpha1.RoleGuest),
		deployKey(keyID, "app", publicKey), deployKey(otherKeyID, "other", otherPublicKey),
		// Owners can create projects here.
		familytest.Group(team, "room", roomID, "", v),
		// The projects are public, and their group hides them from everyone except administrators.
		familytest.Group(team, "hidden", hiddenGroupID, "", v1alpha1.VisibilityPrivate),
		familytest.Project(team, "exposed", exposedProjectID, "hidden", v1alpha1.VisibilityPublic),
		familytest.Project(team, "listed", listedProjectID, "hidden", v1alpha1.VisibilityPublic),
		deployKey(exposedKeyID, "exposed", exposedPublicKey),
		// The project and its group are shared with one of these groups.
		familytest.Group("friends", "friends", friendsID, "", v1alpha1.VisibilityPublic),
		familytest.Group("friends", "invited", invitedID, "", v1alpha1.VisibilityPublic),
		familytest.Group("friends", "veiled", veiledID, "", v1alpha1.VisibilityPrivate), // both are shared with it, too
		familytest.User("friend", 4), familytest.InGroup("friends", "invited", "friend", v1alpha1.RoleMaintainer),
		familytest.User("external", 5, func(s *v1alpha1.UserSpec) { s.External = true }),
		familytest.User("auditor", 6, func(s *v1alpha1.UserSpec) { s.Auditor = true }),
		remoteMirror(mirrorID, "app"), remoteMirror(otherMirrorID, "other"),
		&v1alpha1.ProtectedBranch{
			ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "main"},
			Spec:       v1alpha1.ProtectedBranchSpec{ID: 50, ProjectRef: &v1alpha1.Reference{Name: "app"}, Branch: "main"},
		},
		triggerToken(triggerID, member("project", v1alpha1.RoleMaintainer)),
		triggerToken(ownerlessTriggerID, ""),
		botToken(projectBotID, v1alpha1.BotTokenSpec{ProjectRef: &v1alpha1.Reference{Name: "app"}, Role: v1alpha1.RoleMaintainer}),
		botToken(groupBotID, v1alpha1.BotTokenSpec{GroupRef: &v1alpha1.Reference{Name: "team"}, Role: v1alpha1.RoleMaintainer}),
		botToken(otherBotID, v1alpha1.BotTokenSpec{ProjectRef: &v1alpha1.Reference{Name: "other"}, Role: v1alpha1.RoleOwner}),
		botToken(projectTokenID, v1alpha1.BotTokenSpec{ProjectRef: &v1alpha1.Reference{Name: "app"}, Role: v1alpha1.RoleDeveloper}),
		botToken(groupTokenID, v1alpha1.BotTokenSpec{GroupRef: &v1alpha1.Reference{Name: "team"}, Role: v1alpha1.RoleDeveloper}),
		botToken(ownerTokenID, v1alpha1.BotTokenSpec{ProjectRef: &v1alpha1.Reference{Name: "app"}, Role: v1alpha1.RoleOwner}),
		&v1alpha1.Badge{
			ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "build"},
			Spec: v1alpha1.BadgeSpec{
				ID: badgeID, ProjectRef: &v1alpha1.Reference{Name: "app"}, LinkURL: "https://ci.example", ImageURL: "https://ci.example/a.svg",
			},
		},
		&v1alpha1.Badge{
			ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "all"},
			Spec: v1alpha1.BadgeSpec{
				ID: groupBadgeID, GroupRef: &v1alpha1.Reference{Name: "team"}, LinkURL: "https://ci.example", ImageURL: "https://ci.example/a.svg",
			},
		},
		&v1alpha1.ProtectedBranch{
			ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "stable"},
			Spec:       v1alpha1.ProtectedBranchSpec{ID: 51, GroupRef: &v1alpha1.Reference{Name: "team"}, Branch: "stable"},
		},
		&v1alpha1.JobTokenScope{
			ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "app"},
			Spec: v1alpha1.JobTokenScopeSpec{
				ProjectRef: v1alpha1.Reference{Name: "app"},
				Allowlist: []v1alpha1.AllowlistEntry{
					{ProjectRef: v1alpha1.Reference{ID: otherProjectID}}, {ProjectRef: v1alpha1.Reference{ID: listedProjectID}},
				},
				GroupAllowlist: []v1alpha1.GroupAllowlistEntry{{GroupRef: v1alpha1.Reference{ID: friendsID}}},
			},
		},
		label(labelID, "bug", v1alpha1.LabelSpec{ProjectRef: &v1alpha1.Reference{Name: "app"}}),
		label(groupLabelID, "urgent", v1alpha1.LabelSpec{GroupRef: &v1alpha1.Reference{Name: "team"}}),
		label(aboveLabelID, "legal", v1alpha1.LabelSpec{GroupRef: &v1alpha1.Reference{Name: "above"}}),
		ciVariable(team, v1alpha1.VariableSpec{ProjectRef: &v1alpha1.Reference{Name: "app"}}),
		ciVariable(team, v1alpha1.VariableSpec{GroupRef: &v1alpha1.Reference{Name: "team"}}), ciVariable(familytest.Namespace, v1alpha1.VariableSpec{}),
		familytest.InProject(team, "app", "blocked", v1alpha1.RoleOwner), familytest.InGroup(team, "team", "blocked", v1alpha1.RoleOwner),
	}
	all = append(all, personal("target", targetID)...)
	shared := []v1alpha1.Share{
		{GroupRef: v1alpha1.Reference{ID: invitedID}, Role: v1alpha1.RoleDeveloper}, {GroupRef: v1alpha1.Reference{ID: veiledID}, Role: v1alpha1.RoleGuest},
	}
	project(all, "app").Spec.SharedWith = shared
	for _, o := range all {
		if g, ok := o.(*v1alpha1.Group); ok && g.Name == "team" {
			g.Spec.SharedWith = shared
		}
	}
	for _, r := range roles {
		for _, place := range places {
			name := member(place, r)
			all = append(all, familytest.User(name, memberID(place, r), func(s *v1alpha1.UserSpec) {
				s.Kubernetes = &v1alpha1.KubernetesIdentity{Username: "system:serviceaccount:ci:" + name}
			}))
			if r == v1alpha1.RoleOwner {
				all = append(all, familytest.InGroup(team, "room", name, v1alpha1.RoleMaintainer))
			}
			switch place {
			case "project":
				// Requests enable a deploy key of the other project, and allow job tokens of the third project.
				all = append(all, familytest.InProject(team, "app", name, r), familytest.InProject(team, "other", name, r),
					familytest.InProject(team, "third", name, r))
			case "group":
				all = append(all, familytest.InGroup(team, "team", name, r))
			default:
				all = append(all, familytest.InGroup(team, "above", name, r))
			}
		}
	}
	for _, o := range all {
		if u, ok := o.(*v1alpha1.User); ok {
			all = append(all, token(1000+u.Spec.ID, u.Name, familytest.Value(u.Name), v1alpha1.ScopeAPI), triggerToken(ownTriggerID+u.Spec.ID, u.Name))
		}
	}
	return append(all, tokens()...)
}

// personal returns the group of the personal projects of a user, with a public project.
func personal(name string, id int64) []client.Object {
	u := familytest.User(name, id)
	g := namespace.PersonalOf(u, "home")
	g.Spec.ID = personalID
	delete(g.Annotations, v1alpha1.AnnotationPersonal)
	return []client.Object{
		g, familytest.InGroup("home", g.Name, name, v1alpha1.RoleOwner),
		familytest.Project("home", "notes", personalProjectID, g.Name, v1alpha1.VisibilityPublic),
	}
}

func deployKey(id int64, project, key string) *v1alpha1.DeployKey {
	return &v1alpha1.DeployKey{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "key-of-" + project},
		Spec: v1alpha1.DeployKeySpec{
			ID: id, ProjectRef: v1alpha1.Reference{Name: project}, Title: "CI", PublicKey: key, Access: v1alpha1.DeployKeyReadOnly,
		},
	}
}

// triggerValue returns the value of the trigger token with an id.
func triggerValue(id int64) string { return fmt.Sprintf("the-value-of-trigger-token-%d", id) }

// triggerToken returns a trigger token of a user, or without an owner if user is empty.
func triggerToken(id int64, user string) *v1alpha1.TriggerToken {
	t := &v1alpha1.TriggerToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: fmt.Sprintf("trigger-%d", id)},
		Spec: v1alpha1.TriggerTokenSpec{
			ID: id, ProjectRef: v1alpha1.Reference{Name: "app"}, Description: "Nightly",
		},
		Status: v1alpha1.TriggerTokenStatus{Digest: credential.Digest(triggerValue(id))},
	}
	if user != "" {
		t.Spec.OwnerRef = &v1alpha1.Reference{Name: user}
	}
	return t
}

// botValue returns the value of the bot token with an id.
func botValue(id int64) string { return fmt.Sprintf("the-value-of-bot-token-%d", id) }

// botToken returns a bot token with the scope api.
func botToken(id int64, spec v1alpha1.BotTokenSpec) *v1alpha1.BotToken {
	spec.ID, spec.Name, spec.Scopes, spec.Digest = id, "Robot", []v1alpha1.TokenScope{v1alpha1.ScopeAPI}, credential.Digest(botValue(id))
	return &v1alpha1.BotToken{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: fmt.Sprintf("bot-%d", id)}, Spec: spec}
}

func remoteMirror(id int64, project string) *v1alpha1.RemoteMirror {
	return &v1alpha1.RemoteMirror{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "mirror-of-" + project},
		Spec: v1alpha1.RemoteMirrorSpec{
			ID: id, ProjectRef: v1alpha1.Reference{Name: project}, URL: "https://example.com/" + project + ".git",
		},
	}
}

func label(id int64, title string, of v1alpha1.LabelSpec) *v1alpha1.Label {
	of.ID, of.Title, of.Color = id, title, "#FF0000"
	return &v1alpha1.Label{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: title}, Spec: of}
}

// ciVariable returns a variable with the key HOST of a project, a group or the installation.
func ciVariable(inNamespace string, of v1alpha1.VariableSpec) *v1alpha1.Variable {
	of.Key, of.EnvironmentScope = "HOST", v1alpha1.AnyEnvironment
	v := &v1alpha1.Variable{ObjectMeta: metav1.ObjectMeta{Namespace: inNamespace, Name: "host"}, Spec: of}
	if of.GroupRef != nil {
		v.Name = "host-of-group"
	}
	return v
}

// scopes are all scopes that a token can have.
var scopes = []v1alpha1.TokenScope{
	v1alpha1.ScopeAPI, v1alpha1.ScopeReadAPI, v1alpha1.ScopeReadUser, v1alpha1.ScopeReadRepository,
	v1alpha1.ScopeWriteRepository, v1alpha1.ScopeReadRegistry, v1alpha1.ScopeWriteRegistry, v1alpha1.ScopeSudo,
}

// tokens returns tokens of the administrator, one for each scope, and some tokens that are no longer valid.
func tokens() []client.Object {
	expired := token(2001, "admin", "expired", v1alpha1.ScopeAPI)
	expired.Spec.ExpiresAt = &metav1.Time{Time: noon}
	revoked := token(2002, "admin", "revoked", v1alpha1.ScopeAPI)
	revoked.Spec.Revoked = true
	all := []client.Object{
		expired, revoked, token(2003, "admin", "api-and-sudo", v1alpha1.ScopeAPI, v1alpha1.ScopeSudo),
		token(lostTokenID, "gone", "lost", v1alpha1.ScopeAPI),
	}
	for i, scope := range scopes {
		all = append(all, token(int64(2010+i), "admin", "scope-"+string(scope), scope))
	}
	return all
}

// token returns a token of a user with a value.
func token(id int64, user, value string, scopes ...v1alpha1.TokenScope) *v1alpha1.AccessToken {
	return &v1alpha1.AccessToken{
		ObjectMeta: metav1.ObjectMeta{Name: strings.ReplaceAll(value, "_", "-")},
		Spec: v1alpha1.AccessTokenSpec{
			ID: id, UserRef: v1alpha1.Reference{Name: user}, Scopes: scopes,
			SecretRef: &v1alpha1.SecretKeyReference{Name: "a", Key: "token"},
		},
		Status: v1alpha1.AccessTokenStatus{ID: id, Digest: credential.Digest(value)},
	}
}

// world is the whole REST API over declared objects in memory.
type world struct {
	t       *testing.T
	store   *kubeAPI
	repos   *repository.Repositories
	handler *endpoint.Handler

	// repository belongs to the project. refs has the contents of its initial refs, by file, and pushes counts their changes since the last
	// reset.
	repository *git.Repository
	refs       map[string][]byte
	pushes     atomic.Int32
	// subscribed counts the changes of subscriptions.
	subscribed atomic.Int32
	// gallery has the images of the project.
	gallery *gallery
	// items are the rows of the project and its group in the activity database. They know of the writes of all rows, also those of the gallery.
	items *items
	// outdated reports whether a request must be retried; nil for never.
	outdated func() bool
}

// writes returns the number of changes since the last reset.
func (w *world) writes() int {
	return w.store.writes + int(w.pushes.Load()+w.subscribed.Load()) + w.items.writes()
}

// reset restores the initial state.
func (w *world) reset() {
	w.store.reset()
	w.subscribed.Store(0)
	if w.items.writes() > 0 {
		w.gallery.reset()
		w.items.reset()
	}
	if w.pushes.Swap(0) > 0 || w.lacksRefs() {
		w.restore()
	}
}

// lacksRefs reports whether refs of merge requests are gone. They go with a merge request, which is not a push.
func (w *world) lacksRefs() bool {
	for name := range w.refs {
		if !strings.HasPrefix(name, "merge-requests/") {
			continue
		}
		if _, err := os.Stat(filepath.Join(w.repository.Dir(), "refs", name)); err != nil {
			return true
		}
	}
	return false
}

// restore restores the files of the initial refs. With a git process, this would take most of the time of the tests.
func (w *world) restore() {
	dir := filepath.Join(w.repository.Dir(), "refs")
	if err := os.RemoveAll(dir); err != nil {
		w.t.Fatal(err)
	}
	for name, text := range w.refs {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
}

// refFiles returns the files of all refs in a repository without packed refs.
func refFiles(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "packed-refs")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("there are refs in packed-refs: %v", err)
	}
	files := map[string][]byte{}
	refs := os.DirFS(filepath.Join(dir, "refs"))
	err := fs.WalkDir(refs, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[path], err = fs.ReadFile(refs, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// newWorld returns a world in which the project and its groups have a visibility.
func newWorld(t *testing.T, v v1alpha1.Visibility) *world {
	t.Helper()
	return newWorldWith(t, v, git.Options{})
}

// newWorldWith is newWorld with an engine that has limits, which also set the memory for answers.
func newWorldWith(t *testing.T, v v1alpha1.Visibility, engine git.Options) *world {
	t.Helper()
	external, err := url.Parse(familytest.WebURL)
	if err != nil {
		t.Fatal(err)
	}
	objects := declared(v)
	app := project(objects, "app")
	app.Status.RefsChecksum = "0" // it has a repository
	avatars := pictured(t, objects)
	w := &world{t: t, store: newStore(t, append(objects, familytest.Shard(t, app)))}
	cat := w.store.world.Catalog()
	w.repos = familytest.Limited(t, cat, engine)
	w.repository = familytest.Push(t, w.repos, app, history(t))
	authenticator := auth.NewAuthenticator(cat, clocktesting.NewFakePassiveClock(noon), clusterAdministrators{})
	k := newKit(t, cat, auth.NewGuard(authenticator, cat, w.repos))
	authenticator.Executing(k.Activity.Runners, k.Activity.Pipelines)
	if err := k.Activity.Moves.Record(t.Context(), storagemove.Move{ID: moveID, State: v1alpha1.StorageMoveFinished, Project: storagemove.Project{UID: app.UID, ID: projectID}}); err != nil {
		t.Fatal(err)
	}
	k.Activity.Subscriptions = forgetful{k.Activity.Subscriptions, &w.subscribed}
	w.gallery = newGallery(t, cat, k.Activity.Database, app, k.Clock)
	k.Artifacts = artifact.NewStore(k.Activity.Pipelines, newBlobs(t))
	w.items = newItems(t, k.Activity, k.Artifacts, objects, mergecheck.New(cat, familytest.Limited(t, cat, engine), k.Activity, k.Clock))
	w.refs = refFiles(t, w.repository.Dir())
	k.Images, k.ImagesHost, k.Avatars = w.gallery.registry, external.Host, avatars
	k.Features = feature.New(w.store, familytest.Namespace, nil)
	k.Guard = k.Guard.Featuring(k.Features)
	k.Writer, k.Credentials = store.NewBackend(declare.NewWriter(w.store, w.store, &counter{last: 1 << 20}), cat, ""), credential.NewStore(w.store, familytest.Namespace)
	k.Repositories, k.Refs = w.repos, ref.NewUpdater(k.Guard, w.repos, func(change.Event) { w.pushes.Add(1) })
	w.handler = newREST(k, external, endpoint.Options{
		Memory: engine.Memory, Log: testr.New(t), Outdated: func(context.Context) (bool, error) { return w.outdated != nil && w.outdated(), nil },
	}, families(k))
	return w
}

// newKit returns a kit that reads declared objects, and that schedules no work. It writes nothing until it gets a Writer.
func newKit(t testing.TB, cat *catalog.Catalog, guard *auth.Guard) family.Kit {
	t.Helper()
	clock := clocktesting.NewFakePassiveClock(noon)
	return family.Kit{
		Catalog: cat, Guard: guard, Visible: visible.NewProjects(cat, clock), IDs: &counter{last: 1 << 20}, Maintain: func(types.NamespacedName) bool { return true },
		Activity: familytest.Activity(t, clock), Queue: func(job.QueueOptions) family.Tasks { return unscheduled{} },
		OnWritten: func(string, func(context.Context, change.Event) error) {},
		Clock:     clock, WebURL: familytest.WebURL, Version: "test", Namespace: familytest.Namespace, Home: "home",
	}
}

// unscheduled is a queue that forgets its tasks.
type unscheduled struct{}

func (unscheduled) Add(context.Context, job.Task) error { return nil }

func (unscheduled) AddAfter(context.Context, job.Task, time.Duration) error { return nil }

// pictured gives an avatar to each project, group and user, before they are stored.
func pictured(t *testing.T, objects []client.Object) *avatar.Avatars {
	t.Helper()
	avatars := stored.NewStore(newBlobs(t))
	for _, o := range objects {
		of, is := o.(v1alpha1.Pictured)
		if !is {
			continue
		}
		o.SetUID(types.UID(fmt.Sprintf("%T-%s", o, o.GetName())))
		var err error
		if *of.Avatar(), err = avatars.Add(t.Context(), of, []byte("picture")); err != nil {
			t.Fatal(err)
		}
	}
	return avatar.New(avatars)
}

func newBlobs(t *testing.T) *blob.Store {
	t.Helper()
	blobs, err := blob.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = blobs.Close() })
	return blobs
}

// forgetful is a store of subscriptions that reports every subscription as new, and every cancellation as successful.
type forgetful struct {
	activity.Subscriptions
	changes *atomic.Int32
}

// Subscribe implements activity.Subscriptions.
func (f forgetful) Subscribe(context.Context, database.User, database.Subject) (bool, error) {
	f.changes.Add(1)
	return true, nil
}

// Unsubscribe implements activity.Subscriptions.
func (f forgetful) Unsubscribe(context.Context, database.User, database.Subject) (bool, error) {
	f.changes.Add(1)
	return true, nil
}

// project returns the project with a name among objects.
func project(objects []client.Object, name string) *v1alpha1.Project {
	for _, o := range objects {
		if p, ok := o.(*v1alpha1.Project); ok && p.Name == name {
			return p
		}
	}
	return nil
}

// blobID is the id of a file in the repository of the project.
const blobID = "ce013625030ba8dba906f756967f9e9ca394464a"

// history returns the contents of the project's repository.
func history(t testing.TB) *gittest.Client {
	c := gittest.New(t, "sha1")
	c.Commit(t, "README.md", "hello\n")
	c.Git(t, "branch", "topic")
	c.Git(t, "tag", "v1.0.0")
	c.Commit(t, "LICENSE", "Take it.\n")
	c.Git(t, "branch", "signed", c.Write(t, "commit", "tree "+c.Git(t, "rev-parse", "HEAD^{tree}")+"\nparent "+c.Git(t, "rev-parse", "HEAD")+
		"\nauthor A <a@b> 0 +0000\ncommitter A <a@b> 0 +0000\ngpgsig -----BEGIN SSH SIGNATURE-----\n \n\nSigned\n"))
	c.Git(t, "branch", "bare", c.Git(t, "commit-tree", "-m", "Begin", c.Git(t, "mktree")))
	file, err := hex.DecodeString(c.Write(t, "blob", "test: {script: make, only: [branches, tags, merge_requests]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	c.Git(t, "branch", "ci", c.Git(t, "commit-tree", "-m", "Test", c.Write(t, "tree", "100644 .gitlab-ci.yml\x00"+string(file))))
	return c
}

// clusterAdministrator is a Kubernetes identity that administers the instance; no User is declared for it.
const clusterAdministrator = "system:admin"

// clusterAdministrators stands for kube-apiserver, which door A asks for administrators.
type clusterAdministrators struct{}

func (clusterAdministrators) Include(ctx context.Context) (bool, error) {
	identity, _ := auth.IdentityFrom(ctx)
	return identity == clusterAdministrator, nil
}

// send serves a request. The body is JSON; empty for none.
func (w *world) send(c caller, subject, method, target, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(w.t.Context(), method, target, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return w.serve(c.sign(r, subject))
}

func (w *world) serve(r *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	return answer
}
