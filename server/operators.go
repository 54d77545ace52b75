package server

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v5"

	"sluice/queue"
)

// Where operators are served, beside shoppers or on a listener of their own.
const (
	adminAPI  = "/api/v1/admin"
	adminPage = "/admin"
)

// Operators answers operators, and nobody else, where [Options.AdminApart] has them come to a listener of their own. What they
// need is not even a route of [Server.Handler] then.
func (s *Server) Operators() http.Handler {
	e := s.newEcho()
	e.Pre(s.observe, s.operatorPages)
	s.operatorRoutes(e)
	return e
}

// operatorRoutes are the admin API. The node's limit is not for operators: they must get through when everybody else does not.
func (s *Server) operatorRoutes(e *echo.Echo) {
	admin := e.Group(adminAPI)
	admin.GET("/sales", s.adminSales, s.adminOnly("archived"))
	admin.PUT("/sales/:sale", s.applySale, s.adminOnly("dry_run"))
	admin.GET("/sales/:sale", s.adminSale, s.adminOnly())
	admin.POST("/sales/:sale/open", s.changeSale("open", queue.Open, line.Open), s.adminOnly())
	admin.POST("/sales/:sale/pause", s.changeSale("pause", queue.Paused, line.Pause), s.adminOnly())
	admin.POST("/sales/:sale/resume", s.changeSale("resume", queue.Open, line.Resume), s.adminOnly())
	admin.POST("/sales/:sale/close", s.changeSale("close", queue.Closed, line.Close), s.adminOnly())
	admin.PATCH("/sales/:sale/line", s.patchLine, s.adminOnly())
	admin.POST("/sales/:sale/extend", s.extendSale, s.adminOnly())
	admin.POST("/sales/:sale/stock", s.changeStock, s.adminOnly())
	admin.POST("/sales/:sale/recover", s.recoverSale, s.adminOnly())
	admin.POST("/sales/:sale/archive", s.archiveSale, s.adminOnly("purge_users"))
	admin.GET("/sales/:sale/audit", s.auditSale, s.adminOnly())
	admin.GET("/sales/:sale/live", s.watchSale, s.adminOnly())
	admin.GET("/sales/:sale/orders", s.findOrders, s.adminOnly("q", "status", "before", "limit"))
	admin.GET("/sales/:sale/orders.csv", s.exportOrders, s.adminOnly())
	admin.GET("/audit-log", s.readAuditLog, s.adminOnly("sale", "before", "limit"))
	admin.GET("/about", s.about, s.adminOnly())
}

// operatorPages answers with the console and its files. Shoppers' pages are elsewhere.
func (s *Server) operatorPages(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		switch path := c.Request().URL.Path; {
		case path == "/":
			return c.Redirect(http.StatusFound, adminPage)
		case s.opts.Web != nil && (isConsole(path) || strings.HasPrefix(path, "/assets/")):
			s.opts.Web.ServeHTTP(c.Response(), c.Request())
			return nil
		}
		return next(c)
	}
}

// isConsole says whether the operator's page is at this path.
func isConsole(path string) bool { return path == adminPage || strings.HasPrefix(path, adminPage+"/") }
