// A second thread for as long as one native call lasts. Woken at its first task; between tasks, which follow each other
// within microseconds, it spins for a while and then sleeps.
#pragma once
#include <atomic>
#include <system_error>
#include <thread>

#include "core/api.hpp"

namespace linsep {

class HelperThread {
  public:
    explicit HelperThread(bool wanted) : wanted_(wanted) {}
    HelperThread(const HelperThread&) = delete;
    HelperThread& operator=(const HelperThread&) = delete;
    ~HelperThread() {
        if (!thread_.joinable()) return;
        state_.store(kGoHome, std::memory_order_release);
        state_.notify_one();
        thread_.join();
    }

    Helper helper() { return {this, wanted_ ? start : nullptr, wait}; }

  private:
    static constexpr int kIdle = 0, kBusy = 1, kGoHome = 2, kPatience = 4000;

    static void start(void* self, void (*task)(void*), void* with) {
        HelperThread& thread = *static_cast<HelperThread*>(self);
        thread.task_ = task;
        thread.with_ = with;
        thread.state_.store(kBusy, std::memory_order_release);
        if (thread.thread_.joinable()) {
            thread.state_.notify_one();
            return;
        }
        try {
            thread.thread_ = std::thread([&thread] { thread.work(); });
        } catch (const std::system_error&) {  // no thread to be had: the caller does it all
            task(with);
            thread.state_.store(kIdle, std::memory_order_release);
        }
    }
    static void wait(void* self) {
        const HelperThread& thread = *static_cast<HelperThread*>(self);
        for (int spins = 0; thread.state_.load(std::memory_order_acquire) == kBusy; ++spins)
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
