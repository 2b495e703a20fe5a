// Selection of the instruction set: the best one that the machine supports, or the one named by LINSEP_INSTRUCTION_SET.
#include <cstdlib>
#include <iterator>
#include <stdexcept>

#include "bindings/types.hpp"
#include "core/platform.hpp"

namespace linsep::python {
namespace {

// In ascending order. `table` may be called only for sets that the machine supports.
struct Set {
    const char* name;
    Table (*table)();
    int level;  // x86-64-v2, -v3, -v4; 0: any machine
};
const Set sets[] = {
#if !defined(LINSEP_X86)
    {"base", table_base, 0}
#elif defined(LINSEP_EIGHT_LANES)
    {"base", table_base, 2}, {"avx2", table_avx2, 3}, {"avx512", table_avx512, 3}
#else
    {"base", table_base, 2}, {"avx2", table_avx2, 3}, {"avx512", table_avx512, 4}
#endif
};

// Number of sets that the machine supports.
int usable_sets() {
    const int level = platform::x86_level();
    int count = 0;
    while (count < static_cast<int>(std::size(sets)) && sets[count].level <= level) ++count;
    return count;
}
const int usable = usable_sets();
Table current{};

std::string names(int count) {
    std::string all;
    for (int i = 0; i < count; ++i) all += std::string(i ? ", " : "") + sets[i].name;
    return all;
}

void use(const std::string& name) {
    for (int i = 0; const Set& set : sets) {
        if (name == set.name) {
            if (i >= usable)
                throw std::invalid_argument("this machine lacks the instruction set '" + name +
                                            "'; it has: " + names(usable));
            current = set.table();
            return;
        }
        ++i;
    }
    throw std::invalid_argument("no instruction set named '" + name +
                                "'; this build has: " + names(static_cast<int>(std::size(sets))));
}

void use_best_or_that_of_environment() {
    if (usable == 0)
        throw nb::import_error("linsep needs a processor with SSE4.2 and POPCNT (x86-64-v2), of 2009 or later");
    const char* name = std::getenv("LINSEP_INSTRUCTION_SET");
    try {
        use(name && *name ? name : sets[usable - 1].name);
    } catch (const std::invalid_argument& fault) {
        throw nb::import_error((std::string("LINSEP_INSTRUCTION_SET: ") + fault.what()).c_str());
    }
}

}  // namespace

const Table* const table = &current;

void bind_instruction_sets(nb::module_& m) {
    using namespace nb::literals;
    use_best_or_that_of_environment();
    m.def("instruction_set", [] { return std::string(table->name); }, "Name of the instruction set in use.");
    m.def(
        "instruction_sets",
        [] {
            nb::list all;
            for (int i = 0; i < usable; ++i) all.append(sets[i].name);
            return nb::typed<nb::list, nb::str>(std::move(all));
        },
        "Names of the instruction sets that this build and this machine have, the plainest first.");
    m.def("use_instruction_set", &use, "name"_a, "Switch all kernels of this process to another instruction set.");
}

}  // namespace linsep::python
