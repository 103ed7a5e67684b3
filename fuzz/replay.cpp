// Feeds every file of the corpus to its parser, and mutations of it that are the same in every run.
// usage: replay CORPUS MUTATIONS [TARGET]
#include "fuzz/targets.hpp"
#include "orthant/base/random.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using orthant::base::keyed;

// A signal handler can only reach globals.
const std::string* current = nullptr;

/// Keeps what a parser died of, so that it can become a file of the corpus.
void save_input(int signal) {
  std::ofstream("crash", std::ios::binary) << *current;
  std::fputs("the input is in the file 'crash'\n", stderr);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A few changes that a file of this size can have; `other` lends pieces.
std::string mutated(std::string bytes, const std::string& other, std::uint64_t key) {
  std::uint64_t index = 0;
  const auto below = [&](std::size_t end) {
    return end == 0 ? 0 : static_cast<std::size_t>(keyed(key, index++) % end);
  };
  const std::size_t changes = 1 + below(4);
  for (std::size_t i = 0; i < changes && !bytes.empty(); ++i) {
    const std::size_t at = below(bytes.size());
    const std::size_t count = std::min(bytes.size() - at, 1 + below(32));
    switch (below(7)) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;
      case 1: bytes[at] = static_cast<char>(below(256)); break;
      case 2: bytes.erase(at, count); break;
      case 3: bytes.insert(at, bytes.substr(at, count)); break;
      case 4: bytes.resize(at); break;
      case 5: bytes.insert(at, other.substr(below(other.size()), count)); break;
      default: bytes.replace(at, count, count, "\xFF\x7F\x00\x80"[below(4)]); break;
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: replay CORPUS MUTATIONS [TARGET]\n", stderr);
    return 64;
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS, SIGALRM}) std::signal(signal, save_input);
  const auto mutations = static_cast<std::uint64_t>(std::atoll(argv[2]));
  for (const orthant::fuzz::Target& target : orthant::fuzz::targets()) {
    if (argc > 3 && target.name != argv[3]) continue;
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(fs::path(argv[1]) / target.name)) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    if (paths.empty()) {
      std::fprintf(stderr, "%s has no corpus\n", target.name.c_str());
      return 66;
    }
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const std::string bytes = read(paths[i]);
      const std::string other = read(paths[(i + 1) % paths.size()]);
      const std::uint64_t key = keyed(keyed(0, i), target.name.size());
      for (std::uint64_t m = 0; m <= mutations; ++m, ++count) {
        const std::string input = m == 0 ? bytes : mutated(bytes, other, keyed(key, m));
        current = &input;
        // Long for any input of this size.
        alarm(60);
        orthant::fuzz::feed(target, input);
      }
    }
    alarm(0);
    std::printf("%-12s %zu files, %llu inputs\n", target.name.c_str(), paths.size(),
                static_cast<unsigned long long>(count));
  }
  return 0;
}
