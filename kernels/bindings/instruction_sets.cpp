// The instruction set whose kernels are used: the best one of the machine, or that of LINSEP_INSTRUCTION_SET.
#include <cstdlib>
#include <iterator>
#include <stdexcept>

#include "bindings/types.hpp"

namespace linsep::python {
namespace {

// From the plainest to the richest; only those up to the best one may be asked for their Table.
struct Set {
    const char* name;
    Table (*table)();
};
const Set sets[] = {{"base", table_base},
#ifdef LINSEP_X86
                    {"avx2", table_avx2},
                    {"avx512", table_avx512}
#endif
};

// -march=x86-64-v4 includes all of v3, v3 all of v2.
int best_set() {
#ifdef LINSEP_X86
    __builtin_cpu_init();
    if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
          __builtin_cpu_supports("bmi") && __builtin_cpu_supports("f16c") && __builtin_cpu_supports("lzcnt") &&
          __builtin_cpu_supports("movbe")))
        return 0;
    if (!(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
          __builtin_cpu_supports("avx512cd")))
        return 1;
    return 2;
#else
    return 0;
#endif
}
const int best = best_set();
Table current = sets[best].table();

std::string names(int count) {
    std::string all;
    for (int i = 0; i < count; ++i) all += std::string(i ? ", " : "") + sets[i].name;
    return all;
}

void use(const std::string& name) {
    for (int i = 0; const Set& set : sets) {
        if (name == set.name) {
            if (i > best)
                throw std::invalid_argument("this machine lacks the instruction set '" + name +
                                            "'; it has: " + names(best + 1));
            current = set.table();
            return;
        }
        ++i;
    }
    throw std::invalid_argument("no instruction set named '" + name +
                                "'; this build has: " + names(static_cast<int>(std::size(sets))));
}

void use_that_of_environment() {
    const char* name = std::getenv("LINSEP_INSTRUCTION_SET");
    if (!name || !*name) return;
    try {
        use(name);
    } catch (const std::invalid_argument& fault) {
        throw nb::import_error((std::string("LINSEP_INSTRUCTION_SET: ") + fault.what()).c_str());
    }
}

}  // namespace

const Table* const table = &current;

void bind_instruction_sets(nb::module_& m) {
    using namespace nb::literals;
    use_that_of_environment();
    m.def("instruction_set", [] { return std::string(table->name); }, "Name of the instruction set in use.");
    m.def(
        "instruction_sets",
        [] {
            nb::list all;
            for (int i = 0; i <= best; ++i) all.append(sets[i].name);
            return nb::typed<nb::list, nb::str>(std::move(all));
        },
        "Names of the instruction sets that this build and this machine have, the plainest first.");
    m.def("use_instruction_set", &use, "name"_a, "Switch all kernels of this process to another instruction set.");
}

}  // namespace linsep::python
