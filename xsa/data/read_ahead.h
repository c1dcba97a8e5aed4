// Items made on a thread of their own before they are asked for.
#pragma once

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "xsa/base/error.h"

namespace xsa::data {

/// What make() gives, call after call, at most `depth` items ahead of who takes them; with depth 0
/// there is no thread. The items and their order do not depend on it: make() is never called by two
/// threads at once. What it throws, next() throws in its place, now and ever after.
template <class Item>
class ReadAhead {
 public:
  ReadAhead(std::function<Item()> make, std::int64_t depth)
      : owner_(::getpid()), shared_(new Shared{std::move(make), static_cast<std::size_t>(depth)}) {
    if (depth > 0) shared_->thread = std::thread(&Shared::run, shared_);
  }
  /// Waits for the item that is being made.
  ~ReadAhead() {
    // A forked process has the memory but not the thread: nothing there can be waited for.
    if (::getpid() != owner_) return;
    if (shared_->thread.joinable()) {
      {
        const std::lock_guard lock(shared_->mutex);
        shared_->stop = true;
      }
      shared_->room.notify_one();
      shared_->thread.join();
    }
    delete shared_;
  }
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  Item next() {
    check(::getpid() == owner_, "read ahead: begun in process ", owner_, ", asked by process ",
          ::getpid(), ", which was forked from it; open the data anew there");
    if (shared_->depth == 0) return timed(shared_->make);
    std::unique_lock lock(shared_->mutex);
    const auto is_ready = [&] { return !shared_->items.empty() || shared_->failure; };
    if (!is_ready()) timed([&] { shared_->ready.wait(lock, is_ready); });
    if (shared_->items.empty()) std::rethrow_exception(shared_->failure);
    Item item = std::move(shared_->items.front());
    shared_->items.pop_front();
    lock.unlock();
    shared_->room.notify_one();
    return item;
  }

  /// How long next() has waited for items, in seconds, so far; 0 as long as each was there already.
  double waited_s() const { return std::chrono::duration<double>(waited_).count(); }

 private:
  using Clock = std::chrono::steady_clock;

  template <class Action>
  auto timed(const Action& action) {
    struct Timer {
      Clock::duration& total;
      Clock::time_point start = Clock::now();
      ~Timer() { total += Clock::now() - start; }
    } const timer{waited_};
    return action();
  }

  struct Shared {
    std::function<Item()> make;
    std::size_t depth;
    std::mutex mutex;
    std::condition_variable room, ready;
    std::deque<Item> items;
    std::exception_ptr failure;
    bool stop = false;
    std::thread thread;

    void run() {
      std::unique_lock lock(mutex);
      for (;;) {
        room.wait(lock, [&] { return stop || items.size() < depth; });
        if (stop) return;
        lock.unlock();
        try {
          Item item = make();
          lock.lock();
          items.push_back(std::move(item));
        } catch (...) {
          if (!lock.owns_lock()) lock.lock();
          failure = std::current_exception();
        }
        ready.notify_one();
        if (failure) return;
      }
    }
  };

  ::pid_t owner_;
  Shared* shared_;  // left alone in a forked process
  Clock::duration waited_{};
};

}  // namespace xsa::data
