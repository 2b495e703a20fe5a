// Interruption of long loops by Ctrl-C or at a time limit.
//
// poll() reads the clock. Every 50 ms it calls linsep.interrupts.check, and an exception raised there unwinds the
// kernel up to its binding. A kernel that polls must therefore hold allocated memory in RAII objects; its outputs are
// left in an unspecified state. Long loops poll once per iteration, which should take at most a few million
// multiplications.
#pragma once
#include <atomic>

namespace linsep {

void poll();  // bindings/interrupt.cpp

// Thrown by poll() in a helper thread whose caller was interrupted; unwinds the task.
struct TaskDropped {};

// From now on, poll() in this thread no longer calls Python, but throws TaskDropped once the flag is set.
void poll_flag(const std::atomic<bool>* dropped);

}  // namespace linsep
