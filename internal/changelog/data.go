package changelog

// entity is a value whose fields templates can read. A field is a string, a bool, an int, an entity, a list of entities, or nil if it does
// not exist.
type entity interface{ field(name string) any }

type data struct{ categories []entity }

func (d data) field(name string) any {
	if name == "categories" {
		return d.categories
	}
	return nil
}

type category struct {
	title   string
	entries []entity
}

func (c *category) field(name string) any {
	switch name {
	case "title":
		return c.title
	case "count":
		return len(c.entries)
	case "single_change":
		return len(c.entries) == 1
	case "entries":
		return c.entries
	default:
		return nil
	}
}

type entry struct{ *Entry }

func (e entry) field(name string) any {
	switch {
	case name == "title":
		return e.Title
	case name == "commit":
		return commit(e)
	case name == "author" && e.Author != nil:
		return author{e.Author}
	case name == "merge_request" && e.MergeRequest != nil:
		return mergeRequest{e.MergeRequest}
	default:
		return nil
	}
}

type commit struct{ *Entry }

func (c commit) field(name string) any {
	switch name {
	case "reference":
		return c.Reference
	case "web_url":
		return c.WebURL
	case "trailers":
		return trailers(c.Trailers)
	default:
		return nil
	}
}

type trailers map[string]string

func (t trailers) field(name string) any { return t[name] }

type author struct{ *Author }

func (a author) field(name string) any {
	switch name {
	case "reference":
		return a.Reference
	case "contributor":
		return a.Contributor
	case "credit":
		return a.Credit
	default:
		return nil
	}
}

type mergeRequest struct{ *MergeRequest }

func (m mergeRequest) field(name string) any {
	switch name {
	case "reference":
		return m.Reference
	case "web_url":
		return m.WebURL
	default:
		return nil
	}
}
