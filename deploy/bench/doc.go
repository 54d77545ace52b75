// Command bench measures Sluice beside what it is compared with, in one run on one machine, and writes what came of it to
// docs/performance.md.
//
//	make bench
//
// It is a module of its own: what Sluice is compared with must not become a dependency of Sluice. Every figure is a
// file figure_*.go. Each contender runs in a process of its own, so that memory, processor time and goroutines are read
// from outside; the load comes from another process (peers.go). Contenders take turns within a round, because these
// machines are noisy, and a table shows the median, the least and the most of all rounds.
package main
