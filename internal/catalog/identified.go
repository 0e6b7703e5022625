package catalog

// identified is an object of a kind that has a REST id.
type identified interface{ IDs() (spec, status *int64) }

// WithID returns the first of the objects that declares a REST id, if there is one. What has no id yet is not known to the REST API,
// and so not found by 0.
func WithID[T identified](all []T, id int64) (found T, ok bool) {
	for _, o := range all {
		if spec, _ := o.IDs(); *spec == id && id != 0 {
			return o, true
		}
	}
	return found, false
}
