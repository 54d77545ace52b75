package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// saleFile is the sale of the proof. It lasts long enough for six programs to be restarted one after the other.
const saleFile = `id: proof
title: { en: A sale to prove the stack, zh: 验证整套部署的一场开售 }
items:
  - { id: black, title: { en: Black, zh: 黑色 }, stock: %d, price: 299900 }
  - { id: white, title: { en: White, zh: 白色 }, stock: %d, price: 299900 }
currency: CNY
opens_at: "+%ds"
closes_at: "+1h"
line: { order: fifo, rate: %d, active: %d, ratio: 0, turn: 60s }
hold: 0s
`

// crowdReport is what matters here of what a crowd says.
type crowdReport struct {
	Joined     int64            `json:"joined"`
	Results    map[string]int64 `json:"results"`
	Reconnects int64            `json:"reconnects"`
	Unanswered int64            `json:"unanswered"`
	AheadRose  int64            `json:"ahead_rose"`
	Moved      int64            `json:"moved"`
	Cut        map[string]int64 `json:"cut"`
	Problems   []string         `json:"problems"`
}

// prove holds a sale with a crowd through nginx, and restarts each node and worker meanwhile.
func (s *stack) prove(ctx context.Context, users int) error {
	began := time.Now()
	lobby := max(10, users/400) // seconds, in which the crowd comes
	stock, rate := users/4, max(20, users/100)
	file := filepath.Join(s.dir, "proof.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, saleFile, stock/2, stock-stock/2, lobby+5, rate, 2*rate), 0o644); err != nil {
		return err
	}
	if _, err := s.sluice(ctx, "sale", "apply", file); err != nil {
		return err
	}
	crowd := make(chan error, 1)
	var report crowdReport
	go func() {
		out, err := s.sluice(ctx, "crowd", "--sale", "proof", "--users", fmt.Sprint(users), "--ramp", fmt.Sprintf("%ds", lobby), "--timeout", "10m", "--json")
		if bad := json.Unmarshal(out, &report); bad != nil {
			err = errors.Join(err, fmt.Errorf("understand the report of the crowd: %w", bad))
		}
		crowd <- err
	}()
	fmt.Printf("%d shoppers come to %d units\n", users, stock)
	if err := s.wait(ctx, "the sale is open", func() bool { return s.gauge(ctx, `max(sluice_served{sale="proof"})`) > 0 }); err != nil {
		return err
	}
	first := time.Since(began)
	fmt.Printf("the first is called %s after the sale was applied\n", first.Round(100*time.Millisecond))
	for i := range s.nodes {
		for _, p := range []*program{s.nodes[i], s.workers[i]} {
			if err := s.restart(ctx, p); err != nil {
				return err
			}
		}
	}
	dashboard := s.dashboard(ctx)
	err := <-crowd
	fmt.Printf("joined %d, results %v, reconnects %d, unanswered %d, places that became worse %d, numbers that changed %d, cut off %v\n",
		report.Joined, report.Results, report.Reconnects, report.Unanswered, report.AheadRose, report.Moved, report.Cut)
	errs := []error{err, dashboard}
	for _, problem := range report.Problems {
		errs = append(errs, errors.New(problem))
	}
	if report.AheadRose+report.Moved+report.Unanswered > 0 || len(report.Cut) > 0 {
		errs = append(errs, errors.New("somebody lost a place or an answer, or was cut off without having been asked to move"))
	}
	if report.Results["success"] != int64(stock) {
		errs = append(errs, fmt.Errorf("%d have bought, want all %d units sold", report.Results["success"], stock))
	}
	var rows int64
	if err := s.rows.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+s.database+".orders WHERE live = 1").Scan(&rows); err != nil || rows != int64(stock) {
		errs = append(errs, fmt.Errorf("%d orders are in the database, want %d (%v)", rows, stock, err))
	}
	out, err := s.sluice(ctx, "audit", "proof")
	fmt.Printf("%s", out)
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Printf("proven in %s\n", time.Since(began).Round(time.Second))
	return nil
}

// restart ends a process as an operator does, and starts it again at the same address.
func (s *stack) restart(ctx context.Context, p *program) error {
	began := time.Now()
	ending, cancel := context.WithTimeout(ctx, drain+20*time.Second)
	defer cancel()
	if err := p.end(ending); err != nil {
		return err
	}
	if err := p.run(); err != nil {
		return err
	}
	if err := await(ctx, p.name, "http://"+s.ops[p]+"/readyz", p); err != nil {
		return err
	}
	fmt.Printf("%s was restarted in %s; %.0f wait, %.0f connected\n", p.name, time.Since(began).Round(100*time.Millisecond),
		s.gauge(ctx, `max(sluice_waiting{sale="proof"})`), s.gauge(ctx, "sum(sluice_connections)"))
	return nil
}

// dashboard asks Prometheus everything that the dashboard asks.
func (s *stack) dashboard(ctx context.Context) error {
	text, err := os.ReadFile("deploy/grafana/sluice.json")
	if err != nil {
		return err
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		return err
	}
	var empty []string
	asked := 0
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			asked++
			query := strings.NewReplacer("$__rate_interval", "1m", `"$sale"`, `".+"`).Replace(target.Expr)
			if values, err := s.query(ctx, query); err != nil || len(values) == 0 {
				// Nobody was limited, and that is as it should be.
				if !strings.Contains(query, "sluice_limited_total") {
					empty = append(empty, fmt.Sprintf("%s: %s (%v)", panel.Title, query, err))
				}
			}
		}
	}
	fmt.Printf("%d queries of the dashboard, %d without data\n", asked, len(empty))
	if len(empty) > 0 {
		return fmt.Errorf("queries of the dashboard without data:\n  %s", strings.Join(empty, "\n  "))
	}
	return nil
}

// gauge is the one value of a query; 0 when there is none.
func (s *stack) gauge(ctx context.Context, query string) float64 {
	values, err := s.query(ctx, query)
	if err != nil || len(values) == 0 {
		return 0
	}
	return values[0]
}

// query asks Prometheus.
func (s *stack) query(ctx context.Context, query string) ([]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.prometheus+"/api/v1/query?query="+url.QueryEscape(query), nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Error string
		Data  struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	var values []float64
	for _, result := range answer.Data.Result {
		var value float64
		if _, err := fmt.Sscan(fmt.Sprint(result.Value[1]), &value); err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}

// wait asks until something is so.
func (s *stack) wait(ctx context.Context, what string, is func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for !is() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("waited in vain: %s", what)
		}
	}
	return nil
}

// sluice runs a command against the front.
func (s *stack) sluice(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, s.binary, args...)
	cmd.Env = append(os.Environ(), "SLUICE_URL=http://"+s.front, "SLUICE_ADMIN_TOKEN="+s.admin, "SLUICE_SECRET="+s.secret)
	log, err := os.OpenFile(filepath.Join(s.dir, args[0]+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stderr = log
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("sluice %s: %w (see %s)", args[0], err, log.Name())
	}
	return out, nil
}
