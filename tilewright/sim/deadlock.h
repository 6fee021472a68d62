#pragma once

namespace tw::sim {

class Cluster;

// Throws an Error (deadlock) that says of each blocked warp what it waits for; of each barrier that is waited
// for who has come, what was armed and delivered, and who came in former phases but not in this one; and the
// cycle of waits, if there is one.
[[noreturn]] void report_deadlock(const Cluster& cluster, const char* headline);

}  // namespace tw::sim
