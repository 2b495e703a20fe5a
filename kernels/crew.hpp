// A second thread for as long as one native call lasts. Woken at its first task; between tasks, which follow each other
// within microseconds, it spins for a while and then sleeps.
#pragma once
#include <atomic>
#include <system_error>
#include <thread>

#include "api.hpp"

namespace linsep {

class Crew {
  public:
    explicit Crew(bool wanted) : wanted_(wanted) {}
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;
    ~Crew() {
        if (!thread_.joinable()) return;
        state_.store(kGoHome, std::memory_order_release);
        state_.notify_one();
        thread_.join();
    }

    Helper helper() { return {this, wanted_ ? start : nullptr, wait}; }

  private:
    static constexpr int kIdle = 0, kBusy = 1, kGoHome = 2, kPatience = 4000;

    static void start(void* self, void (*task)(void*), void* with) {
        Crew& crew = *static_cast<Crew*>(self);
        crew.task_ = task;
        crew.with_ = with;
        crew.state_.store(kBusy, std::memory_order_release);
        if (crew.thread_.joinable()) {
            crew.state_.notify_one();
            return;
        }
        try {
            crew.thread_ = std::thread([&crew] { crew.work(); });
        } catch (const std::system_error&) {  // no thread to be had: the caller does it all
            task(with);
            crew.state_.store(kIdle, std::memory_order_release);
        }
    }
    static void wait(void* self) {
        const Crew& crew = *static_cast<Crew*>(self);
        for (int spins = 0; crew.state_.load(std::memory_order_acquire) == kBusy; ++spins)
            spins < kPatience ? pause() : std::this_thread::yield();
    }
    void work() {
        for (;;) {
            for (int spins = 0; state_.load(std::memory_order_acquire) == kIdle; ++spins)
                spins < kPatience ? pause() : state_.wait(kIdle, std::memory_order_acquire);
            if (state_.load(std::memory_order_acquire) == kGoHome) return;
            task_(with_);
            state_.store(kIdle, std::memory_order_release);
        }
    }
    static void pause() {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }

    const bool wanted_;
    std::atomic<int> state_{kIdle};
    void (*task_)(void*) = nullptr;
    void* with_ = nullptr;
    std::thread thread_;
};

}  // namespace linsep
