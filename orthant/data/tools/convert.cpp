#include "orthant/data/tools/convert.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/base/format.hpp"
#include "orthant/data/formats/hdf5_write.hpp"
#include "orthant/data/formats/nifti.hpp"
#include "orthant/data/formats/npy.hpp"
#include "orthant/data/formats/tfrecord.hpp"
#include "orthant/data/io/file.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>

namespace orthant::data::tools {
namespace {

using base::Exit;
using base::fail;

/// An array to be written.
struct NamedArray {
  std::string name;
  arrays::NumberType type;
  std::vector<std::int64_t> extents;
  std::span<const std::byte> bytes;
};

class Target {
 public:
  explicit Target(const Conversion& conversion) : conversion_(conversion) {}

  void write(const std::string& source, std::int64_t number, std::int64_t of, std::span<const NamedArray> arrays) {
    const std::string path = path_for(source, number, of);
    if (!conversion_.overwrite && std::filesystem::exists(path))
      fail(Exit::io, "'{}' exists already; choose another directory, or use --overwrite", path);
    formats::Hdf5Writer file(path);
    for (const NamedArray& array : arrays) {
      file.create(array.name, {.type = array.type, .extents = array.extents});
      const std::vector<std::int64_t> begin(array.extents.size(), 0);
      file.write(array.name, begin, array.extents, array.bytes);
    }
    file.commit();
    ++count_;
  }
  [[nodiscard]] std::int64_t count() const { return count_; }

 private:
  [[nodiscard]] std::string path_for(const std::string& source, std::int64_t number, std::int64_t of) const {
    std::string stem = std::filesystem::path(source).filename().string();
    for (const char* ending : {".gz", ".nii", ".npy", ".tfrecord", ".tfrecords"}) {
      if (stem.ends_with(ending)) stem.resize(stem.size() - std::strlen(ending));
    }
    if (of > 1) stem += fmt::format("-{:06}", number);
    return (std::filesystem::path(conversion_.directory) / (stem + ".h5")).string();
  }

  const Conversion& conversion_;
  std::int64_t count_ = 0;
};

/// Permutes items from the order c, d, h, w to d, h, w, c.
template <class T>
std::vector<T> channels_last(std::span<const T> items, std::int64_t channels) {
  const std::size_t pixels = items.size() / static_cast<std::size_t>(channels);
  std::vector<T> turned(items.size());
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
    for (std::size_t pixel = 0; pixel < pixels; ++pixel)
      turned[pixel * static_cast<std::size_t>(channels) + c] = items[c * pixels + pixel];
  }
  return turned;
}

/// Labels as bytes, or as 32-bit integers if there are more than 256.
struct Labels {
  arrays::NumberType type = arrays::NumberType::u8;
  std::vector<std::byte> bytes;
};

Labels make_labels(std::span<const std::int64_t> numbers, const std::string& path) {
  Labels labels;
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  if (*least < 0 || *most > 0x7FFFFFFF)
    fail(Exit::bad_data, "'{}' has labels from {} to {}; classes count from 0", path, *least, *most);
  if (*most > 255) labels.type = arrays::NumberType::i32;
  const auto size = static_cast<std::size_t>(bytes_of(labels.type));
  labels.bytes.resize(numbers.size() * size);
  for (std::size_t i = 0; i < numbers.size(); ++i) std::memcpy(labels.bytes.data() + i * size, &numbers[i], size);
  return labels;
}

/// Whole numbers, whatever type the file stores them in.
std::vector<std::int64_t> whole_numbers(std::span<const float> values, const std::string& path) {
  std::vector<std::int64_t> numbers;
  for (const float value : values) {
    numbers.push_back(static_cast<std::int64_t>(value));
    if (static_cast<float>(numbers.back()) != value)
      fail(Exit::bad_data, "'{}' holds {}, but labels must be whole numbers", path, value);
  }
  return numbers;
}

void convert_nifti(const Conversion& conversion, std::size_t i, Target& target) {
  const std::string& source = conversion.sources[i];
  const formats::Nifti image = formats::read_nifti(source);
  const std::vector<float> values = formats::nifti_values(image, source);
  const bool many = image.extents.size() == 4;
  const std::vector<float> turned = many ? channels_last<float>(values, image.extents.front()) : values;
  std::vector<std::int64_t> extents(image.extents.end() - 3, image.extents.end());
  extents.push_back(many ? image.extents.front() : 1);
  std::vector<NamedArray> arrays{{"volume", arrays::NumberType::f32, extents, std::as_bytes(std::span(turned))}};
  Labels labels;
  if (!conversion.labels.empty()) {
    const std::string& path = conversion.labels[i];
    const formats::Nifti mask = formats::read_nifti(path);
    extents.pop_back();
    if (mask.extents != extents)
      fail(Exit::bad_data, "'{}' has shape {}, but its volume '{}' has {}", path, formats::extents_text(mask.extents),
           source, formats::extents_text(extents));
    labels = make_labels(whole_numbers(formats::nifti_values(mask, path), path), path);
    arrays.push_back({"segmentation", labels.type, extents, labels.bytes});
  }
  target.write(source, 0, 1, arrays);
}

/// One sample of an npy file, items in the file's order.
std::vector<float> npy_sample(const formats::NpyFile& file, std::int64_t sample) {
  const std::int64_t samples = file.extents().front();
  const tensor::Shape all{.n = samples, .c = 1, .d = 1, .h = 1, .w = file.items() / samples};
  std::vector<float> items(static_cast<std::size_t>(all.w));
  tensor::Box box = tensor::whole(all);
  box.set(tensor::Dim::n, {sample, sample + 1});
  file.read(tensor::channels_first(all), box, items);
  return items;
}

/// An npy file with its targets.
class NpySource {
 public:
  NpySource(const Conversion& conversion, std::size_t i) : file_(conversion.sources[i]) {
    if (file_.extents().size() != 5 || file_.items() == 0)
      fail(Exit::bad_data, "'{}' has shape {}; inputs are NxCxDxHxW", file_.path(),
           formats::extents_text(file_.extents()));
    if (!conversion.targets.empty()) check_samples(values_.emplace(conversion.targets[i]));
    if (!conversion.labels.empty()) check_samples(labels_.emplace(conversion.labels[i]));
    const std::int64_t pixels = file_.items() / samples() / channels();
    if (labels_ && labels_->items() != samples() * pixels) {
      fail(Exit::bad_data, "'{}' has shape {}, which does not fit '{}' of shape {}", labels_->path(),
           formats::extents_text(labels_->extents()), file_.path(), formats::extents_text(file_.extents()));
    }
  }

  [[nodiscard]] std::int64_t samples() const { return file_.extents()[0]; }
  [[nodiscard]] std::int64_t channels() const { return file_.extents()[1]; }

  void write(std::int64_t sample, Target& target) const {
    const std::vector<std::int64_t> extents(file_.extents().begin() + 2, file_.extents().end());
    std::vector<std::int64_t> with_channels = extents;
    with_channels.push_back(channels());
    const std::vector<float> items = channels_last<float>(npy_sample(file_, sample), channels());
    const char* name = values_ ? "full" : "volume";
    std::vector<NamedArray> arrays{{name, arrays::NumberType::f32, with_channels, std::as_bytes(std::span(items))}};
    std::vector<float> values;
    if (values_) {
      values = npy_sample(*values_, sample);
      const auto count = static_cast<std::int64_t>(values.size());
      arrays.push_back({"unitPar", arrays::NumberType::f32, {count}, std::as_bytes(std::span(values))});
    }
    Labels labels;
    if (labels_) {
      labels = make_labels(whole_numbers(npy_sample(*labels_, sample), labels_->path()), labels_->path());
      arrays.push_back({"segmentation", labels.type, extents, labels.bytes});
    }
    target.write(file_.path(), sample, samples(), arrays);
  }

 private:
  void check_samples(const formats::NpyFile& target) const {
    if (!target.extents().empty() && target.extents().front() == samples()) return;
    fail(Exit::bad_data, "'{}' has shape {}, but '{}' has {} samples", target.path(),
         formats::extents_text(target.extents()), file_.path(), samples());
  }

  formats::NpyFile file_;
  std::optional<formats::NpyFile> values_, labels_;
};

void convert_npy(const Conversion& conversion, std::size_t i, Target& target) {
  const NpySource source(conversion, i);
  for (std::int64_t sample = 0; sample < source.samples(); ++sample) source.write(sample, target);
}

void convert_tfrecord(const std::string& source, Target& target) {
  const std::vector<formats::CosmoflowRecord> records = formats::read_tfrecord(source);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const formats::CosmoflowRecord& record = records[i];
    const std::vector<NamedArray> arrays{{"full",
                                          arrays::NumberType::i16,
                                          {record.size, record.size, record.size, record.channels},
                                          std::as_bytes(std::span(record.x))},
                                         {"unitPar",
                                          arrays::NumberType::f32,
                                          {static_cast<std::int64_t>(record.y.size())},
                                          std::as_bytes(std::span(record.y))}};
    target.write(source, static_cast<std::int64_t>(i), static_cast<std::int64_t>(records.size()), arrays);
  }
}

void check_counts(const Conversion& conversion) {
  if (conversion.sources.empty()) fail(Exit::usage, "nothing to convert; name at least one file");
  for (const auto& [list, what] :
       {std::pair(&conversion.labels, "--labels"), std::pair(&conversion.targets, "--targets")}) {
    if (!list->empty() && list->size() != conversion.sources.size())
      fail(Exit::usage, "{} names {} files for {} sources; there must be one for each", what, list->size(),
           conversion.sources.size());
  }
}

/// "npy", "nii" or "tfrecord".
std::string format_of(const std::string& path) {
  if (path.ends_with(".npy")) return "npy";
  if (path.ends_with(".nii") || path.ends_with(".nii.gz")) return "nii";
  if (path.ends_with(".tfrecord") || path.ends_with(".tfrecords")) return "tfrecord";
  fail(Exit::usage, "'{}' is of a kind that cannot be converted; use .nii, .nii.gz, .npy or .tfrecord", path);
}

/// The format that all sources have.
std::string format_of(const Conversion& conversion) {
  std::string format = format_of(conversion.sources.front());
  for (const std::string& path : conversion.sources) {
    if (format_of(path) != format) fail(Exit::usage, "the sources are of several kinds; convert one kind at a time");
  }
  if (format == "nii" && !conversion.targets.empty())
    fail(Exit::usage, "--targets go with npy files; NIfTI volumes take --labels");
  if (format == "tfrecord" && !(conversion.targets.empty() && conversion.labels.empty()))
    fail(Exit::usage, "TFRecords have their targets inside; leave --labels and --targets out");
  return format;
}

}  // namespace

std::int64_t convert_files(const Conversion& conversion, const std::function<void(std::int64_t done)>& done) {
  check_counts(conversion);
  const std::string format = format_of(conversion);
  io::make_directories(conversion.directory);
  Target target(conversion);
  for (std::size_t i = 0; i < conversion.sources.size(); ++i) {
    if (format == "nii") convert_nifti(conversion, i, target);
    if (format == "npy") convert_npy(conversion, i, target);
    if (format == "tfrecord") convert_tfrecord(conversion.sources[i], target);
    if (done) done(static_cast<std::int64_t>(i + 1));
  }
  return target.count();
}

}  // namespace orthant::data::tools
