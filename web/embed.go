// Package web serves the shopper's page, the list of sales at / and a sale at /s/{sale}, and the operator's below /admin.
// The pages are built by Vite into dist, which is committed, so that the binary needs neither Node nor a network to be
// built.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strings"
	"time"
)

//go:embed all:dist
var dist embed.FS

// Options are the settings of the page.
type Options struct {
	FrameAncestors []string // CSP sources of the pages that may show the shopper's in a frame; none = no page may
}

// salePath is the address of a sale's page. The page itself finds out whether there is such a sale.
var salePath = regexp.MustCompile(`^/s/[a-z0-9][a-z0-9-]{0,62}/?$`)

// contentTypes are spelled out, because the system's own table differs between machines.
var contentTypes = map[string]string{
	".html":        "text/html; charset=utf-8",
	".js":          "text/javascript; charset=utf-8",
	".css":         "text/css; charset=utf-8",
	".svg":         "image/svg+xml",
	".json":        "application/json",
	".txt":         "text/plain; charset=utf-8",
	".png":         "image/png",
	".ico":         "image/x-icon",
	".woff2":       "font/woff2",
	".webmanifest": "application/manifest+json",
}

// Handler serves the pages. It holds everything in memory, compressed once, and blocks on nothing but the reader.
func Handler(opts Options) http.Handler {
	build, err := fs.Sub(dist, "dist")
	if err != nil {
		panic("web: " + err.Error()) // the name is a constant
	}
	return newHandler(build, opts)
}

func newHandler(build fs.FS, opts Options) *handler {
	return &handler{files: readFiles(build), policy: policyOf(opts.FrameAncestors), adminPolicy: policyOf(nil)}
}

type handler struct {
	files       map[string]*file // by path in the build
	policy      string
	adminPolicy string // whatever the shopper's page may do, nobody shows the operator's in a frame
}

// ServeHTTP answers with a page, one of their files, or 404.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	admin := r.URL.Path == "/admin" || strings.HasPrefix(r.URL.Path, "/admin/")
	header := w.Header()
	header.Set("Content-Security-Policy", h.policy)
	if admin {
		header.Set("Content-Security-Policy", h.adminPolicy)
	}
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are answered here", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	switch f := h.files[name]; {
	case admin && h.files["admin.html"] != nil: // below it, too: the page has addresses of its own
		header.Set("Cache-Control", "no-cache")
		h.files["admin.html"].serve(w, r)
	case r.URL.Path == "/" || salePath.MatchString(r.URL.Path):
		header.Set("Cache-Control", "no-cache") // ask each time: it names the files of the newest build
		h.files["index.html"].serve(w, r)
	case f != nil && strings.HasPrefix(name, "assets/"):
		header.Set("Cache-Control", "public, max-age=31536000, immutable") // the name changes with the content
		f.serve(w, r)
	case f != nil && strings.HasPrefix(name, "client/"):
		header.Set("Access-Control-Allow-Origin", "*") // a module for the pages of others; see docs/client.md
		header.Set("Cache-Control", "public, max-age=3600")
		f.serve(w, r)
	case f != nil && name != "index.html" && name != "admin.html":
		header.Set("Cache-Control", "public, max-age=3600")
		f.serve(w, r)
	case strings.HasPrefix(name, "assets/"):
		header.Set("Cache-Control", "no-store") // during a rolling update another node may well have it
		http.Error(w, "there is no such file in this build", http.StatusNotFound)
	default:
		h.notFound(w, r)
	}
}

// notFound shows the page, which then says that there is nothing at this address, in the shopper's language.
func (h *handler) notFound(w http.ResponseWriter, r *http.Request) {
	index := h.files["index.html"]
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("Content-Type", index.contentType)
	w.WriteHeader(http.StatusNotFound)
	if r.Method == http.MethodGet {
		_, _ = w.Write(index.plain) // who went away needs no answer
	}
}

// file is one file of the build, ready to be sent.
type file struct {
	contentType string
	plain       []byte
	zipped      []byte // nil when that would not be smaller
	tag         string
}

func newFile(name string, data []byte) *file {
	sum := sha256.Sum256(data)
	f := &file{contentType: contentTypes[path.Ext(name)], plain: data, tag: hex.EncodeToString(sum[:12])}
	if f.contentType == "" {
		f.contentType = "application/octet-stream"
	}
	var buffer bytes.Buffer
	z, err := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	if err != nil {
		panic("web: " + err.Error()) // the level is a constant
	}
	_, _ = z.Write(data) // a buffer never fails
	_ = z.Close()
	if buffer.Len() < len(data) {
		f.zipped = buffer.Bytes()
	}
	return f
}

// serve sends the file, or 304 to who has it. The compressed form has a tag of its own, as it is another sequence of bytes.
func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", f.contentType)
	body, tag := f.plain, f.tag
	if f.zipped != nil {
		header.Add("Vary", "Accept-Encoding")
		if acceptsGzip(r.Header.Get("Accept-Encoding")) {
			body, tag = f.zipped, f.tag+"-gz"
			header.Set("Content-Encoding", "gzip")
		}
	}
	header.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// acceptsGzip reads an Accept-Encoding header: gzip must be named, and not with a weight of zero.
func acceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		coding, params, _ := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		weight := strings.ReplaceAll(params, " ", "")
		return strings.TrimRight(strings.TrimPrefix(weight, "q="), "0.") != "" || weight == ""
	}
	return false
}

// policyOf is the content security policy. 'self' in connect-src covers WebSockets of the same host in every browser of
// today (Safari since 15.4), so no host has to be named.
func policyOf(ancestors []string) string {
	frame := "'none'"
	if len(ancestors) > 0 {
		frame = strings.Join(ancestors, " ")
	}
	return "default-src 'self'; connect-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; " +
		"form-action 'self'; frame-ancestors " + frame
}

// readFiles reads the build, which is in the binary.
func readFiles(build fs.FS) map[string]*file {
	files := map[string]*file{}
	err := fs.WalkDir(build, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(build, name)
		if err != nil {
			return err
		}
		files[name] = newFile(name, data)
		return nil
	})
	if err != nil {
		panic("web: the build cannot be read: " + err.Error())
	}
	return files
}
