#include "orthant/data/tools/file_report.hpp"

#include "orthant/base/format.hpp"
#include "orthant/data/formats/hdf5_read.hpp"
#include "orthant/data/formats/hdf5_survey.hpp"
#include "orthant/data/formats/nifti.hpp"
#include "orthant/data/formats/npy.hpp"
#include "orthant/data/formats/tfrecord.hpp"

#include <algorithm>
#include <functional>

namespace orthant::data::tools {
namespace {

using tensor::Box;
using tensor::Dim;
using tensor::Shape;

constexpr std::int64_t most_items_at_once = 4 << 20;

/// Sums numbers in double precision, and finds the least and the greatest.
class NumberSums {
 public:
  void add(std::span<const float> items) {
    for (const float item : items) {
      least_ = count_ == 0 ? item : std::min(least_, item);
      most_ = count_ == 0 ? item : std::max(most_, item);
      sum_ += static_cast<double>(item);
      ++count_;
    }
  }
  [[nodiscard]] std::optional<NumberSummary> summary() const {
    if (count_ == 0) return std::nullopt;
    return NumberSummary{.least = least_, .most = most_, .mean = sum_ / static_cast<double>(count_)};
  }

 private:
  float least_ = 0, most_ = 0;
  double sum_ = 0;
  std::int64_t count_ = 0;
};

/// The axes n d h w c for an array of up to five dims, or the last ones of them if it has fewer.
arrays::Axes last_axes(std::size_t count) {
  const arrays::Axes all{Dim::n, Dim::d, Dim::h, Dim::w, Dim::c};
  return {all.end() - static_cast<std::ptrdiff_t>(std::min(count, all.size())), all.end()};
}

/// Reads an array along its first axis, some of it at a time.
std::optional<NumberSummary> read_through(const std::vector<std::int64_t>& extents,
                                          const std::function<void(const Box&, std::span<float>)>& read) {
  const arrays::Axes axes = last_axes(extents.size());
  const Shape shape = arrays::shape_of(extents, axes);
  const std::int64_t items = tensor::volume(shape);
  NumberSums sums;
  std::vector<float> piece;
  const Dim first = axes.empty() ? Dim::n : axes.front();
  const std::int64_t rows = std::max<std::int64_t>(
      1, most_items_at_once / std::max<std::int64_t>(1, items / std::max<std::int64_t>(1, shape[first])));
  for (std::int64_t row = 0; row < shape[first] && items > 0; row += rows) {
    Box box = tensor::whole(shape);
    box.set(first, {row, std::min(row + rows, shape[first])});
    piece.resize(static_cast<std::size_t>(tensor::volume(box)));
    read(box, piece);
    sums.add(piece);
  }
  return sums.summary();
}

void note_problem(FileReport& report, const base::Error& error) {
  if (report.problems.empty()) report.code = error.code();
  report.problems.emplace_back(error.what());
}

std::string storage_of(const formats::Hdf5Array& array) {
  if (!array.refused.empty()) return "";
  if (!array.inside.empty()) return "compact";
  if (array.chunk.empty()) return "contiguous";
  std::string text = "chunks of " + formats::extents_text(array.chunk);
  for (const formats::Hdf5Filter filter : array.filters) text += std::string(", ") + name_of(filter);
  return text;
}

void add_hdf5_array(FileReport& report, const formats::Hdf5Outline& outline, const formats::Hdf5Array& array,
                    bool numbers) {
  const bool readable = array.refused.empty();
  report.arrays.push_back({.name = array.name,
                           .type = readable ? name_of(array.type) : "",
                           .integers = readable && arrays::is_integer(array.type),
                           .extents = array.extents,
                           .storage = storage_of(array),
                           .note = array.refused,
                           .summary = {}});
  const bool broken = array.refused.starts_with("damaged") || array.refused.starts_with("truncated");
  if (broken)
    note_problem(report, {base::Exit::bad_data, fmt::format("'{}:{}' is {}", outline.path, array.name, array.refused)});
  if (const std::string gaps = formats::gaps_of(outline, array); readable && !gaps.empty())
    note_problem(report, {base::Exit::bad_data, gaps});
  if (!numbers || !readable || array.extents.size() > 5) return;
  try {
    const formats::Hdf5Reader reader(outline, array, last_axes(array.extents.size()));
    report.arrays.back().summary =
        read_through(array.extents, [&](const Box& box, std::span<float> into) { reader.read(box, into); });
  } catch (const base::Error& error) {
    note_problem(report, error);
  }
}

FileReport hdf5_report(const formats::Hdf5Outline& outline, bool numbers) {
  FileReport report{.path = outline.path, .bytes = outline.bytes};
  if (!outline.error.empty()) note_problem(report, {outline.code, outline.error});
  for (const formats::Hdf5Array& array : outline.arrays) add_hdf5_array(report, outline, array, numbers);
  return report;
}

void report_npy(FileReport& report, bool numbers) {
  const formats::NpyFile file(report.path);
  report.arrays.push_back({.name = "",
                           .type = name_of(file.type()),
                           .integers = arrays::is_integer(file.type()),
                           .extents = file.extents(),
                           .storage = "contiguous"});
  if (!numbers || file.extents().size() > 5) return;
  const arrays::Axes axes = last_axes(file.extents().size());
  const tensor::Layout layout = arrays::layout_of(arrays::shape_of(file.extents(), axes), axes);
  report.arrays.back().summary =
      read_through(file.extents(), [&](const Box& box, std::span<float> into) { file.read(layout, box, into); });
}

void report_nifti(FileReport& report, bool numbers) {
  const formats::Nifti image = formats::read_nifti(report.path);
  report.arrays.push_back(
      {.name = "",
       .type = name_of(image.type),
       .integers = arrays::is_integer(image.type) && !image.is_scaled(),
       .extents = image.extents,
       .storage = image.is_scaled() ? fmt::format("times {} plus {}", image.slope, image.intercept) : ""});
  if (!numbers) return;
  NumberSums sums;
  sums.add(formats::nifti_values(image, report.path));
  report.arrays.back().summary = sums.summary();
}

void report_tfrecord(FileReport& report) {
  const std::vector<formats::CosmoflowRecord> records = formats::read_tfrecord(report.path);
  NumberSums x;
  NumberSums y;
  for (const formats::CosmoflowRecord& record : records) {
    const std::vector<float> counts(record.x.begin(), record.x.end());
    x.add(counts);
    y.add(record.y);
  }
  const auto count = static_cast<std::int64_t>(records.size());
  const formats::CosmoflowRecord& first = records.front();
  report.arrays.push_back({.name = "x",
                           .type = "int16",
                           .integers = true,
                           .extents = {count, first.size, first.size, first.size, first.channels},
                           .storage = "records",
                           .summary = x.summary()});
  report.arrays.push_back({.name = "y",
                           .type = "float32",
                           .extents = {count, static_cast<std::int64_t>(first.y.size())},
                           .storage = "records",
                           .summary = y.summary()});
}

bool ends_in(const std::string& path, std::initializer_list<const char*> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](const char* ending) { return path.ends_with(ending); });
}

bool is_hdf5(const std::string& path) { return !ends_in(path, {".npy", ".nii", ".nii.gz", ".tfrecord", ".tfrecords"}); }

FileReport other_report(const std::string& path, bool numbers) {
  FileReport report{.path = path};
  try {
    report.bytes = io::InputFile(path).bytes();
    if (ends_in(path, {".npy"})) {
      report_npy(report, numbers);
    } else if (ends_in(path, {".nii", ".nii.gz"})) {
      report_nifti(report, numbers);
    } else {
      report_tfrecord(report);
    }
  } catch (const base::Error& error) {
    note_problem(report, error);
  }
  return report;
}

}  // namespace

const std::vector<std::string>& data_endings() {
  static const std::vector<std::string> endings{".h5", ".hdf5", ".npy", ".nii", ".nii.gz", ".tfrecord", ".tfrecords"};
  return endings;
}

std::vector<FileReport> report_on(const std::vector<std::string>& paths, bool numbers,
                                  const std::function<void(std::int64_t done)>& done) {
  std::vector<std::string> hdf5;
  std::copy_if(paths.begin(), paths.end(), std::back_inserter(hdf5), is_hdf5);
  const std::vector<formats::Hdf5Outline> outlines = formats::try_survey_hdf5(hdf5);
  std::vector<FileReport> reports;
  auto outline = outlines.begin();
  for (const std::string& path : paths) {
    reports.push_back(is_hdf5(path) ? hdf5_report(*outline++, numbers) : other_report(path, numbers));
    if (done) done(static_cast<std::int64_t>(reports.size()));
  }
  return reports;
}

}  // namespace orthant::data::tools
