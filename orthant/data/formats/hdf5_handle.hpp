#pragma once

#include <hdf5.h>

#include <utility>

namespace orthant::data::formats {

/// Owns an identifier that HDF5 opened, and closes it.
class Hdf5Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Hdf5Handle(hid_t id, Close closer) : id_(id), close_(closer) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  Hdf5Handle(const Hdf5Handle&) = delete;
  Hdf5Handle& operator=(const Hdf5Handle&) = delete;
  ~Hdf5Handle() { close(); }

  [[nodiscard]] hid_t get() const { return id_; }
  /// Does nothing if it is closed already.
  herr_t close() { return id_ < 0 ? 0 : close_(std::exchange(id_, -1)); }

 private:
  hid_t id_;
  Close close_;
};

/// Must be called before any other function of HDF5. It keeps the library from printing errors, which this program
/// reports itself, and from cleaning up when the process ends, because it crashes there if a file could not be
/// completed.
inline void prepare_hdf5() {
  H5dont_atexit();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

}  // namespace orthant::data::formats
