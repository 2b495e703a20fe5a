// How long loops notice Ctrl-C, and the end of the time that the user gave.
//
// poll() costs a look at the clock. Every 50 ms it asks Python (linsep.interrupts.check), and what Python raises unwinds
// the kernel up to its binding. So a kernel that polls keeps memory that it allocates in objects that free it, and leaves
// its outputs as they happen to be. Loops whose rounds may last long poll once in each; a round should be at most a few
// million multiplications.
#pragma once
#include <atomic>

namespace linsep {

void poll();  // bindings/interrupt.cpp

// What unwinds the task of a second thread whose caller was interrupted.
struct TaskDropped {};

// In this thread poll() asks no longer Python, but throws TaskDropped once the flag is set.
void poll_flag(const std::atomic<bool>* dropped);

}  // namespace linsep
