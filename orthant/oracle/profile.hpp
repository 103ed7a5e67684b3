#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace orthant::oracle {

/// What a task's speed is estimated from where it was not measured itself: kernels of one family differ in extents
/// only.
struct Features {
  std::string family;  ///< "conv winograd forward 3x3x3"; tasks of one family are alike but for their extents
  double flops = 0;    ///< multiplications and additions
  double bytes = 0;    ///< model::bytes_moved
  /// Samples, src channels, dst channels and the cells of dst in d, h and w; at least 1 each.
  std::vector<double> extents{};
};

/// What one task took on this machine, alone but for the other ranks, which did the same.
struct MeasuredTask {
  Features features{};
  double seconds = 0;
  double error = 0;  ///< relative: how far repetitions were apart
  std::int64_t scratch_bytes = 0;
};

/// The share of a processor's speed that kernels without measurements reach: peak_share * i / (i + half_intensity) of
/// the peak for i operations per byte, and never more than memory allows.
struct EfficiencyCurve {
  std::string family;  ///< the beginning of the names of families that it is for: "conv", "conv 3d", "dense"
  double peak_share = 0.7;
  double half_intensity = 10;  ///< operations per byte at which half of it is reached
  double error = 0.3;          ///< relative
  std::string source{};
};

/// How a machine is used: what a kernel takes depends on how many threads it has, and on what the others do.
struct Setting {
  int threads = 1;                              ///< per rank
  int ranks_per_machine = 1;                    ///< that compute at the same time
  double flops_per_second = 0;                  ///< the peak of a rank
  double memory_bytes_per_second = 0;           ///< of a rank, all of them at work
  double step_seconds = 0;                      ///< of any step, whatever it does: a call, or a launch
  std::string source{};                         ///< of the figures above
  std::map<std::string, MeasuredTask> tasks{};  ///< by task_key()
};

/// What messages cost between two ranks, inside a machine or between machines.
struct Link {
  double latency_seconds = 0;   ///< from the start of a message without content until the receiver can know of it
  double bytes_per_second = 0;  ///< one direction of one machine's link, the other being as busy
  double message_seconds = 0;   ///< of a processor, at either end of a message
  double sender_seconds_per_byte = 0;    ///< of a processor: what computing loses while bytes go out
  double receiver_seconds_per_byte = 0;  ///< and while they come in
  std::int64_t eager_bytes = 0;  ///< up to this size a message goes at once; larger ones wait until both ends are ready
  bool moves_alone = false;      ///< hardware moves messages; otherwise ranks have to look after them between kernels
  double error = 0.1;            ///< relative
  std::string source{};
};

/// A machine, or many of a kind: all that time and memory of a schedule depend on. JSON on disk.
struct Profile {
  std::string name;
  std::string source{};               ///< where the figures come from, for people
  std::string processor{};            ///< as kernels::machine_key() names it; empty if nothing was measured
  int ranks_per_machine = 1;          ///< that a machine has room for: its accelerators, or its cores
  int threads_per_rank = 1;           ///< when all of them are used
  std::int64_t memory_bytes = 0;      ///< of a machine, for all its ranks
  std::int64_t process_bytes = 0;     ///< of a rank besides its arena
  bool shares_memory = true;          ///< ranks of one machine can read each other's memory
  double poll_seconds = 0;            ///< of looking after messages once
  double pace_error = 0.03;           ///< relative: by how much the whole machine is faster or slower from time to time
  std::string machine_source{};       ///< of the figures above
  double file_bytes_per_second = 0;   ///< of one machine reading samples
  double store_bytes_per_second = 0;  ///< of a rank getting samples from the store of another
  std::string samples_source{};       ///< of these two
  std::vector<Setting> settings{};
  Link inside{}, between{};
  std::vector<EfficiencyCurve> curves{};
};

std::string to_json(const Profile& profile);
/// Throws Error (65) that names file, field and reason: another format or version, a missing or unknown key, a number
/// that is negative, not finite or not a number.
Profile profile_from_json(const std::string& text, const std::string& origin);

/// The profiles that come with the program: "abci-v100", "lassen-v100", "cpu-cluster".
std::vector<std::string> shipped_profile_names();
/// Throws Error (64) for unknown names, with the nearest.
Profile shipped_profile(const std::string& name);

}  // namespace orthant::oracle
