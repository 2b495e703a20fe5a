// Implementation of poll() (core/interrupt.hpp).
#include "core/interrupt.hpp"

#include <chrono>

#include "bindings/types.hpp"

namespace linsep {
namespace {

using Clock = std::chrono::steady_clock;
using Nanoseconds = Clock::duration::rep;

std::atomic<Nanoseconds> interval{Clock::duration(std::chrono::milliseconds(50)).count()};
thread_local Nanoseconds asked = 0;
thread_local const std::atomic<bool>* flag = nullptr;

}  // namespace

void poll() {
    if (flag) {
        if (flag->load(std::memory_order_relaxed)) throw TaskDropped{};
        return;
    }
    const Nanoseconds now = Clock::now().time_since_epoch().count();
    if (now - asked < interval.load(std::memory_order_relaxed)) return;
    asked = now;
    const nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) nb::raise_python_error();
    nb::module_::import_("linsep.interrupts").attr("check")();
}

void poll_flag(const std::atomic<bool>* dropped) { flag = dropped; }

namespace python {

void bind_interrupt(nb::module_& m) {
    using namespace nb::literals;
    m.def(
        "poll_every",
        [](double seconds) {
            need(seconds >= 0.0 && seconds <= 1e6, "seconds are between 0 and 1e6");
            const auto wanted = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
            interval.store(wanted.count(), std::memory_order_relaxed);
        },
        "seconds"_a,
        "Time between two calls of `linsep.interrupts.check` from long loops of a thread; 0.05 s at first.");
}

}  // namespace python
}  // namespace linsep
