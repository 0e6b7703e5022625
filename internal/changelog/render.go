package changelog

import (
	"strconv"
	"strings"
)

const (
	// maxOutput is the maximum size of the output of a template, in bytes.
	maxOutput = 8 << 20
	// maxSteps is the maximum number of evaluated nodes of a template, including repetitions.
	maxSteps = 2_000_000
)

// renderer writes the output of a template.
type renderer struct {
	out   strings.Builder
	steps int
}

// render returns the output of the template for data. The error is an Error if the output exceeds a limit.
func (t template) render(d data) (string, error) {
	var r renderer
	err := r.all(t, d)
	return r.out.String(), err
}

func (r *renderer) all(nodes template, in any) error {
	for _, n := range nodes {
		if r.steps++; r.steps > maxSteps {
			return errorf("The template takes more than %d steps", maxSteps)
		}
		if err := n.render(r, in); err != nil {
			return err
		}
	}
	return nil
}

func (r *renderer) write(text string) error {
	if r.out.Len()+len(text) > maxOutput {
		return errorf("The changelog is larger than %d bytes", maxOutput)
	}
	r.out.WriteString(text)
	return nil
}

func (t text) render(r *renderer, _ any) error { return r.write(string(t)) }

func (o output) render(r *renderer, in any) error {
	switch v := o.value.from(in).(type) {
	case string:
		return r.write(v)
	case int:
		return r.write(strconv.Itoa(v))
	case bool:
		return r.write(strconv.FormatBool(v))
	default:
		return nil
	}
}

func (c choice) render(r *renderer, in any) error {
	if truthy(c.value.from(in)) {
		return r.all(c.then, in)
	}
	return r.all(c.otherwise, in)
}

func (l loop) render(r *renderer, in any) error {
	list, _ := l.list.from(in).([]entity)
	for _, element := range list {
		// An empty body takes time, too.
		if r.steps++; r.steps > maxSteps {
			return errorf("The template takes more than %d steps", maxSteps)
		}
		if err := r.all(l.body, element); err != nil {
			return err
		}
	}
	return nil
}

// from returns the value at the end of the path, or nil if the path leads nowhere.
func (p path) from(in any) any {
	for _, name := range p {
		switch v := in.(type) {
		case entity:
			in = v.field(name)
		case []entity:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			in = v[i]
		default:
			return nil
		}
	}
	return in
}

// truthy returns the value of a condition of {% if %}: empty values are false.
func truthy(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case []entity:
		return len(v) > 0
	case trailers:
		return len(v) > 0
	default:
		return true
	}
}
