package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestAnOperatorChangesOneFigureOfARunningSale(t *testing.T) {
	t.Parallel()
	s := newShop(t, func(id string) string {
		return fmt.Sprintf(`{"id":%q,"items":[{"id":"black","stock":5},{"id":"white","stock":3}],"opens_at":"+0s","closes_at":"+1h","line":{"order":"off","rate":7}}`, id)
	})
	admin := "/api/v1/admin/sales/" + s.sale
	s.must(http.StatusOK, http.MethodPost, "/api/v1/sales/"+s.sale+"/grab", `{"item":"black"}`, s.as("ann"))
	until := time.Now().Add(2 * time.Hour).UTC().Truncate(time.Millisecond)
	for _, tc := range []struct {
		method, path, body string
		status             int
		says               string // of the answer
	}{
		{http.MethodPatch, "/line", `{"rate":20,"active":30}`, http.StatusOK, `rate:20`},
		{http.MethodPatch, "/line", `{"ratio":2.5}`, http.StatusOK, `rate:20`},
		{http.MethodPatch, "/line", `{}`, http.StatusUnprocessableEntity, "say what to change"},
		{http.MethodPatch, "/line", `{"rate":-1}`, http.StatusUnprocessableEntity, "rate"},
		{http.MethodPatch, "/line", `{"order":"fifo"}`, http.StatusBadRequest, "no field"},
		{http.MethodPost, "/extend", fmt.Sprintf(`{"closes_at":%q}`, until.Format(time.RFC3339Nano)), http.StatusOK, until.Format(time.RFC3339)[:16]},
		{http.MethodPost, "/extend", `{"closes_at":"tomorrow"}`, http.StatusUnprocessableEntity, "closes_at"},
		{http.MethodPost, "/extend", `{"closes_at":"2026-01-02T03:04:05Z"}`, http.StatusUnprocessableEntity, "is over: to end the sale now, close it"},
		{http.MethodPost, "/extend", `{}`, http.StatusUnprocessableEntity, "closes_at is missing"},
		{http.MethodPost, "/stock", `{"item":"black","total":9}`, http.StatusOK, "stock:9"},
		{http.MethodPost, "/stock", `{"item":"black","total":9}`, http.StatusOK, "stock:9"},
		{http.MethodPost, "/stock", `{"item":"black","total":0}`, http.StatusConflict, "the 1 unit that was sold"},
		{http.MethodPost, "/stock", `{"item":"red","total":9}`, http.StatusNotFound, "no item"},
		{http.MethodPost, "/stock", `{"total":9}`, http.StatusUnprocessableEntity, "which item"},
		{http.MethodPost, "/stock", `{"item":"white"}`, http.StatusUnprocessableEntity, "total is missing"},
	} {
		status, fields, _ := s.send(tc.method, admin+tc.path, tc.body, s.asAdmin())
		if status != tc.status || !containsText(fields, tc.says) {
			t.Errorf("%s %s: got %d %v, want %d about %q", tc.path, tc.body, status, fields, tc.status, tc.says)
		}
	}
	balance, err := s.line.Balance(t.Context(), s.sale)
	if err != nil || balance.Items[0].Total != 9 || balance.Items[0].Stock != 8 || balance.Items[1].Total != 3 {
		t.Errorf("got %+v, %v", balance, err)
	}
	if sale := s.store.sales[s.sale]; sale.Line.Rate != 20 || sale.Line.Active != 30 || sale.Line.Ratio != 2.5 || !sale.ClosesAt.Equal(until) || sale.Items[0].Stock != 9 {
		t.Errorf("the database has %+v", sale)
	}
	if status, _, _ := s.send(http.MethodPatch, admin+"/line", `{"rate":1}`, s.as("ann")); status != http.StatusUnauthorized {
		t.Errorf("a shopper changes the line: %d", status)
	}
}

// containsText looks for a text in an answer as Go prints it.
func containsText(fields map[string]any, text string) bool {
	return strings.Contains(fmt.Sprint(fields), text)
}
