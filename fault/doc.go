// Package fault names the moments in the life of an order in which a process may die or stand still, so that the fault
// suite can make exactly that happen. In the program as it is shipped the points are empty functions.
//
// In a build with the tag faults, SLUICE_FAULT=name:n kills the process, as by SIGKILL, when it comes to the point of that
// name for the n-th time; name:n:stop stops it, as by SIGSTOP. Before that the name is appended to the file
// SLUICE_FAULT_LOG, so that whoever started the process can count.
package fault
