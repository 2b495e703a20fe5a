// Protection of arrays in memory-mapped files that another program may truncate. Reading a page beyond the end of the
// file raises SIGBUS, which ends the process. While an array is watched, a signal handler maps anonymous memory there
// instead: NaN at the page that was read, so that results computed from it are rejected, and zeros after it. Windows
// locks mapped files.
#include <atomic>
#include <cstdint>

#include "bindings/types.hpp"
#if !defined(_WIN32)
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#endif

namespace linsep::python {
namespace {

// A range of addresses. The signal handler reads it while other threads may write it, so all members are atomic.
struct Region {
    std::atomic<bool> taken{false}, cut{false};
    std::atomic<std::uintptr_t> first{UINTPTR_MAX}, last{0};

    bool holds(std::uintptr_t at) const { return first.load() <= at && at < last.load(); }
};

Region regions[256];

#if !defined(_WIN32)
std::uintptr_t page_size = 4096;
struct sigaction earlier;  // the previous handler

// Map anonymous memory over the pages from `at` to the end of the region.
bool replace_pages(std::uintptr_t at, std::uintptr_t last) {
    constexpr std::uintptr_t kMarked = 1 << 16;  // bytes set to NaN
    const std::uintptr_t first = at / page_size * page_size,
                         size = (last - first + page_size - 1) / page_size * page_size;
    void* const pages = reinterpret_cast<void*>(first);
    constexpr int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    if (mmap(pages, size, PROT_READ | PROT_WRITE, kind, -1, 0) == MAP_FAILED) return false;
    std::memset(pages, 0xff, size < kMarked ? size : kMarked);
    return true;
}

// Calls only async-signal-safe functions.
void on_bus_error(int, siginfo_t* fault, void*) {
    const int before = errno;
    std::uintptr_t last = 0;
    const auto at = reinterpret_cast<std::uintptr_t>(fault->si_addr);
    if (fault->si_code == BUS_ADRERR)
        for (Region& region : regions)
            if (region.holds(at)) {
                region.cut.store(true);
                last = region.last.load();
            }
    if (last == 0 || !replace_pages(at, last)) {  // not ours: the fault repeats and reaches the previous handler
        sigaction(SIGBUS, &earlier, nullptr);
        if (fault->si_code <= 0) raise(SIGBUS);  // sent by kill() or raise(), so it does not repeat
    }
    errno = before;
}

void handle_bus_errors() {
    struct sigaction ours{}, now{};
    if (sigaction(SIGBUS, nullptr, &now) != 0) return;
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == &on_bus_error) return;
    page_size = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    earlier = now;
    ours.sa_sigaction = &on_bus_error;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&ours.sa_mask);
    sigaction(SIGBUS, &ours, nullptr);
}
#else
void handle_bus_errors() {}
#endif

// Watches the bytes of an array for the lifetime of the object.
class MappedFile {
    nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> bytes;
    Region* region = nullptr;  // null if too many are watched

  public:
    explicit MappedFile(decltype(bytes) mapped) : bytes(std::move(mapped)) {
        handle_bus_errors();
        for (Region& one : regions)
            if (!one.taken.exchange(true)) {
                region = &one;
                const auto first = reinterpret_cast<std::uintptr_t>(bytes.data());
                one.cut.store(false);
                one.last.store(first + bytes.size());
                one.first.store(first);
                return;
            }
    }
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile() {
        if (!region) return;
        region->first.store(UINTPTR_MAX);
        region->last.store(0);
        region->taken.store(false);
    }
    bool cut() const { return region && region->cut.load(); }
};

}  // namespace

void bind_mapped_files(nb::module_& m) {
    using namespace nb::literals;
    nb::class_<MappedFile>(m, "MappedFile",
                           "Bytes of a memory-mapped file. While the object lives, a page that the file has lost reads "
                           "as NaN instead of ending the process.")
        .def(nb::init<nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(), "mapped"_a)
        .def_prop_ro("cut", &MappedFile::cut, "Whether a lost page was read.");
}

}  // namespace linsep::python
