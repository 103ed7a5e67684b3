#pragma once

#include <sys/types.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace orthant::comm {

/// Names another process for good, also after its number is given to a new one; -1 if there is none.
int open_process(pid_t pid);

/// Whether a process from open_process() has ended.
bool has_ended(int process);

/// Waits until a process from open_process() has ended.
void wait_for_end(int process);

/// For a process that was forked to stay when this one ends: it leaves the session, takes no signal that can be
/// refused, and has no file open but these processes from open_process(), as 0, 1 and so on. Others may wait for the
/// end of files.
void become_guard(std::initializer_list<int> processes);

/// Sends a signal to a process from open_process(), if it is still there.
void signal_process(int process, int signal);

/// Whether a process is stopped by a signal or a debugger.
bool is_stopped(pid_t pid);

/// The processes that a process started itself and that are still there, or have ended and were not waited for.
std::vector<pid_t> children_of(pid_t pid);

/// A variable of another process's environment; empty if it has none, or may not be looked at.
std::string variable_of(pid_t pid, const std::string& name);

/// All processes of the machine with this value of a variable in their environment.
std::vector<pid_t> processes_with(const std::string& name, const std::string& value);

}  // namespace orthant::comm
