// How long loops notice Ctrl-C, and the end of the time that the user gave.
//
// poll() costs a look at the clock. Every 50 ms it asks Python (linsep.interrupts.check), and what Python raises unwinds
// the kernel up to its binding. So a kernel that polls keeps memory that it allocates in objects that free it, and leaves
// its outputs as they happen to be. Loops whose rounds may last long poll once in each; a round should be at most a few
// million multiplications.
#pragma once

namespace linsep {

void poll();  // bindings/interrupt.cpp

// No polls in this thread between the two: a second thread works on memory that unwinding would free.
void suspend_polls();
void resume_polls();

}  // namespace linsep
