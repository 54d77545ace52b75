package spec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The channel, and the operations on it.
const (
	socket   = "sale"
	fromNode = "tell"
	toNode   = "hear"
)

// Told says whether a frame of a node is as asyncapi.yaml has it.
func (s *Spec) Told(frame []byte) error { return s.frame(fromNode, frame) }

// Said says whether a frame of a shopper is as asyncapi.yaml has it.
func (s *Spec) Said(frame []byte) error { return s.frame(toNode, frame) }

func (s *Spec) frame(operation string, frame []byte) error {
	var named struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(frame, &named); err != nil {
		return fmt.Errorf("a frame is no JSON: %w: %s", err, frame)
	}
	if !slices.Contains(s.frames(operation), named.Type) {
		return fmt.Errorf("asyncapi.yaml has no such frame: %s", frame)
	}
	if err := s.message(socket, named.Type).holdJSON(frame); err != nil {
		return fmt.Errorf("%w: %s", err, frame)
	}
	return nil
}

func (s *Spec) message(channel, name string) place {
	return s.library.root(asyncapi).at("channels", channel, "messages", name, "payload")
}

// TypesTold are the types of frames that a node sends.
func (s *Spec) TypesTold() []string { return s.frames(fromNode) }

// TypesSaid are those that a shopper sends.
func (s *Spec) TypesSaid() []string { return s.frames(toNode) }

// frames are the messages of an operation, by the last word of what it refers to.
func (s *Spec) frames(operation string) []string {
	list, _ := s.library.root(asyncapi).at("operations", operation, "messages").value.([]any)
	var names []string
	for _, item := range list {
		ref, _ := item.(map[string]any)["$ref"].(string)
		names = append(names, ref[strings.LastIndex(ref, "/")+1:])
	}
	slices.Sort(names)
	return names
}

// CloseCodes are those with which a node ends a connection.
func (s *Spec) CloseCodes() []int {
	var codes []int
	for _, key := range s.library.root(asyncapi).at("channels", socket, "x-close-codes").keys() {
		if code, err := strconv.Atoi(key); err == nil {
			codes = append(codes, code)
		}
	}
	slices.Sort(codes)
	return codes
}

// Ended says whether a node may end a connection with that code.
func (s *Spec) Ended(code int) error {
	if !slices.Contains(s.CloseCodes(), code) {
		return fmt.Errorf("asyncapi.yaml has no close code %d", code)
	}
	return nil
}

// Published says whether a message in the exchange and queue of that name is as asyncapi.yaml has it.
func (s *Spec) Published(address string, body []byte) error {
	channels := s.library.root(asyncapi).at("channels")
	for _, name := range channels.keys() {
		channel := channels.at(name)
		if channel.text("address") != address {
			continue
		}
		for _, message := range channel.at("messages").keys() {
			return s.message(name, message).holdJSON(body)
		}
	}
	return fmt.Errorf("asyncapi.yaml has no exchange %s", address)
}
