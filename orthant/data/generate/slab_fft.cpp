#include "orthant/data/generate/slab_fft.hpp"

#include "orthant/comm/typed.hpp"
#include "orthant/data/io/threads.hpp"
#include "orthant/tensor/distribution.hpp"

#include <fftw3.h>

#include <algorithm>
#include <cassert>
#include <mutex>
#include <new>

namespace orthant::data::generate {
namespace {

/// The number of lines along d that are copied together, so that whole cache lines are used.
constexpr std::int64_t lines_at_once = 8;

/// The planner of FFTW has global state, which only one thread at a time may use.
std::mutex& planner() {
  static std::mutex mutex;
  return mutex;
}

struct FreeFftw {
  void operator()(void* memory) const { fftwf_free(memory); }
};
template <class T>
using Aligned = std::unique_ptr<T[], FreeFftw>;

template <class T>
Aligned<T> aligned(std::int64_t count) {
  void* memory = fftwf_malloc(static_cast<std::size_t>(count) * sizeof(T));
  if (memory == nullptr) throw std::bad_alloc();
  return Aligned<T>(static_cast<T*>(memory));
}

/// Rounds the size of a line up, so that all lines have the alignment of the first.
std::int64_t padded(std::int64_t size) { return (size + 7) / 8 * 8; }

fftwf_complex* fftw(Complex* modes) { return reinterpret_cast<fftwf_complex*>(modes); }

Complex* at(std::span<Complex> items, std::int64_t index) { return items.data() + index; }

}  // namespace

tensor::Range Slabs::planes(int rank) const {
  return {tensor::block_begin(size, ranks, rank), tensor::block_begin(size, ranks, rank + 1)};
}

std::int64_t Slabs::cells(int rank) const { return (planes(rank).hi - planes(rank).lo) * size * size; }

std::int64_t Slabs::modes(int rank) const { return (planes(rank).hi - planes(rank).lo) * size * half(); }

/// Plans for one plane and one line, and memory for them per thread.
struct SlabFft::Plans {
  Plans(std::int64_t size, std::int64_t half, int threads) {
    for (int thread = 0; thread < threads; ++thread) {
      plane.push_back(aligned<Complex>(size * half));
      lines.push_back(aligned<Complex>(lines_at_once * padded(size)));
    }
    const int n = static_cast<int>(size);
    Complex* memory = plane.front().get();
    Complex* line = lines.front().get();
    const std::lock_guard lock(planner());
    plane_forward = fftwf_plan_dft_r2c_2d(n, n, reinterpret_cast<float*>(memory), fftw(memory), FFTW_ESTIMATE);
    plane_backward = fftwf_plan_dft_c2r_2d(n, n, fftw(memory), reinterpret_cast<float*>(memory), FFTW_ESTIMATE);
    line_forward = fftwf_plan_dft_1d(n, fftw(line), fftw(line), FFTW_FORWARD, FFTW_ESTIMATE);
    line_backward = fftwf_plan_dft_1d(n, fftw(line), fftw(line), FFTW_BACKWARD, FFTW_ESTIMATE);
  }
  Plans(const Plans&) = delete;
  Plans& operator=(const Plans&) = delete;
  ~Plans() {
    const std::lock_guard lock(planner());
    for (fftwf_plan plan : {plane_forward, plane_backward, line_forward, line_backward}) fftwf_destroy_plan(plan);
  }

  std::vector<Aligned<Complex>> plane, lines;
  fftwf_plan plane_forward, plane_backward, line_forward, line_backward;
};

SlabFft::SlabFft(comm::Comm& comm, std::int64_t size, int threads)
    : comm_(comm),
      slabs_{.size = size, .ranks = comm.size()},
      threads_(threads),
      plans_(std::make_unique<Plans>(size, slabs_.half(), threads)),
      sheet_(static_cast<std::size_t>(slabs_.modes(comm.rank()))) {}

SlabFft::~SlabFft() = default;

std::int64_t SlabFft::bytes(const Slabs& slabs, int rank, int threads) {
  const std::int64_t per_thread = slabs.size * slabs.half() + lines_at_once * padded(slabs.size);
  return static_cast<std::int64_t>(sizeof(Complex)) * (slabs.modes(rank) + threads * per_thread);
}

void SlabFft::forward(std::span<const float> field, std::span<Complex> modes) {
  transform_planes_forward(field);
  transpose(modes, Direction::to_modes);
  transform_lines(modes, Direction::to_modes);
}

void SlabFft::backward(std::span<Complex> modes, std::span<float> field) {
  transform_lines(modes, Direction::to_planes);
  transpose(modes, Direction::to_planes);
  transform_planes_backward(field);
}

void SlabFft::transform_planes_forward(std::span<const float> field) {
  const std::int64_t size = slabs_.size, half = slabs_.half(), count = planes().hi - planes().lo;
  const float scale = 1 / (static_cast<float>(size) * static_cast<float>(size) * static_cast<float>(size));
  io::in_threads(threads_, count, [&](std::int64_t begin, std::int64_t end, int thread) {
    Complex* plane = plans_->plane[static_cast<std::size_t>(thread)].get();
    auto* reals = reinterpret_cast<float*>(plane);
    for (std::int64_t p = begin; p < end; ++p) {
      const float* from = field.data() + p * size * size;
      for (std::int64_t h = 0; h < size; ++h) std::copy_n(from + h * size, size, reals + h * 2 * half);
      fftwf_execute_dft_r2c(plans_->plane_forward, reals, fftw(plane));
      for (std::int64_t h = 0; h < size; ++h) {
        std::transform(plane + h * half, plane + (h + 1) * half, at(sheet_, (h * count + p) * half),
                       [&](Complex mode) { return mode * scale; });
      }
    }
  });
}

void SlabFft::transform_planes_backward(std::span<float> field) {
  const std::int64_t size = slabs_.size, half = slabs_.half(), count = planes().hi - planes().lo;
  io::in_threads(threads_, count, [&](std::int64_t begin, std::int64_t end, int thread) {
    Complex* plane = plans_->plane[static_cast<std::size_t>(thread)].get();
    auto* reals = reinterpret_cast<float*>(plane);
    for (std::int64_t p = begin; p < end; ++p) {
      for (std::int64_t h = 0; h < size; ++h) std::copy_n(at(sheet_, (h * count + p) * half), half, plane + h * half);
      fftwf_execute_dft_c2r(plans_->plane_backward, fftw(plane), reals);
      float* to = field.data() + p * size * size;
      for (std::int64_t h = 0; h < size; ++h) std::copy_n(reals + h * 2 * half, size, to + h * size);
    }
  });
}

void SlabFft::transform_lines(std::span<Complex> modes, Direction direction) {
  const std::int64_t size = slabs_.size, half = slabs_.half(), stride = padded(size);
  const std::int64_t blocks = (half + lines_at_once - 1) / lines_at_once;
  fftwf_plan plan = direction == Direction::to_modes ? plans_->line_forward : plans_->line_backward;
  io::in_threads(threads_, (planes().hi - planes().lo) * blocks, [&](std::int64_t begin, std::int64_t end, int thread) {
    Complex* lines = plans_->lines[static_cast<std::size_t>(thread)].get();
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t first = block % blocks * lines_at_once;
      const std::int64_t count = std::min(lines_at_once, half - first);
      Complex* corner = at(modes, block / blocks * size * half + first);
      for (std::int64_t d = 0; d < size; ++d)
        for (std::int64_t w = 0; w < count; ++w) lines[w * stride + d] = corner[d * half + w];
      for (std::int64_t w = 0; w < count; ++w)
        fftwf_execute_dft(plan, fftw(lines + w * stride), fftw(lines + w * stride));
      for (std::int64_t d = 0; d < size; ++d)
        for (std::int64_t w = 0; w < count; ++w) corner[d * half + w] = lines[w * stride + d];
    }
  });
}

void SlabFft::transpose(std::span<Complex> modes, Direction direction) {
  assert(static_cast<std::int64_t>(modes.size()) == slabs_.modes(comm_.rank()));
  const std::int64_t half = slabs_.half(), count = planes().hi - planes().lo;
  std::vector<comm::Message> sheets, pieces;
  for (int peer = 0; peer < slabs_.ranks; ++peer) {
    const tensor::Range theirs = slabs_.planes(peer);
    for (std::int64_t h = 0; h < count; ++h) {
      Complex* piece = at(modes, (h * slabs_.size + theirs.lo) * half);
      const std::int64_t length = (theirs.hi - theirs.lo) * half;
      if (peer != comm_.rank()) {
        pieces.push_back(comm::message(peer, std::span(piece, static_cast<std::size_t>(length)), 0));
        continue;
      }
      Complex* mine = at(sheet_, (theirs.lo + h) * count * half);
      if (direction == Direction::to_modes) std::copy_n(mine, length, piece);
      if (direction == Direction::to_planes) std::copy_n(piece, length, mine);
    }
    if (peer == comm_.rank()) continue;
    // One message per row, as on the other side.
    for (std::int64_t h = theirs.lo; h < theirs.hi; ++h) {
      Complex* row = at(sheet_, h * count * half);
      sheets.push_back(comm::message(peer, std::span(row, static_cast<std::size_t>(count * half)), 0));
    }
  }
  const bool to_modes = direction == Direction::to_modes;
  const auto transfer = comm_.bind(to_modes ? sheets : pieces, to_modes ? pieces : sheets, "transpose");
  transfer->start();
  transfer->wait();
}

}  // namespace orthant::data::generate
