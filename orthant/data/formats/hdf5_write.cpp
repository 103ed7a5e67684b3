#include "orthant/data/formats/hdf5_write.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/data/formats/hdf5_handle.hpp"
#include "orthant/data/io/file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>

namespace orthant::data::formats {
namespace {

using base::Exit;
using base::fail;

[[noreturn]] void fail_write(const std::string& path, const std::string& why) {
  fail(Exit::io, "cannot write '{}': {}", path, why);
}

/// The last error of the system or, because HDF5 does not always pass it on, a guess.
std::string reason() { return errno != 0 ? std::strerror(errno) : "HDF5 refused it; is the disk full?"; }

hid_t check_id(hid_t id, const std::string& path) {
  if (id < 0) fail_write(path, reason());
  return id;
}

void check(herr_t status, const std::string& path) {
  if (status < 0) fail_write(path, reason());
}

hid_t file_type(arrays::NumberType type) {
  switch (type) {
    case arrays::NumberType::f32: return H5T_IEEE_F32LE;
    case arrays::NumberType::f64: return H5T_IEEE_F64LE;
    case arrays::NumberType::i8: return H5T_STD_I8LE;
    case arrays::NumberType::i16: return H5T_STD_I16LE;
    case arrays::NumberType::i32: return H5T_STD_I32LE;
    case arrays::NumberType::i64: return H5T_STD_I64LE;
    case arrays::NumberType::u8: return H5T_STD_U8LE;
    case arrays::NumberType::u16: return H5T_STD_U16LE;
    case arrays::NumberType::u32: return H5T_STD_U32LE;
    case arrays::NumberType::u64: return H5T_STD_U64LE;
    default: fail(Exit::internal, "HDF5 files of {} are not written; please report this", name_of(type));
  }
}

std::vector<hsize_t> sizes_of(std::span<const std::int64_t> extents) { return {extents.begin(), extents.end()}; }

std::int64_t product(std::span<const std::int64_t> extents) {
  std::int64_t items = 1;
  for (const std::int64_t extent : extents) items = base::checked_mul(items, extent);
  return items;
}

/// The file stores no times, so that its bytes depend on its contents only.
Hdf5Handle dataset_properties(const Hdf5Extents& extents, const std::string& path) {
  Hdf5Handle properties(check_id(H5Pcreate(H5P_DATASET_CREATE), path), H5Pclose);
  check(H5Pset_obj_track_times(properties.get(), false), path);
  if (extents.chunk.empty()) {
    // Space that has not been written yet need not be filled with zeros.
    check(H5Pset_fill_time(properties.get(), H5D_FILL_TIME_NEVER), path);
    return properties;
  }
  const std::vector<hsize_t> chunk = sizes_of(extents.chunk);
  check(H5Pset_chunk(properties.get(), static_cast<int>(chunk.size()), chunk.data()), path);
  if (extents.gzip > 0) check(H5Pset_deflate(properties.get(), static_cast<unsigned>(extents.gzip)), path);
  return properties;
}

struct OpenDataset {
  Hdf5Handle id;
  Hdf5Extents extents;
  std::int64_t planes_written = 0;
};

}  // namespace

struct Hdf5Writer::State {
  Hdf5Handle file;
  std::map<std::string, OpenDataset> datasets;

  OpenDataset& dataset(const std::string& name) {
    const auto found = datasets.find(name);
    if (found == datasets.end())
      fail(Exit::internal, "the data set '{}' was not created before it was written; please report this", name);
    return found->second;
  }
  hid_t owner(const std::string& name) { return name.empty() ? file.get() : dataset(name).id.get(); }
};

Hdf5Writer::Hdf5Writer(std::string path) : path_(std::move(path)), temporary_(path_ + ".part") {
  prepare_hdf5();
  // Left by a run that was killed, or a link that leads elsewhere.
  ::unlink(temporary_.c_str());
  errno = 0;
  const hid_t file = H5Fcreate(temporary_.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT);
  if (file < 0) {
    const std::string why = reason();
    ::unlink(temporary_.c_str());
    fail_write(path_, why);
  }
  state_ = std::make_unique<State>(State{.file = Hdf5Handle(file, H5Fclose), .datasets = {}});
}

Hdf5Writer::~Hdf5Writer() {
  if (state_ == nullptr) return;
  state_.reset();
  ::unlink(temporary_.c_str());
}

void Hdf5Writer::create(const std::string& name, const Hdf5Extents& extents) {
  errno = 0;
  const std::vector<hsize_t> sizes = sizes_of(extents.extents);
  const Hdf5Handle properties = dataset_properties(extents, path_);
  const Hdf5Handle space(check_id(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr), path_),
                         H5Sclose);
  const hid_t id = check_id(H5Dcreate2(state_->file.get(), name.c_str(), file_type(extents.type), space.get(),
                                       H5P_DEFAULT, properties.get(), H5P_DEFAULT),
                            path_);
  state_->datasets.insert_or_assign(name, OpenDataset{.id = Hdf5Handle(id, H5Dclose), .extents = extents});
}

void Hdf5Writer::write(const std::string& name, std::span<const std::int64_t> begin,
                       std::span<const std::int64_t> extents, std::span<const std::byte> numbers) {
  const OpenDataset& dataset = state_->dataset(name);
  const std::int64_t bytes = base::checked_mul(product(extents), bytes_of(dataset.extents.type));
  if (bytes != static_cast<std::int64_t>(numbers.size()) || extents.size() != dataset.extents.extents.size())
    fail(Exit::internal, "'{}' in '{}': {} bytes for a box of {}; please report this", name, path_, numbers.size(),
         bytes);
  errno = 0;
  const std::vector<hsize_t> start = sizes_of(begin), count = sizes_of(extents);
  const Hdf5Handle memory(check_id(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), path_),
                          H5Sclose);
  const Hdf5Handle space(check_id(H5Dget_space(dataset.id.get()), path_), H5Sclose);
  check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr), path_);
  // The types in memory are those of the file: this code runs on little-endian machines.
  check(H5Dwrite(dataset.id.get(), file_type(dataset.extents.type), memory.get(), space.get(), H5P_DEFAULT,
                 numbers.data()),
        path_);
}

void Hdf5Writer::append(const std::string& name, std::span<const std::byte> planes) {
  OpenDataset& dataset = state_->dataset(name);
  std::vector<std::int64_t> begin(dataset.extents.extents.size(), 0), extents = dataset.extents.extents;
  extents[0] = 1;
  const std::int64_t plane_bytes = product(extents) * bytes_of(dataset.extents.type);
  begin[0] = dataset.planes_written;
  extents[0] = static_cast<std::int64_t>(planes.size()) / plane_bytes;
  write(name, begin, extents, planes);
  dataset.planes_written += extents[0];
}

void Hdf5Writer::attribute(const std::string& dataset, const std::string& name, const std::string& text) {
  errno = 0;
  const Hdf5Handle type(check_id(H5Tcopy(H5T_C_S1), path_), H5Tclose);
  check(H5Tset_size(type.get(), text.size() + 1), path_);
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8), path_);
  const Hdf5Handle space(check_id(H5Screate(H5S_SCALAR), path_), H5Sclose);
  const Hdf5Handle attribute(
      check_id(H5Acreate2(state_->owner(dataset), name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT),
               path_),
      H5Aclose);
  check(H5Awrite(attribute.get(), type.get(), text.c_str()), path_);
}

void Hdf5Writer::attribute(const std::string& dataset, const std::string& name, std::span<const double> numbers) {
  errno = 0;
  const hsize_t count = numbers.size();
  const Hdf5Handle space(check_id(H5Screate_simple(1, &count, nullptr), path_), H5Sclose);
  const Hdf5Handle attribute(
      check_id(H5Acreate2(state_->owner(dataset), name.c_str(), H5T_IEEE_F64LE, space.get(), H5P_DEFAULT, H5P_DEFAULT),
               path_),
      H5Aclose);
  check(H5Awrite(attribute.get(), H5T_NATIVE_DOUBLE, numbers.data()), path_);
}

void Hdf5Writer::attribute(const std::string& dataset, const std::string& name, std::int64_t number) {
  errno = 0;
  const Hdf5Handle space(check_id(H5Screate(H5S_SCALAR), path_), H5Sclose);
  const Hdf5Handle attribute(
      check_id(H5Acreate2(state_->owner(dataset), name.c_str(), H5T_STD_I64LE, space.get(), H5P_DEFAULT, H5P_DEFAULT),
               path_),
      H5Aclose);
  check(H5Awrite(attribute.get(), H5T_NATIVE_INT64, &number), path_);
}

void Hdf5Writer::commit() {
  errno = 0;
  for (auto& [name, dataset] : state_->datasets) check(dataset.id.close(), path_);
  check(H5Fflush(state_->file.get(), H5F_SCOPE_LOCAL), path_);
  check(state_->file.close(), path_);
  io::put_in_place(temporary_, path_);
  state_.reset();
}

}  // namespace orthant::data::formats
