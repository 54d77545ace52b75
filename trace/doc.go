// Package trace follows what happens to somebody through all processes of an installation, by OpenTelemetry. It stands
// between the walk and the library, so that the walk knows nothing but steps and contexts.
//
// A context is a text, a W3C traceparent, that goes along with what is done: in a request, an order, an entry of the
// outbox, the header of a message, the news. It is "" for what nobody follows, and that is nearly everything: nothing is
// made, kept or sent for it. A nil Tracer follows nothing, so nothing asks whether traces are on.
package trace
