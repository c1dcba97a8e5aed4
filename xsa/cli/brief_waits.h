// How long OpenMP's threads wait for one another before they sleep.
#pragma once

namespace xsa::cli {

/// At the end of a parallel part a thread of libgomp spins until the others are done, for some
/// 300,000 turns (about 10 ms), then sleeps. Where another program has one of the cores, the thread
/// that spins holds the core on which the one that it waits for could run. With this setting it
/// gives it up early (docs/performance.md: Busy cores).
inline constexpr char kBriefWaits[] = "GOMP_SPINCOUNT=2000";

/// A program that calls this has started itself anew with kBriefWaits in its environment, before
/// libgomp read it, unless the environment has a setting of its own (GOMP_SPINCOUNT or
/// OMP_WAIT_POLICY). What the program is called in lists of processes stays `name`.
void wait_briefly(const char* name);

}  // namespace xsa::cli
