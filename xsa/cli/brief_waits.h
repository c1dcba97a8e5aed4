// How long OpenMP's threads wait for one another before they sleep.
#pragma once

namespace xsa::cli {

/// At the end of a parallel part a thread of libgomp spins until the others are done, 300,000 turns
/// (10 ms or more) at most; then it sleeps. Where another program has one of the cores, the thread
/// that spins holds the core on which the one that it waits for could go on. With as many turns as
/// take this long it gives the core up early (docs/performance.md: Busy cores).
inline constexpr long kBriefWaitNanoseconds = 30'000;

/// A program that links this starts itself anew with GOMP_SPINCOUNT in its environment, before
/// libgomp reads it, unless the environment has GOMP_SPINCOUNT or OMP_WAIT_POLICY already. In lists
/// of processes it stays `name`.
void wait_briefly(const char* name);

}  // namespace xsa::cli
