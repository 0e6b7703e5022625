package changelog

import "testing"

func TestInsert_keepsVersionsInOrder(t *testing.T) {
	for name, tt := range map[string]struct{ version, before, want string }{
		"into nothing":            {"1.0.0", "", "## 1.0.0\n"},
		"newest":                  {"1.1.0", "# Log\n\n## 1.0.0 (x)\n\na\n", "# Log\n\n## 1.1.0\n\n## 1.0.0 (x)\n\na\n"},
		"between":                 {"1.0.1", "## 2.0.0\n\nb\n\n## 1.0.0\n\na\n", "## 2.0.0\n\nb\n\n## 1.0.1\n\n## 1.0.0\n\na\n"},
		"oldest":                  {"0.9.0", "## 1.0.0\n\na\n", "## 1.0.0\n\na\n\n## 0.9.0\n"},
		"without an end":          {"0.9.0", "## 1.0.0\n\na", "## 1.0.0\n\na\n\n## 0.9.0\n"},
		"after two line breaks":   {"0.9.0", "a\n\n", "a\n\n## 0.9.0\n"},
		"numbers":                 {"1.9.0", "## 1.10.0\n\n## 1.2.0\n", "## 1.10.0\n\n## 1.9.0\n\n## 1.2.0\n"},
		"a pre-release":           {"1.0.0", "## 1.0.0-rc.1\n", "## 1.0.0\n\n## 1.0.0-rc.1\n"},
		"between pre-releases":    {"1.0.0-rc.2", "## 1.0.0\n\n## 1.0.0-rc.1\n", "## 1.0.0\n\n## 1.0.0-rc.2\n\n## 1.0.0-rc.1\n"},
		"with a v":                {"v1.1.0", "## v1.0.0\n", "## v1.1.0\n\n## v1.0.0\n"},
		"Windows":                 {"1.1.0", "## 2.0.0\r\n\r\n## 1.0.0\r\n", "## 2.0.0\r\n\r\n## 1.1.0\n\n## 1.0.0\r\n"},
		"Windows, at the end":     {"0.1.0", "## 2.0.0\r\n\r\n", "## 2.0.0\r\n\r\n## 0.1.0\n"},
		"other headings":          {"1.1.0", "### 1.0.0\n## News 1.0.0\n## 1.0\n##1.0.0\n # 1\n", "### 1.0.0\n## News 1.0.0\n## 1.0\n##1.0.0\n # 1\n\n## 1.1.0\n"},
		"out of order":            {"1.1.0", "## 1.0.0\n\n## 2.0.0\n", "## 1.1.0\n\n## 1.0.0\n\n## 2.0.0\n"},
		"with a name":             {"1.0.1", "## 1.1.0: Big\n\n## 1.0.0, in May\n", "## 1.1.0: Big\n\n## 1.0.1\n\n## 1.0.0, in May\n"},
		"exists with a name":      {"1.1.0", "## 1.1.0: Big\n", ""},
		"exists with a full stop": {"1.1.0", "## 1.1.0.\n", ""},
		"another build":           {"1.1.0+a", "## 1.1.0+ab\n", "## 1.1.0+ab\n\n## 1.1.0+a\n"},
		"exists":                  {"1.1.0", "## 1.0.0\n\n## v1.1.0 (x)\n", ""},
		"not UTF-8":               {"1.1.0", "\xff\n## 1.0.0\n\xfe", "\xff\n## 1.1.0\n\n## 1.0.0\n\xfe"},
	} {
		t.Run(name, func(t *testing.T) {
			v, ok := ParseVersion(tt.version)
			if !ok {
				t.Fatal("this is no version")
			}
			got, changed := Section{v, "## " + tt.version + "\n"}.Insert(tt.before)
			if want := tt.want; changed != (want != "") || changed && got != want || !changed && got != tt.before {
				t.Errorf("%t\ngot  %q\nwant %q", changed, got, want)
			}
		})
	}
}
