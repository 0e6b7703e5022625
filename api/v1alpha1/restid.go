package v1alpha1

import "cmp"

// RESTID is the id that the REST API shows: the declared one, and the one in force while a replace has dropped that. It is 0 as long as
// the object has none, and the REST API does not know it.
func (u *User) RESTID() int64 { return cmp.Or(u.Spec.ID, u.Status.ID) }

// RESTID is the id that the REST API shows.
func (t *AccessToken) RESTID() int64 { return cmp.Or(t.Spec.ID, t.Status.ID) }

// RESTID is the id that the REST API shows.
func (g *Group) RESTID() int64 { return cmp.Or(g.Spec.ID, g.Status.ID) }

// RESTID is the id that the REST API shows.
func (p *Project) RESTID() int64 { return cmp.Or(p.Spec.ID, p.Status.ID) }

// RESTID is the id that the REST API shows.
func (k *DeployKey) RESTID() int64 { return cmp.Or(k.Spec.ID, k.Status.ID) }

// RESTID is the id that the REST API shows.
func (b *ProtectedBranch) RESTID() int64 { return cmp.Or(b.Spec.ID, b.Status.ID) }

// RESTID is the id that the REST API shows.
func (t *TriggerToken) RESTID() int64 { return cmp.Or(t.Spec.ID, t.Status.ID) }

// RESTID is the id that the REST API shows.
func (b *Badge) RESTID() int64 { return cmp.Or(b.Spec.ID, b.Status.ID) }

// RESTID is the id that the REST API shows.
func (m *RemoteMirror) RESTID() int64 { return cmp.Or(m.Spec.ID, m.Status.ID) }

// RESTID is the id that the REST API shows.
func (l *Label) RESTID() int64 { return cmp.Or(l.Spec.ID, l.Status.ID) }
