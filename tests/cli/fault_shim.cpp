// Preloaded into `orthant` by faults_test.py: fails in one call of one rank.
// ORTHANT_TEST_FAULT is "<rank> <call> <number> <fault>": which of the calls of that name (from 1), and what happens
// there: error (the call fails), exit, kill or stop. Of reads, only those of samples count: .npy and 1 KiB or more.
// ORTHANT_TEST_SLOW_READ is how many milliseconds each of these takes.
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <sstream>
#include <string>

namespace {

/// True if the call is to fail; does not return from faults that end the process.
bool fails_in(const std::string& call) {
  static int calls = 0;
  const char* text = std::getenv("ORTHANT_TEST_FAULT");
  const char* mine = std::getenv("OMPI_COMM_WORLD_RANK");
  if (text == nullptr || mine == nullptr) return false;
  std::istringstream words(text);
  std::string rank;
  std::string wanted;
  std::string fault;
  int number = 0;
  words >> rank >> wanted >> number >> fault;
  if (rank != mine || wanted != call || ++calls != number) return false;
  // Whoever measures from here on waits for this file.
  if (const char* mark = std::getenv("ORTHANT_TEST_MARK")) close(creat(mark, 0644));
  if (fault == "exit") std::exit(3);
  if (fault == "kill") std::raise(SIGKILL);
  if (fault == "stop") std::raise(SIGSTOP);
  return fault == "error";
}

bool reads_sample(int file, std::size_t bytes) {
  if (bytes < 1024) return false;
  std::array<char, 4096> path{};
  const ssize_t length = readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), path.data(), path.size() - 1);
  return length > 0 && std::string(path.data()).ends_with(".npy");
}

/// Signals do not make it shorter.
void take_time() {
  const char* text = std::getenv("ORTHANT_TEST_SLOW_READ");
  if (text == nullptr) return;
  timespec left{std::atoi(text) / 1000, std::atoi(text) % 1000 * 1'000'000L};
  while (nanosleep(&left, &left) != 0) {
  }
}

}  // namespace

extern "C" {

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return fails_in("MPI_Init_thread") ? MPI_ERR_OTHER : PMPI_Init_thread(argc, argv, required, provided);
}

int MPI_Startall(int count, MPI_Request requests[]) {
  return fails_in("MPI_Startall") ? MPI_ERR_OTHER : PMPI_Startall(count, requests);
}

int MPI_Allreduce(const void* sent, void* received, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return fails_in("MPI_Allreduce") ? MPI_ERR_OTHER : PMPI_Allreduce(sent, received, count, type, op, comm);
}

int MPI_Iallreduce(const void* sent, void* received, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request* request) {
  if (fails_in("MPI_Iallreduce")) return MPI_ERR_OTHER;
  return PMPI_Iallreduce(sent, received, count, type, op, comm, request);
}

int MPI_Ireduce_scatter_block(const void* sent, void* received, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                              MPI_Request* request) {
  if (fails_in("MPI_Ireduce_scatter_block")) return MPI_ERR_OTHER;
  return PMPI_Ireduce_scatter_block(sent, received, count, type, op, comm, request);
}

ssize_t pread(int file, void* into, std::size_t bytes, off_t offset) {
  using Function = ssize_t (*)(int, void*, std::size_t, off_t);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pread"));
  if (reads_sample(file, bytes)) {
    if (fails_in("pread")) {
      errno = EIO;
      return -1;
    }
    take_time();
  }
  return next(file, into, bytes, offset);
}

}  // extern "C"
