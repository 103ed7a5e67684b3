#pragma once

#include <sys/types.h>

#include <string>

namespace orthant::comm {

/// What a rank tells the command that started it.
enum class Mark : unsigned {
  began = 1,      ///< it runs
  watched = 2,    ///< MPI has started, and the ranks watch each other
  spoke = 4,      ///< it printed the error of the job
  leaving = 8,    ///< it ends as it should, or was told to
  obliging = 16,  ///< it stops in order when SIGUSR1 asks for it
};

/// Marks this rank, if a command of this machine started it.
void tell_launcher(Mark mark);
/// With which exit code this rank is about to leave.
void tell_launcher_code(int code);

/// Memory in which the ranks of a machine tell the command that started them how far they have come. It has no name in
/// any file system; ranks find it through the environment and /proc.
class Attendance {
 public:
  /// Of a job that is about to start. Where the memory cannot be had, no rank is ever marked.
  explicit Attendance(int ranks);
  Attendance(const Attendance&) = delete;
  Attendance& operator=(const Attendance&) = delete;
  ~Attendance();

  static constexpr const char* variable = "ORTHANT_LAUNCHER";
  /// The value of the variable for the ranks.
  [[nodiscard]] const std::string& address() const { return address_; }

  [[nodiscard]] bool has(int rank, Mark mark) const;
  /// Whether any rank has this mark.
  [[nodiscard]] bool any(Mark mark) const;
  /// The process of a rank that has begun; 0 before.
  [[nodiscard]] pid_t pid(int rank) const;
  /// With which exit code a rank leaves; -1 if it has not said so.
  [[nodiscard]] int code(int rank) const;

 private:
  struct Shared;
  friend struct Attended;
  int ranks_;
  int file_ = -1;
  Shared* shared_ = nullptr;
  std::string address_;
};

}  // namespace orthant::comm
