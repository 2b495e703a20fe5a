// The Python module linsep._kernels. Every binding checks the sizes of its arrays, releases the interpreter lock, and
// calls a kernel of the instruction set in use.
#include "bindings/types.hpp"

NB_MODULE(_kernels, m) {
    using namespace linsep::python;
    m.doc() =
        "The compiled loops (kernels/README.md is the map).\n\n"
        "All release the lock of the interpreter and add to their outputs unless they say otherwise. Outputs are "
        "written in place: an array of another type is refused, never converted.";
    bind_instruction_sets(m);
    bind_interrupt(m);
    bind_mapped_files(m);
    bind_types(m);
    bind_io(m);
    bind_sums(m);
    bind_newton(m);
    bind_interior(m);
    bind_dual(m);
    bind_l1(m);
    bind_softmax(m);
    bind_grid(m);
    bind_online(m);
#ifdef LINSEP_SANITIZED
    bind_allocation_faults(m);
#endif
}
