// A helper thread that lives as long as one native call or one Ascent. It starts with its first task. Tasks follow each
// other within microseconds, so it spins for a while between them before it sleeps.
//
// After a fork the child process has no such thread; it starts its own with its next task.
#pragma once
#include <atomic>
#include <exception>
#include <new>
#include <thread>
#include <utility>

#include "core/api.hpp"
#include "core/interrupt.hpp"
#include "core/platform.hpp"

namespace linsep {

class HelperThread {
  public:
    explicit HelperThread(bool wanted) : wanted_(wanted) {}
    HelperThread(const HelperThread&) = delete;
    HelperThread& operator=(const HelperThread&) = delete;
    ~HelperThread() {
        if (!runs()) return;
        state_.store(kEnd, std::memory_order_release);
        state_.notify_one();
        thread_.join();
    }

    Helper helper() { return {this, wanted_ ? start : nullptr, finish, drop}; }

  private:
    static constexpr int kIdle = 0, kBusy = 1, kEnd = 2, kSpins = 4000;

    static void start(void* self, void (*task)(void*), void* with) {
        HelperThread& thread = *static_cast<HelperThread*>(self);
        const bool runs = thread.runs();
        thread.task_ = task;
        thread.with_ = with;
        thread.state_.store(kBusy, std::memory_order_release);
        if (runs) {
            thread.state_.notify_one();
            return;
        }
        try {
            thread.thread_ = std::thread([&thread] { thread.work(); });
            thread.process_ = platform::process_id();
        } catch (const std::exception&) {  // no thread or no memory available: run the task in the caller
            thread.state_.store(kIdle, std::memory_order_release);
            task(with);
        }
    }
    static void wait(void* self) {
        const HelperThread& thread = *static_cast<HelperThread*>(self);
        for (int spins = 0; thread.state_.load(std::memory_order_acquire) == kBusy; ++spins)
            spins < kSpins ? platform::pause() : wait_long();
    }
    static void wait_long() {
        poll();
        std::this_thread::yield();
    }
    // Cancel the task at its next poll, and wait until it has ended.
    static void drop(void* self) {
        HelperThread& thread = *static_cast<HelperThread*>(self);
        thread.dropped_.store(true, std::memory_order_relaxed);
        while (thread.state_.load(std::memory_order_acquire) == kBusy) std::this_thread::yield();
        thread.dropped_.store(false, std::memory_order_relaxed);
        thread.thrown_ = nullptr;
    }
    // Wait for the task, and rethrow its exception (a failed allocation) in the caller.
    static void finish(void* self) {
        wait(self);
        HelperThread& thread = *static_cast<HelperThread*>(self);
        if (thread.thrown_) std::rethrow_exception(std::exchange(thread.thrown_, nullptr));
    }
    void work() {
        poll_flag(&dropped_);  // only the calling thread may call Python
        for (;;) {
            for (int spins = 0; state_.load(std::memory_order_acquire) == kIdle; ++spins)
                spins < kSpins ? platform::pause() : state_.wait(kIdle, std::memory_order_acquire);
            if (state_.load(std::memory_order_acquire) == kEnd) return;
            try {
                task_(with_);
            } catch (const TaskDropped&) {
            } catch (...) {
                thrown_ = std::current_exception();
            }
            state_.store(kIdle, std::memory_order_release);
        }
    }
    // Return whether the thread runs in this process. A thread of the parent process can be neither joined nor
    // detached, so its handle is overwritten.
    bool runs() {
        if (thread_.joinable() && process_ != platform::process_id()) ::new (static_cast<void*>(&thread_)) std::thread;
        return thread_.joinable();
    }

    const bool wanted_;
    std::atomic<int> state_{kIdle};
    std::atomic<bool> dropped_{false};
    std::exception_ptr thrown_;
    void (*task_)(void*) = nullptr;
    void* with_ = nullptr;
    int process_ = 0;
    std::thread thread_;
};

}  // namespace linsep
