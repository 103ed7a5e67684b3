#include "orthant/base/checked.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/cli/bench.hpp"
#include "orthant/cli/parallel.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/data/formats/hdf5_read.hpp"
#include "orthant/data/formats/hdf5_survey.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/data/io/file_list.hpp"
#include "orthant/engine/memory.hpp"
#include "orthant/plan/compact_grid.hpp"
#include "orthant/train/delivery.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>

namespace orthant::cli {
namespace {

using base::Exit;
using base::fail;
using base::Json;
using tensor::Box;

struct BenchIoArguments {
  std::vector<std::string> files;
  std::string key, axes;
  ParallelArguments parallel;
  int repeats = 5;
  bool json = false;
};

/// Seconds for all files, best of several passes; each pass lasts until the slowest rank is done.
struct IoTimes {
  double raw = 0;       ///< one rank takes the bytes and does nothing with them
  double whole = 0;     ///< one rank reads whole samples
  double parallel = 0;  ///< every rank reads its box
  double scatter = 0;   ///< one rank reads whole samples and sends the others their boxes
};

/// The array that is read from each file, and the type and axes it is read with.
struct Arrays {
  std::vector<data::formats::Hdf5Outline> outlines;
  std::vector<const data::formats::Hdf5Array*> arrays;
  std::vector<data::formats::Hdf5Reader> readers;
  std::int64_t bytes = 0;  ///< in the files
  std::string axes;
};

const std::string& largest_key(const data::formats::Hdf5Outline& outline) {
  const auto items = [](const data::formats::Hdf5Array& array) {
    std::int64_t count = array.refused.empty() ? 1 : 0;
    for (const std::int64_t extent : array.extents) count *= extent;
    return count;
  };
  const auto largest = std::max_element(
      outline.arrays.begin(), outline.arrays.end(),
      [&](const data::formats::Hdf5Array& a, const data::formats::Hdf5Array& b) { return items(a) < items(b); });
  if (largest == outline.arrays.end()) fail(Exit::bad_data, "'{}' has no array", outline.path);
  return largest->name;
}

/// Channels are the first or the last axis, whichever is shorter.
std::string likely_axes(const std::vector<std::int64_t>& extents) {
  if (extents.size() == 3) return "DHW";
  if (extents.size() == 4) return extents.back() <= extents.front() ? "DHWC" : "CDHW";
  return extents.size() == 5 ? "NDHWC" : "";
}

std::int64_t file_bytes(const data::formats::Hdf5Array& array) {
  std::int64_t bytes = data::arrays::bytes_of(array.type);
  if (array.chunk.empty()) {
    for (const std::int64_t extent : array.extents) bytes *= extent;
    return bytes;
  }
  bytes = 0;
  for (const data::formats::Hdf5Chunk& chunk : array.chunks) bytes += chunk.bytes;
  return bytes;
}

Arrays open_arrays(const BenchIoArguments& arguments, const std::string& survey) {
  Arrays opened{
      .outlines = data::formats::outlines_from_text(survey), .arrays = {}, .readers = {}, .bytes = 0, .axes = {}};
  const std::string key = arguments.key.empty() ? largest_key(opened.outlines.front()) : arguments.key;
  for (const data::formats::Hdf5Outline& outline : opened.outlines) {
    const data::formats::Hdf5Array& array = data::formats::array_named(outline, key);
    opened.axes = arguments.axes.empty() ? likely_axes(array.extents) : arguments.axes;
    const std::optional<data::arrays::Axes> axes = data::arrays::parse_axes(opened.axes);
    if (!axes || axes->size() != array.extents.size()) {
      fail(Exit::bad_data, "'{}:{}' has {} axes; say with --axes which they are, e.g. DHWC", outline.path, key,
           array.extents.size());
    }
    opened.arrays.push_back(&array);
    opened.readers.emplace_back(outline, array, *axes);
    if (opened.readers.back().shape() != opened.readers.front().shape())
      fail(Exit::bad_data, "'{}' has another shape than the first file", opened.readers.back().name());
    opened.bytes += file_bytes(array);
  }
  return opened;
}

/// Collective. The best of several passes.
template <class Pass>
double best_pass(int repeats, comm::Comm& comm, Pass pass) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repeats; ++i) {
    comm.barrier();
    const auto start = std::chrono::steady_clock::now();
    pass();
    const double mine = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::min(best, comm::max(comm, mine));
  }
  return best;
}

/// The bytes of an array as its file has them, in order.
void read_raw(const data::formats::Hdf5Outline& outline, const data::formats::Hdf5Array& array,
              std::span<std::byte> into) {
  constexpr std::int64_t piece_bytes = 1 << 20;
  const data::io::InputFile file(outline.path);
  const auto read = [&](std::int64_t offset, std::int64_t bytes) {
    for (std::int64_t begin = 0; begin < bytes; begin += piece_bytes) {
      const auto count = static_cast<std::size_t>(std::min(piece_bytes, bytes - begin));
      file.read(offset + begin, into.first(count));
      into = into.subspan(count);
    }
  };
  if (array.chunk.empty() && array.inside.empty()) read(array.offset, file_bytes(array));
  for (const data::formats::Hdf5Chunk& chunk : array.chunks) read(chunk.offset, chunk.bytes);
}

std::span<float> floats_of(const data::io::LargeBlock& block) {
  return {reinterpret_cast<float*>(block.data()), static_cast<std::size_t>(block.bytes()) / sizeof(float)};
}

/// Collective. Boxes of the samples of all files, one file after the other.
IoTimes time_all(const Arrays& arrays, const tensor::Distribution& cut, int repeats, comm::Comm& comm) {
  const bool reads = comm.rank() == 0;
  const Box all = tensor::whole(cut.global);
  const Box mine = tensor::owned_box(cut, comm.rank());
  const data::io::LargeBlock whole_block(reads ? data::sets::box_bytes(all) : 0);
  const data::io::LargeBlock own_block(data::sets::box_bytes(mine));
  const data::sets::Held whole_held{whole_block.span(), all};
  const data::sets::Held own_held{own_block.span(), mine};
  const std::span<float> whole = floats_of(whole_block);
  const std::span<float> own = floats_of(own_block);
  train::Delivery delivery(comm, 0);
  const auto scatter = [&] {
    for (int peer = 1; reads && peer < comm.size(); ++peer)
      delivery.add_send(peer, whole_held, tensor::owned_box(cut, peer));
    if (!reads) delivery.add_receive(0, own_held, mine);
    delivery.start();
    delivery.wait();
  };
  IoTimes times;
  times.whole = best_pass(repeats, comm, [&] {
    for (const data::formats::Hdf5Reader& reader : arrays.readers)
      if (reads) reader.read(all, whole);
  });
  times.parallel = best_pass(repeats, comm, [&] {
    for (const data::formats::Hdf5Reader& reader : arrays.readers) reader.read(mine, own);
  });
  times.scatter = best_pass(repeats, comm, [&] {
    for (const data::formats::Hdf5Reader& reader : arrays.readers) {
      if (reads) reader.read(all, whole);
      scatter();
    }
  });
  std::int64_t most_bytes = 0;
  for (const data::formats::Hdf5Array* array : arrays.arrays) most_bytes = std::max(most_bytes, file_bytes(*array));
  const data::io::LargeBlock raw(reads ? most_bytes : 0);
  times.raw = best_pass(repeats, comm, [&] {
    for (std::size_t i = 0; reads && i < arrays.arrays.size(); ++i)
      read_raw(arrays.outlines[i], *arrays.arrays[i], raw.span());
  });
  return times;
}

void print_times(const Arrays& arrays, const IoTimes& times, const tensor::Distribution& cut, bool json) {
  const auto gigabytes = [&](double seconds) { return static_cast<double>(arrays.bytes) / seconds * 1e-9; };
  const data::formats::Hdf5Array& first = *arrays.arrays.front();
  if (json) {
    fmt::print("{}\n", Json{{"files", arrays.readers.size()},
                            {"bytes", arrays.bytes},
                            {"type", data::arrays::name_of(first.type)},
                            {"shape", first.extents},
                            {"axes", arrays.axes},
                            {"chunked", !first.chunk.empty()},
                            {"ranks", tensor::parts(cut.grid)},
                            {"grid", tensor::to_text(cut.grid)},
                            {"raw_seconds", times.raw},
                            {"whole_seconds", times.whole},
                            {"parallel_seconds", times.parallel},
                            {"scatter_seconds", times.scatter},
                            {"raw_share", times.raw / times.whole},
                            {"parallel_speedup", times.scatter / times.parallel}}
                           .dump(2));
    return;
  }
  fmt::print("files       {}, {} of {} each in the order {}\n", arrays.readers.size(), bytes_text(arrays.bytes),
             data::arrays::name_of(first.type), arrays.axes);
  const auto line = [&](const char* what, double seconds) {
    fmt::print("{:<42} {:>9}  {:6.2f} GB/s\n", what, seconds_text(seconds), gigabytes(seconds));
  };
  line("bytes alone, one rank", times.raw);
  line("whole samples, one rank", times.whole);
  line("every rank its box", times.parallel);
  line("one rank reads, then sends boxes", times.scatter);
  fmt::print("{} of the rate of the bytes alone; boxes {:.2f}x as fast as sending them ({} ranks, {})\n",
             percent_text(times.raw / times.whole), times.scatter / times.parallel, tensor::parts(cut.grid),
             tensor::to_text(cut.grid));
}

/// The cut of a sample that the arguments ask for; without a grid, depth is cut.
tensor::Grid grid_of(const BenchIoArguments& arguments, int ranks) {
  if (arguments.parallel.grid.empty()) return {.d = ranks};
  const plan::CompactGrid grid = plan::parse_grid(arguments.parallel.grid);
  if (grid.d * grid.h * grid.w != plan::total_ranks(grid))
    fail(Exit::usage, "the grid '{}' cuts more than d, h and w, but files are read in boxes of space",
         arguments.parallel.grid);
  if (plan::total_ranks(grid) != ranks)
    fail(Exit::does_not_fit, "the grid '{}' has {} parts for {} ranks", arguments.parallel.grid,
         plan::total_ranks(grid), ranks);
  return {.d = grid.d, .h = grid.h, .w = grid.w};
}

std::string survey(const BenchIoArguments& arguments) {
  return data::formats::outlines_text(
      data::formats::survey_hdf5(data::io::list_files(arguments.files, {".h5", ".hdf5"})));
}

void run_bench_io(const BenchIoArguments& arguments, comm::Comm& comm) {
  const std::string text = comm::on_root(comm, [&] { return survey(arguments); });
  const auto arrays = comm::agree(comm, [&] { return std::make_unique<Arrays>(open_arrays(arguments, text)); });
  const auto cut = comm::agree(comm, [&] {
    tensor::Distribution distribution{.global = arrays->readers.front().shape(),
                                      .grid = grid_of(arguments, comm.size())};
    distribution.global.n = 1;
    for (const tensor::Dim dim : tensor::spatial_dims) {
      if (distribution.global[dim] < distribution.grid[dim])
        fail(Exit::does_not_fit, "{} cells along {} cannot be cut into {}; use fewer ranks or another --grid",
             distribution.global[dim], tensor::name_of(dim), distribution.grid[dim]);
    }
    // One rank holds the whole sample and its raw bytes, and every rank a box.
    engine::check_memory(base::checked_mul(12, tensor::volume(distribution.global)));
    return distribution;
  });
  const IoTimes times = time_all(*arrays, cut, arguments.repeats, comm);
  if (comm.rank() == 0) print_times(*arrays, times, cut, arguments.json);
}

}  // namespace

void add_bench_io(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("io", "Reading of HDF5 files: every rank its box, or one rank for all");
  const auto arguments = std::make_shared<BenchIoArguments>();
  command->add_option("files", arguments->files, "HDF5 files, patterns, directories or lists")->required();
  command->add_option("--key", arguments->key, "The array to read; the largest of the first file if not given");
  command->add_option("--axes", arguments->axes, "The order of its axes, e.g. DHWC; found from the shape if not given");
  command->add_option("--ranks", arguments->parallel.ranks, "So many MPI ranks")->check(CLI::Range(1, 1 << 20));
  add_hosts(*command, arguments->parallel);
  command->add_option("--grid", arguments->parallel.grid,
                      "How samples are cut over ranks: d2, d2h2; depth if not given");
  command->add_option("--repeats", arguments->repeats, "Passes over the files, of which the best counts")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments] {
    run_on_ranks(
        arguments->parallel, [&](int ranks) { (void)grid_of(*arguments, ranks); },
        [&](comm::Comm& comm) { run_bench_io(*arguments, comm); });
  });
}

}  // namespace orthant::cli
