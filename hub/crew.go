package hub

// crew is how many goroutines for calling handlers wait on each processor. They keep the deep stacks that handlers need: a new
// goroutine would have to grow its own, in several steps, for every message. When none of them is free a call runs where it is.
const crew = 4

// work calls handlers until the hub is closed.
func (h *Hub) work() {
	for {
		select {
		case call := <-h.calls:
			call()
		case <-h.quit:
			return
		}
	}
}

// engage has the crew make a call, or makes it.
func (h *Hub) engage(call func()) {
	select {
	case h.calls <- call:
	default:
		call()
	}
}
