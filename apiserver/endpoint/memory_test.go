package endpoint_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// scarce has no free memory until a caller waits for it. It records the current and the maximum number of held bytes.
type scarce struct {
	waited     int
	most, held int64
	err        error
	// full says that the caller's own share is used up.
	full bool
}

func (s *scarce) weigh(bytes int64) {
	s.held, s.most = bytes, max(s.most, bytes)
}

// Take implements endpoint.Memory.
func (s *scarce) Take(_ context.Context, bytes int64) (func(int64), error) {
	s.waited++
	if s.err != nil {
		return nil, s.err
	}
	s.weigh(bytes)
	return s.weigh, nil
}

// Try implements endpoint.Memory.
func (s *scarce) Try(context.Context, int64) func(int64) { return nil }

// OverShare implements endpoint.Memory.
func (s *scarce) OverShare(context.Context, int64) bool { return s.full }

// odd has fields of all kinds, including one of its own type.
type odd struct {
	Text    string            `json:"text"`
	Bytes   []byte            `json:"bytes"`
	Raw     json.RawMessage   `json:"raw"`
	Any     any               `json:"any"`
	Map     map[string]string `json:"map"`
	When    *time.Time        `json:"when"`
	Numbers []float64         `json:"numbers"`
	Within  *odd              `json:"within"`
	List    []odd             `json:"list"`
	hidden  string
}

func oddity() odd {
	long := strings.Repeat("x", 300_000)
	when := time.Date(2026, 6, 15, 12, 0, 0, 123, time.UTC)
	return odd{
		Text: strings.Repeat("\x01\n\"\u2028é\xff<", 50_000), Bytes: []byte(long), Raw: json.RawMessage(`"` + long + `"`), Any: []any{long, 1, nil, true},
		Map: map[string]string{long: long}, When: &when, Numbers: []float64{1.7976931348623157e308, -0.1},
		Within: &odd{Text: long, hidden: long}, List: []odd{{Text: long}, {Within: &odd{Text: long}}},
	}
}

func TestMemory_isHeldForLongAnswers(t *testing.T) {
	small := odd{Text: strings.Repeat("\x01", 10_000)}
	calls := 0
	answer := func(o odd) func(context.Context, endpoint.None, *endpoint.None) (odd, error) {
		return func(context.Context, endpoint.None, *endpoint.None) (odd, error) { calls++; return o, nil }
	}
	table := endpoint.Table{
		endpoint.Get("/large", answer(oddity())), endpoint.Get("/small", answer(small)), endpoint.Post("/large", answer(oddity())),
		endpoint.Post("/small", answer(small)),
	}
	want := httptest.NewRecorder()
	newHandler(table).ServeHTTP(want, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/large", http.NoBody))
	size := int64(want.Body.Len())
	for _, tt := range []struct {
		request       string
		waited, calls int
	}{
		{"GET /small", 0, 1}, {"GET /large", 1, 2}, {"POST /large", 1, 1}, {"POST /small", 0, 1}, {"HEAD /large", 1, 2},
	} {
		m := &scarce{}
		calls = 0
		h := endpoint.NewHandler(endpoint.Options{Guard: open{}, Log: logr.Discard(), BaseURL: mustParse(t, "https://forge.example/api/v4"), Memory: m}, table)
		method, path, _ := strings.Cut(tt.request, " ")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody))
		if w.Code >= 300 || m.waited != tt.waited || calls != tt.calls || m.held != 0 {
			t.Errorf("%s: %d, waited %d times, and for %d calls; %d bytes are held", tt.request, w.Code, m.waited, calls, m.held)
		}
		if strings.HasSuffix(tt.request, "/large") && (w.Body.String() != want.Body.String() || m.most < 3*size || m.most > 4*size) {
			t.Errorf("%s: %d bytes were held for %d", tt.request, m.most, size)
		}
	}
}

// If a request were carried out and then refused, the client would send it again.
func TestMemory_isReservedBeforeAWrite(t *testing.T) {
	calls := 0
	write := func(context.Context, endpoint.None, *endpoint.None) (odd, error) { calls++; return oddity(), nil }
	table := endpoint.Table{endpoint.Post("/", write), endpoint.Put("/", write), endpoint.Delete("/", write).Status(http.StatusOK)}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		m := &scarce{full: true}
		h := endpoint.NewHandler(endpoint.Options{
			Guard: open{}, Log: logr.Discard(), BaseURL: mustParse(t, "https://forge.example/api/v4"), Memory: m,
			Refused: func(error) *endpoint.Error { return endpoint.Busy(time.Second) },
		}, table)
		for _, tt := range []struct {
			err                   error
			status, calls, waited int
		}{
			{errors.New("no memory"), http.StatusServiceUnavailable, 0, 1},
			{nil, http.StatusOK, 1, 1},
		} {
			m.err, m.waited, calls = tt.err, 0, 0
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "/", http.NoBody))
			if w.Code/100 != tt.status/100 || calls != tt.calls || m.waited != tt.waited || m.held != 0 {
				t.Errorf("%s: %d after %d calls and %d waits; %d bytes are held", method, w.Code, calls, m.waited, m.held)
			}
		}
	}
}

func TestMemory_isNotHeldForRefusedAnswers(t *testing.T) {
	gone := errors.New("no memory")
	m := &scarce{err: gone}
	h := endpoint.NewHandler(endpoint.Options{
		Guard: open{}, Log: logr.Discard(), BaseURL: mustParse(t, "https://forge.example/api/v4"), Memory: m,
		Refused: func(err error) *endpoint.Error {
			if errors.Is(err, gone) {
				return endpoint.Busy(time.Second)
			}
			return nil
		},
	}, endpoint.Table{endpoint.Get("/large", func(context.Context, endpoint.None, *endpoint.None) (odd, error) { return oddity(), nil })})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/large", http.NoBody))
	if w.Code != 503 || w.Header().Get("Retry-After") != "1" || m.held != 0 {
		t.Errorf("got %d %.100s, %v", w.Code, w.Body, w.Header())
	}
}

func TestBody_isLimitedForGET(t *testing.T) {
	h := newHandler(endpoint.Table{endpoint.Get("/names", func(_ context.Context, _ endpoint.None, n *named) (string, error) { return n.Name, nil })})
	for size, want := range map[int]int{8 << 10: 200, 8<<10 + 1: 413} {
		for _, length := range []int64{int64(size), -1} {
			const frame = `{"name":""}`
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/names", strings.NewReader(`{"name":"`+strings.Repeat("x", size-len(frame))+`"}`))
			r.Header.Set("Content-Type", "application/json")
			r.ContentLength = length
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != want {
				t.Errorf("%d bytes, said to be %d: %d %s", size, length, w.Code, w.Body)
			}
		}
	}
}
