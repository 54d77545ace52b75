package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v5"

	"sluice/queue"
)

const (
	usualBody   = 1 << 10
	maxBody     = 64 << 10
	maxSaleFile = 1 << 20
	maxFields   = 32 // of an object, far more than any body or frame has
)

// readBody reads a body of at most limit bytes.
func readBody(c *echo.Context, limit int64) ([]byte, error) {
	r := c.Request()
	if r.ContentLength == 0 || r.Body == nil {
		return nil, nil
	}
	var buffer bytes.Buffer
	// Room for the usual body at once; a caller who announces much and sends nothing must not hold much.
	buffer.Grow(int(min(max(r.ContentLength, 0), usualBody)) + bytes.MinRead)
	_, err := buffer.ReadFrom(http.MaxBytesReader(c.Response(), r.Body, limit))
	var beyond *http.MaxBytesError
	switch {
	case errors.As(err, &beyond):
		return nil, echo.NewHTTPError(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body may have at most %d bytes", limit))
	case err != nil:
		return nil, badRequest("the body could not be read to its end")
	}
	callerOf(r.Context()).speaks()
	return buffer.Bytes(), nil
}

// readJSON reads a JSON object into out and refuses whatever out has no field for. Without a body out stays as it is.
func readJSON(c *echo.Context, out any) error {
	body, err := readBody(c, maxBody)
	if err != nil {
		return err
	}
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return nil
	}
	if kind := c.Request().Header.Get(echo.HeaderContentType); kind != "" && kind != echo.MIMEApplicationJSON {
		if media, _, err := mime.ParseMediaType(kind); err != nil || media != echo.MIMEApplicationJSON {
			return echo.NewHTTPError(http.StatusUnsupportedMediaType, "send JSON, with Content-Type: application/json")
		}
	}
	if body[0] != '{' {
		return badRequest("the body must be one JSON object")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(out); err != nil {
		return badRequest(jsonFault(err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return badRequest("the body must be one JSON object, and nothing after it")
	}
	if field := twice(body); field != "" {
		return badRequest(fmt.Sprintf("the field %q is there twice", clip(field)))
	}
	return nil
}

// twice is a field that a JSON object has more than once, "" for none. Of two values one would have to be believed, and whoever
// checked the request on its way may have believed the other.
func twice(object []byte) string {
	decoder := json.NewDecoder(bytes.NewReader(object))
	if _, err := decoder.Token(); err != nil {
		return ""
	}
	var seen [8]string // the fields that any body or frame has fit in here
	names := seen[:0]
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return ""
		}
		name, _ := token.(string)
		// Names are matched whatever their case. What nobody knows the name of is read by nobody, so only so many are kept.
		if slices.ContainsFunc(names, func(other string) bool { return strings.EqualFold(other, name) }) {
			return name
		}
		if len(names) < maxFields {
			names = append(names, name)
		}
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			return ""
		}
	}
	return ""
}

// jsonFault says in one sentence what is wrong with a body.
func jsonFault(err error) string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Sprintf("the body is no JSON: see byte %d", syntax.Offset)
	case errors.As(err, &kind):
		return fmt.Sprintf("the field %q must be %s, not %s", kind.Field, wanted(kind), clip(kind.Value))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the body is no JSON: it ends too early"
	}
	// encoding/json has no type for this one.
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return "there is no field " + field
	}
	return "the body cannot be understood"
}

func wanted(err *json.UnmarshalTypeError) string {
	if err.Type.String() == "int64" {
		return "a whole number"
	}
	return "a " + err.Type.String()
}

func badRequest(message string) error {
	return &queue.Error{Code: queue.BadRequest, Message: message}
}

func invalid(format string, args ...any) error {
	return &queue.Error{Code: queue.Invalid, Message: fmt.Sprintf(format, args...)}
}
